"""The only file that imports TensorFlow and Keras: their differences end here."""

import os
import random
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from workloads import fingerprint
from workloads.protocol import Stopped

# The first Keras package that only redirects to tf.keras, and so takes what tf.keras takes.
_REDIRECTING = (2, 4)


class Backend(NamedTuple):
    """TensorFlow in one mode, and the Keras of one api."""

    tf: Any
    keras: Any
    api: str

    @property
    def executes_eagerly(self) -> bool:
        """Whether the user's own code runs op by op."""
        return self.tf.executing_eagerly()

    @property
    def is_separate(self) -> bool:
        """Whether this Keras is a code base of its own, apart from tf.keras."""
        return self.api == "keras" and _release(self.keras.__version__) < _REDIRECTING

    @property
    def fits_datasets(self) -> bool:
        """Whether `fit` takes a dataset."""
        return not self.is_separate

    def seed(self, seeds):
        """Start from nothing: clear Keras and the graph, then seed every generator."""
        self.keras.backend.clear_session()
        self.tf.compat.v1.reset_default_graph()
        np.random.seed(seeds.numpy)  # noqa: NPY002 (the origin's way, and its numbers)
        random.seed(seeds.python)
        if is_tf1(self.tf):
            self.tf.compat.v1.set_random_seed(seeds.tensorflow)
        else:
            self.tf.random.set_seed(seeds.tensorflow)

    def eager_dataset(self, batches):
        """Return a dataset of tensors in memory that repeats `batches` without end."""
        return self.tf.data.Dataset.from_tensor_slices(tuple(batches)).repeat()

    def graph_dataset(self, batches):
        """Return such a dataset, and the tensors that its iterator yields next.

        The arrays live in variables that are fed once: as constants they would be part of the
        graph, which may not exceed 2 GB.
        """
        v1 = self.tf.compat.v1
        session = self._session()
        variables = []
        for array in batches:
            placeholder = v1.placeholder(array.dtype, array.shape)
            # In no collection: neither Keras nor a saver shall take it for one of the model's.
            variable = v1.Variable(placeholder, trainable=False, collections=[], use_resource=True)
            session.run(variable.initializer, {placeholder: array})
            variables.append(variable.read_value())
        dataset = self.tf.data.Dataset.from_tensor_slices(tuple(variables)).repeat()
        iterator = v1.data.make_initializable_iterator(dataset)
        session.run(iterator.initializer)
        return dataset, iterator.get_next()

    def _session(self):
        """Return the session that this Keras trains in."""
        if self.api == "keras" and is_tf1(self.tf):
            return self.keras.backend.get_session()
        return self.tf.compat.v1.keras.backend.get_session()

    def on_each_step(self, on_begin, on_end):
        """Return a callback for `fit` that calls these two around every step."""

        class Steps(self.keras.callbacks.Callback):
            def on_batch_begin(self, batch, logs=None):  # noqa: ARG002
                on_begin()

            def on_batch_end(self, batch, logs=None):  # noqa: ARG002
                on_end()

        return Steps()

    def in_function_graph(self) -> bool:
        """Whether the code that runs now is being traced into a function."""
        return type(self.tf.compat.v1.get_default_graph()).__name__ == "FuncGraph"


def load(api, mode=None) -> Backend:
    """Import TensorFlow and the Keras of `api`; set the mode, or leave it as it comes."""
    import tensorflow as tf  # noqa: PLC0415 (importing it is what is timed)

    if mode == "graph" and not is_tf1(tf):
        tf.compat.v1.disable_eager_execution()
    if mode == "eager" and is_tf1(tf):
        tf.compat.v1.enable_eager_execution()
    return Backend(tf, tf.keras if api == "tf.keras" else import_module("keras"), api)


def is_tf1(tf) -> bool:
    """Whether this is TensorFlow 1."""
    return tf.__version__.startswith("1.")


