"""The models that are raced: `build(keras, batch_shape, optimizer)` returns one, compiled.

Their layers are the origin's. They end in global pooling, so that the number of parameters depends
on the channels of the data and never on their length.
"""

LEARNING_RATE = 1e-4  # of the optimizer Adam


def tiny(keras, batch_shape, optimizer):
    """A model that any machine trains in milliseconds: for tests, not for verdicts."""
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    x = layers.Conv1D(4, 5)(inputs)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dropout(0.5)(x)
    return _compiled(keras, inputs, layers.Dense(1, activation="sigmoid")(x), optimizer)


def small(keras, batch_shape, optimizer):
    """One wide convolution and two dense layers."""
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    x = layers.Conv1D(128, 40, strides=4, padding="same")(inputs)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dropout(0.5)(x)
    x = layers.Dense(64, activation="relu")(x)
    return _compiled(keras, inputs, layers.Dense(1, activation="sigmoid")(x), optimizer)


def medium(keras, batch_shape, optimizer):
    """Six convolutions and a dense head."""
    inputs = x = keras.layers.Input(batch_shape=batch_shape)
    for filters in (64, 128, 256, 256, 128, 64):
        x = keras.layers.Conv1D(filters, 20, padding="valid")(x)
    return _compiled(keras, inputs, _dense_head(keras, x), optimizer)


def large(keras, batch_shape, optimizer):
    """Forty-five convolutions and a dense head; the data must be longer than `small`."""
    conv = keras.layers.Conv1D
    inputs = keras.layers.Input(batch_shape=batch_shape)
    x = conv(64, 400, strides=4, padding="valid")(inputs)
    x = conv(128, 200, padding="valid")(x)
    for _ in range(40):
        x = conv(256, 12, padding="same")(x)
    x = conv(512, 20, strides=2, padding="valid")(x)
    x = conv(1028, 10, strides=2, padding="valid")(x)
    x = conv(256, 1, padding="valid")(x)
    return _compiled(keras, inputs, _dense_head(keras, x), optimizer)


def _dense_head(keras, x):
    layers = keras.layers
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dropout(0.5)(x)
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    return layers.Dense(1, activation="sigmoid")(x)


def _compiled(keras, inputs, outputs, optimizer):
    model = keras.models.Model(inputs, outputs)
    model.compile(optimizer, "binary_crossentropy")
    return model


MODELS = {"tiny": tiny, "small": small, "medium": medium, "large": large}


def build(backend, request, knobs, batch_shape, make=None):
    """Build the model that the request names, compiled as the knobs say, for such batches.

    `make`: a user's own build_model(keras, batch_shape), instead of one of these.
    """
    del knobs
    if make is not None:
        return make(backend.keras, batch_shape)
    return MODELS[request.model](backend.keras, batch_shape, backend.adam(LEARNING_RATE))
