"""A basic recurrent network on short sequences.

https://github.com/tensorflow/tensorflow/issues/46515
"""

BATCH_SHAPES = [(32, 50, 16)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    outputs = layers.Dense(1)(layers.SimpleRNN(64)(inputs))
    model = keras.models.Model(inputs, outputs)
    model.compile("adam", "mse")
    return model


def make_data(batch_shape, rng):
    rows = 10 * batch_shape[0]
    return rng.randn(rows, *batch_shape[1:]), rng.randn(rows, 1)
