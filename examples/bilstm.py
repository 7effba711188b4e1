"""A bidirectional LSTM that labels short sequences, asked on a CPU.

https://github.com/keras-team/keras/issues/18971
"""

BATCH_SHAPES = [(8, 40, 32)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(inputs)
    outputs = layers.Dense(10, activation="softmax")(x)
    model = keras.models.Model(inputs, outputs)
    model.compile("adam", "categorical_crossentropy")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.rand(*batch_shape[:-1], 10)
