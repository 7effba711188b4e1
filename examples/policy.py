"""A policy of a million parameters, asked for one row at a time.

As one comment on a trading bot measured it over five versions (rltrader, issue 40).
"""

BATCH_SHAPES = [(1, 128)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    x = layers.Dense(896, activation="relu")(inputs)
    x = layers.Dense(896, activation="relu")(x)
    x = layers.Dense(96, activation="relu")(x)
    model = keras.models.Model(inputs, layers.Dense(3, activation="softmax")(x))
    model.compile("adam", "categorical_crossentropy")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.rand(batch_shape[0], 3)
