"""How long a fit takes to start on many rows in memory, when it ends after its first batch.

https://github.com/tensorflow/tensorflow/issues/73362
"""

BATCH_SHAPES = [(1_000, 8), (10_000, 8)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(shape=batch_shape[1:])
    outputs = layers.Dense(1)(layers.Dense(16, activation="relu")(inputs))
    model = keras.models.Model(inputs, outputs)
    model.compile("adam", "mse")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape).astype("float32"), rng.randn(batch_shape[0], 1)


def step(model, batch):
    x, y = batch
    model.fit(x, y, batch_size=32, steps_per_epoch=1, verbose=0)
