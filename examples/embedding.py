"""An embedding of a million words: the gradient is sparse, the table is not.

https://github.com/tensorflow/tensorflow/issues/32104
"""

BATCH_SHAPES = [(64, 20)]
WORDS = 1_000_000


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape, dtype="int32")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(WORDS, 8)(inputs))
    model = keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", "binary_crossentropy")
    return model


def make_data(batch_shape, rng):
    return rng.randint(0, WORDS, batch_shape), rng.randint(0, 2, (batch_shape[0], 1))
