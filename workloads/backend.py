"""What a backend is: a framework in one mode, and the Keras of one api, under one set of names.

A backend is where versions end: nobody else asks which one this is. TensorFlow has its own file,
and so have the other frameworks that Keras 3 computes with; this one imports none of them.
"""

import random
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from workloads import fingerprint, kerases


class Evidence(NamedTuple):
    """What one more step, run after everything is measured, shows of where a model runs."""

    weights: Tuple[str, ...] = ()  # devices
    outputs: Tuple[str, ...] = ()
    # Device and kind of every operation of the step; empty where no statistics are to be had.
    operations: List[Tuple[str, str]] = []  # noqa: RUF012 (a tuple's default, and only read)
    kernels: Any = None  # how many GPU kernels a profiler saw; None: none looked
    source: str = ""  # where operations or kernels come from, or why there are none


class Backend:
    """A framework in one mode, and the Keras of one api.

    `framework` is `tensorflow`, `jax` or `torch`, `version` its own, `keras` the api's module.
    """

    framework = ""
    title = ""
    # Whether the user's own code runs op by op, whatever Keras makes of a training step.
    executes_eagerly = True
    # Whether `fit` takes a dataset.
    fits_datasets = True

    def __init__(self, keras, api, version):
        self.keras = keras
        self.api = api
        self.version = version

    def seed(self, seeds):
        """Start from nothing: clear Keras and the graph, then seed every generator."""
        self.keras.backend.clear_session()
        np.random.seed(seeds.numpy)  # noqa: NPY002 (the origin's way, and its numbers)
        random.seed(seeds.python)
        self._seed_framework(seeds.tensorflow)

    def _seed_framework(self, seed):
        """Seed the framework's own generator, where seeding Keras's is not all there is."""
        raise NotImplementedError

    def dataset(self, batches) -> tuple:
        """Return a dataset that repeats `batches` without end; in graph mode, and what it yields.

        Stopped (`unsupported`) where nothing can make one.
        """
        raise NotImplementedError

    def check_onednn(self):
        """Stopped (`unsupported`) where TensorFlow's oneDNN kernels cannot be chosen."""
        raise NotImplementedError

    def set_threads(self, number):
        """Let the framework use so many threads within and between operations."""
        raise NotImplementedError

    def set_precision(self, name):
        """Have models compute in this precision: Stopped (`unsupported`) where they cannot."""
        if name != "float32":
            raise NotImplementedError

    def adam(self, rate):
        """Return the optimizer of all models."""
        # By position: old versions call the learning rate `lr`, new ones `learning_rate`.
        return self.keras.optimizers.Adam(rate)

    def traced(self, inputs) -> str:
        """How a layer that is called with `inputs` is executing.

        `eager`, `function_graph` (it is being traced) or `plain_graph`.
        """
        raise NotImplementedError

    def devices(self) -> List[Tuple[str, str]]:
        """Names and kinds (CPU, GPU) of the devices that the framework sees."""
        raise NotImplementedError

    def evidence(self, model, x, step) -> Evidence:
        """What `step()`, once more and watched, shows of where the model runs."""
        raise NotImplementedError

    def describe(self) -> Dict[str, Any]:
        """Facts about framework and Keras: versions, what they were built with, devices."""
        keras = self.keras
        file = getattr(keras, "__file__", None)
        return {
            "numpy": np.__version__,
            "framework": {"name": self.framework, "version": self.version},
            "keras": {
                "api": self.api,
                "version": kerases.version(keras),
                "module": keras.__name__,
                "file": fingerprint.portable(file) if file else None,
                "float": keras.backend.floatx(),
                "image_data_format": keras.backend.image_data_format(),
            },
            "devices": [name for name, _ in self.devices()],
        }

    def on_each_step(self, on_begin, on_end):
        """Return a callback for `fit` that calls these two around every step."""

        class Steps(self.keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):  # noqa: ARG002
                on_begin()

            def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
                on_end()

            # What Keras before 2.3 calls; newer ones call it from the two above.
            on_batch_begin, on_batch_end = on_train_batch_begin, on_train_batch_end

        return Steps()
