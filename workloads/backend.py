"""What a backend is: a framework in one mode, and the Keras of one api, under one set of names.

A backend is where versions end: nobody else asks which one this is. TensorFlow has its own file,
and so have the other frameworks that Keras 3 computes with; this one imports none of them.
"""

import random
from importlib import import_module
from inspect import signature
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from workloads import fingerprint, kerases
from workloads.protocol import Stopped

# Types that every Keras can be told to compute in; what else a precision may be is a policy.
FLOATS = ("float16", "float32", "float64")
OPTIMIZERS = {
    "adam": "Adam",
    "sgd": "SGD",
    "rmsprop": "RMSprop",
    "adagrad": "Adagrad",
    "adadelta": "Adadelta",
    "adamax": "Adamax",
    "nadam": "Nadam",
}


class Evidence(NamedTuple):
    """What one more step, run after everything is measured, shows of where a model runs."""

    weights: Tuple[str, ...] = ()  # devices
    outputs: Tuple[str, ...] = ()
    # Device and kind of every operation of the step; empty where no statistics are to be had.
    operations: List[Tuple[str, str]] = []  # noqa: RUF012 (a tuple's default, and only read)
    kernels: Any = None  # how many GPU kernels a profiler saw; None: none looked
    source: str = ""  # where operations or kernels come from, or why there are none


class Nowhere:
    """A context that changes nothing: Python 3.6 has none in its library."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Backend:
    """A framework in one mode, and the Keras of one api.

    `framework` is `tensorflow`, `jax` or `torch`, `version` its own, `keras` the api's module.
    """

    framework = ""
    title = ""
    # Whether the user's own code runs op by op, whatever Keras makes of a training step.
    executes_eagerly = True
    # Whether `fit` takes a dataset, and a generator.
    fits_datasets = True
    fits_generators = True
    # Whether `fit` cuts a tensor into batches, as it does with arrays.
    slices_tensors = True

    def __init__(self, keras, api, version):
        self.keras = keras
        self.api = api
        self.version = version
        self._precision = "float32"

    @property
    def takes_bare_samples(self) -> bool:
        """Whether a generator or sequence may yield samples without a tuple around them.

        Keras 3 insists on the tuple, and Keras 2 knows none of one column.
        """
        return kerases.release(kerases.version(self.keras)) < kerases.THREE

    def seed(self, seeds):
        """Start from nothing: clear Keras and the graph, then seed every generator."""
        self.keras.backend.clear_session()
        np.random.seed(seeds.numpy)  # noqa: NPY002 (the origin's way, and its numbers)
        random.seed(seeds.python)
        self._seed_framework(seeds.tensorflow)

    def _seed_framework(self, seed):
        """Seed the framework's own generator, where seeding Keras's is not all there is."""
        raise NotImplementedError

    def tensor(self, array):
        """Return an array as a tensor of the framework; in graph mode one that sessions read."""
        raise NotImplementedError

    def sequence(self):
        """Return the class that Keras has for data that is asked for by its index."""
        utils = self.keras.utils
        found = getattr(utils, "PyDataset", None) or getattr(utils, "Sequence", None)
        # Some releases do not lift it out of the module that it stands in.
        return found or import_module(f"{self.keras.__name__}.utils.data_utils").Sequence

    def dataset(self, elements):
        """Return a tf.data.Dataset of these; Stopped (`unsupported`) where nothing makes one."""
        raise NotImplementedError

    def next_of(self, dataset):
        """In graph mode, what the one iterator of a dataset yields next, as tensors."""
        raise NotImplementedError

    def first_of(self, dataset):
        """Return the first element of a dataset, as arrays."""
        raise NotImplementedError

    def caller(self, model, feed, *, as_function):
        """Return what calls the model with a batch, and reads its answer back."""
        raise NotImplementedError

    def trainer(self, model, feed, *, as_function):
        """Return a training step of the user's own, which reads the loss back, and its end.

        The end puts what was trained back into the model, where the loop keeps it elsewhere.
        """
        raise NotImplementedError

    def scope(self, strategy, request):
        """Return a context in which a model is made to be distributed by this strategy.

        Stopped (`unsupported`) where it cannot be, or not for the request's method.
        """
        raise NotImplementedError

    def check_onednn(self):
        """Stopped (`unsupported`) where TensorFlow's oneDNN kernels cannot be chosen."""
        raise NotImplementedError

    def set_threads(self, number):
        """Let the framework use so many threads within and between operations."""
        raise NotImplementedError

    def set_precision(self, name):
        """Have models compute in this precision: Stopped (`unsupported`) where they cannot.

        It holds until it is set again; `float32` is what every Keras starts with.
        """
        if name == self._precision:
            return
        if name in FLOATS:
            self.keras.backend.set_floatx(name)
        self._set_policy(name)
        self._precision = name

    def _set_policy(self, name):
        """Set the precision's policy, where Keras has policies."""
        raise NotImplementedError

    def check_model(self, request, *, has_dropout):
        """Stopped (`unsupported`) where a model is known not to run as the request says."""

    def check_jit(self, model):
        """Stopped (`unsupported`) where compile() has no jit_compile."""
        if "jit_compile" not in signature(type(model).compile).parameters:
            raise Stopped(
                "unsupported",
                "jit_compile",
                f"compile() of {self.api} {kerases.version(self.keras)} has no jit_compile"
                f"{'' if self.executes_eagerly else ' in graph mode'}.",
            )

    def optimizer(self, name, rate):
        """Return one of Keras's optimizers, in the form that this mode and this release have."""
        # By position: old versions call the learning rate `lr`, new ones `learning_rate`.
        return getattr(self.keras.optimizers, OPTIMIZERS[name])(rate)

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
