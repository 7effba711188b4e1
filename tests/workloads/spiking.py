"""Every twentieth step takes 30 ms more than the others."""

import time


def build_model(keras, batch_shape):
    layers = keras.layers
    inputs = layers.Input(batch_shape=batch_shape)
    hidden = layers.Dense(16, activation="tanh")(inputs)
    outputs = layers.Dense(1, activation="sigmoid")(hidden)
    model = keras.models.Model(inputs, outputs)
    model.compile("sgd", "binary_crossentropy")
    return model


def make_data(batch_shape, rng):
    x = rng.randn(batch_shape[0], 30)
    return x, (x[:, :1] > 0).astype("float32")


STEPS = []


def step(model, batch):
    STEPS.append(None)
    if len(STEPS) % 20 == 0:
        time.sleep(0.03)
    return model.train_on_batch(*batch)
