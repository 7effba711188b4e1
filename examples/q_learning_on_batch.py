"""The same step of Q-learning with predict_on_batch and train_on_batch, as was advised there.

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
    target = model.predict_on_batch(state)
    target = getattr(target, "numpy", lambda: target)()  # TensorFlow 2.0 and 2.1 return a tensor
    target[:, 0] = reward[:, 0]
    model.train_on_batch(state, target)