def check_versions(backend, expected):
    """Stopped (`invalid`) unless TensorFlow and the Keras in use are the expected ones."""
    found = [("TensorFlow", backend.tf.__version__, expected.tensorflow)]
    if backend.api == "keras":
        found.append(("Keras", backend.keras.__version__, expected.keras))
    for name, version, wanted in found:
        if version != wanted:
            raise Stopped(
                "invalid",
                "version",
                f"{name} {version} is installed where {wanted} is expected.",
            )


def check_keras(backend, model):
    """Stopped (`invalid`) unless the model is one of the api's Keras.

    A layer's class path does not tell: in some versions tf.keras and the private
    tf.python.keras share it. The module's name and the optimizer's path do.
    """
    module = _one_name(backend.keras.__name__)
    path = class_path(model.optimizer)
    if backend.api == "keras":
        is_right_module = module == "keras"
    else:
        is_right_module = module.startswith("tensorflow.") and module != "tensorflow.python.keras"
    prefix = "keras." if backend.is_separate else "tensorflow.python.keras.optimizer_v2."
    if not is_right_module or not path.startswith(prefix):
        raise Stopped(
            "invalid",
            "wrong_keras",
            f"Asked for {backend.api}, but the Keras in use is {module} with the optimizer {path}, "
            f"where one of {prefix}* is expected.",
        )


def check_device(backend, device) -> dict:
    """Proof of where the model runs; Stopped (`invalid`) when that is not where it should."""
    devices = list_devices(backend.tf)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "unset")
    found = "gpu" if any(kind == "GPU" for _, kind in devices) else "cpu"
    how = f"CUDA_VISIBLE_DEVICES={visible}; TensorFlow lists {', '.join(n for n, _ in devices)}"
    if found != device:
        raise Stopped(
            "invalid", "device", f"Asked for the {device}, would run on the {found}: {how}."
        )
    return {"device": found, "how": how}


def list_devices(tf):
    """Names and kinds of the devices that TensorFlow sees, without claiming their memory."""
    return [
        (device.name, device.device_type)
        for device in tf.config.experimental.list_physical_devices()
    ]


def class_path(instance) -> str:
    """Module and name of an object's class."""
    return f"{_one_name(type(instance).__module__)}.{type(instance).__qualname__}"


def _one_name(module) -> str:
    """TensorFlow's package has two names in 1.15 to 2.1; which one shows is chance."""
    return module.replace("tensorflow_core.", "tensorflow.", 1)


def describe(backend) -> dict:
    """Facts about TensorFlow and Keras: versions, what they were built with, devices, threads."""
    tf, keras = backend.tf, backend.keras
    threading = tf.config.threading
    return {
        "numpy": np.__version__,
        "tensorflow": {
            "version": tf.__version__,
            "git_version": tf.version.GIT_VERSION,
            "compiler": tf.version.COMPILER_VERSION,
            "cuda": _cuda(tf),
        },
        "keras": {
            "api": backend.api,
            "version": keras.__version__,
            "module": keras.__name__,
            "file": fingerprint.portable(keras.__file__) if hasattr(keras, "__file__") else None,
            "float": keras.backend.floatx(),
            "image_data_format": keras.backend.image_data_format(),
        },
        "devices": [name for name, _ in list_devices(tf)],
        "tensorflow_threads": {
            "intra_op": threading.get_intra_op_parallelism_threads(),
            "inter_op": threading.get_inter_op_parallelism_threads(),
        },
    }


def _cuda(tf) -> dict:
    """What this TensorFlow was built with, as far as its version can say."""
    found = {"built_with": tf.test.is_built_with_cuda()}
    if hasattr(tf.sysconfig, "get_build_info"):  # 2.3 and later
        info = dict(tf.sysconfig.get_build_info())
        found.update(cuda=info.get("cuda_version"), cudnn=info.get("cudnn_version"))
    else:
        info = import_module("tensorflow.python.platform.build_info")
        found.update(
            cuda=getattr(info, "cuda_version_number", None),
            cudnn=getattr(info, "cudnn_version_number", None),
        )
    return found


def _release(version):
    return tuple(int(part) for part in version.split(".")[:2])
