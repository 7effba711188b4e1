"""Ten short fits a step, again and again: does each take longer than the one before?

https://github.com/tensorflow/tensorflow/issues/33315
"""

BATCH_SHAPES = [(32, 16)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    outputs = layers.Dense(1)(layers.Dense(32, activation="relu")(inputs))
    model = keras.models.Model(inputs, outputs)
    model.compile("adam", "mse")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.randn(batch_shape[0], 1)


def step(model, batch):
    for _ in range(10):
        model.fit(*batch, batch_size=len(batch[0]), verbose=0)
