"""One wide convolution over sequences of 400 steps, trained batch by batch.

The layers and shapes of https://stackoverflow.com/questions/58441514 and
https://github.com/tensorflow/tensorflow/issues/33487.
"""

BATCH_SHAPES = [(32, 400, 16)]


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    x = layers.Conv1D(128, 400, strides=4, padding="same")(inputs)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(layers.Dropout(0.5)(x))
    outputs = layers.Dense(1, activation="sigmoid")(x)
    model = keras.models.Model(inputs, outputs)
    model.compile("adam", "binary_crossentropy")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.randint(0, 2, (batch_shape[0], 1))
