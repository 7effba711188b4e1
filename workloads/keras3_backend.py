"""The only file that imports JAX and PyTorch: Keras 3 computes with them as with TensorFlow."""

import os
from importlib import import_module
from importlib.util import find_spec

from workloads import xplane
from workloads.backend import Backend, Evidence
from workloads.protocol import Stopped

_GPUS = ("cuda", "gpu", "rocm")  # platforms of JAX


class _Keras3(Backend):
    """Keras 3 on anything but TensorFlow."""

    def dataset(self, batches):
        """Return a `tf.data.Dataset`: the same input as for TensorFlow, where that is there."""
        if find_spec("tensorflow") is None:
            raise Stopped(
                "unsupported",
                "no_dataset",
                f"The input `dataset` is a tf.data.Dataset: this environment computes with "
                f"{self.title} and has no TensorFlow.",
            )
        data = import_module("tensorflow").data
        return data.Dataset.from_tensor_slices(tuple(batches)).repeat(), None


class Jax(_Keras3):
    """Keras 3 on JAX: its steps are compiled by `jax.jit`."""

    framework = "jax"
    title = "JAX"

    def __init__(self, keras, api):
        self._jax = import_module("jax")
        super().__init__(keras, api, self._jax.__version__)

    def _seed_framework(self, seed):
        # JAX has no generator of its own: Keras hands it the keys that it makes from this one.
        self.keras.utils.set_random_seed(seed)

    def traced(self, inputs):
        """JAX calls a layer with tracers while it compiles a step, else with arrays."""
        return "function_graph" if isinstance(inputs, self._jax.core.Tracer) else "eager"

    def devices(self):
        """Names and kinds of JAX's devices."""
        return [
            (str(device), "GPU" if device.platform in _GPUS else device.platform.upper())
            for device in self._jax.devices()
        ]

    def evidence(self, model, x, step):
        """Devices of weights and outputs, and a profile of one more step."""
        answer = model(self._jax.numpy.asarray(x, "float32"))
        profiler = self._jax.profiler
        return Evidence(
            weights=tuple(sorted({n for w in model.weights for n in _jax_devices(w.value)})),
            outputs=_jax_devices(answer),
            kernels=xplane.watch(profiler.start_trace, profiler.stop_trace, step),
            source="a profile of one step",
        )


class Torch(_Keras3):
    """Keras 3 on PyTorch: op by op, unless Keras compiles the step."""

    framework = "torch"
    title = "PyTorch"

    def __init__(self, keras, api):
        self._torch = import_module("torch")
        super().__init__(keras, api, str(self._torch.__version__))

    def _seed_framework(self, seed):
        self.keras.utils.set_random_seed(seed)

    def traced(self, inputs):
        """A compiled step is traced without calling what watches it."""
        del inputs
        return "eager"

    def devices(self):
        """The CPU, and the GPUs that PyTorch sees."""
        gpus = range(self._torch.cuda.device_count())
        return [("cpu", "CPU"), *((f"cuda:{index}", "GPU") for index in gpus)]

    def evidence(self, model, x, step):
        """Devices of weights and outputs, and a profile of one more step."""
        torch = self._torch
        with torch.no_grad():
            answer = model(self.keras.ops.convert_to_tensor(x, "float32"))
        kinds = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profile:
            step()
        kernels = [event for event in profile.events() if "CUDA" in str(event.device_type)]
        return Evidence(
            weights=tuple(sorted({str(weight.value.device) for weight in model.weights})),
            outputs=(str(answer.device),),
            # A profiler that could not look also returns none.
            kernels=len(kernels) or None,
            source="a profile of one step",
        )


_BACKENDS = {"jax": Jax, "torch": Torch}


def load(framework, api, mode) -> Backend:
    """Import the framework, and Keras 3 for it.

    Stopped (`unsupported`) for what only TensorFlow has: its own Kerases, and the graph mode.
    """
    backend = _BACKENDS[framework]
    if api != "keras":
        raise Stopped("unsupported", "api", f"{api} computes with TensorFlow, not {backend.title}.")
    if mode == "graph":
        raise Stopped(
            "unsupported",
            "mode",
            f"The graph mode is TensorFlow's: {backend.title} has none. Keras compiles its steps "
            "as it comes, which is the mode `eager`.",
        )
    os.environ["KERAS_BACKEND"] = framework  # read when Keras is imported
    import_module(framework)
    return backend(import_module("keras"), api)


def _jax_devices(array) -> tuple:
    return tuple(sorted(str(device) for device in array.devices()))
