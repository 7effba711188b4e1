"""The origin's small model on one batch, as asv times it."""

import numpy as np
import tensorflow as tf


class Small:
    """tf.keras in a graph: Conv1D, 32 x 140 x 30, numpy, train_on_batch."""

    timeout = 300.0
    warmup_time = 0.5

    def setup(self):
        """Build the model, and train one batch: that call builds the graph."""
        tf.compat.v1.disable_eager_execution()
        keras, layers, rng = tf.keras, tf.keras.layers, np.random.RandomState(0)
        self.x = rng.normal(size=(32, 140, 30)).astype("float32")
        self.y = rng.randint(0, 2, size=(32, 1)).astype("float32")
        self.model = keras.Sequential(
            [
                layers.Conv1D(128, 40, strides=4, padding="same", input_shape=(140, 30)),
                layers.GlobalAveragePooling1D(),
                layers.Dropout(0.5),
                layers.Dense(64, activation="relu"),
                layers.Dense(1, activation="sigmoid"),
            ]
        )
        self.model.compile(keras.optimizers.Adam(1e-4), "binary_crossentropy")
        self.model.train_on_batch(self.x, self.y)

    def time_train_on_batch(self):
        """One step."""
        self.model.train_on_batch(self.x, self.y)
