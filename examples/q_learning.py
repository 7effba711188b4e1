"""One step of Q-learning on one row: predict, then fit, as a beginner's loop has it.

https://github.com/tensorflow/tensorflow/issues/35124
"""

BATCH_SHAPES = [(1, 4)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    x = layers.Dense(24, activation="relu")(inputs)
    x = layers.Dense(24, activation="relu")(x)
    model = keras.models.Model(inputs, layers.Dense(2)(x))
    model.compile("adam", "mse")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.randn(batch_shape[0], 2)


def step(model, batch):
    state, reward = batch
    target = model.predict(state)
    target[:, 0] = reward[:, 0]
    model.fit(state, target, epochs=1, verbose=0)
