"""The only file that imports JAX and PyTorch: Keras 3 computes with them as with TensorFlow."""

import os
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from workloads import forms, xplane
from workloads.backend import Backend, Evidence, Nowhere
from workloads.known_faults import RECURRENT
from workloads.protocol import Stopped

_GPUS = ("cuda", "gpu", "rocm")  # platforms of JAX


class _Keras3(Backend):
    """Keras 3 on anything but TensorFlow."""

    def dataset(self, elements):
        """Return a `tf.data.Dataset`: the same input as for TensorFlow, where that is there."""
        if find_spec("tensorflow") is None:
            self._only_tensorflow("no_dataset", "A dataset is a tf.data.Dataset")
        kind = import_module("tensorflow").data.Dataset
        return forms.dataset_of(kind, elements, lambda array: array)

    def first_of(self, dataset):
        """Return the first element of a dataset, as arrays."""
        return next(iter(dataset.as_numpy_iterator()))

    def tensor(self, array):
        """Return an array as the framework's tensor, of the type that models compute in."""
        is_plain = array.dtype == "float64"
        return self.keras.ops.convert_to_tensor(
            array, self.keras.backend.floatx() if is_plain else None
        )

    def as_inputs(self, x):
        """A batch's samples as tensors of the type that models take."""
        floatx, convert = self.keras.backend.floatx(), self.keras.ops.convert_to_tensor
        return forms.mapped(lambda a: convert(a, floatx if _is_float(a) else None), x)

    def scope(self, strategy, request):
        """A context without a strategy."""
        del request
        if strategy:
            self._only_tensorflow("strategy", "A strategy is one of tf.distribute")
        return Nowhere()

    def check_onednn(self):
        """Stopped: there is nothing to choose."""
        self._only_tensorflow("onednn", "TF_ENABLE_ONEDNN_OPTS is TensorFlow's")

    def _set_policy(self, name):
        self.keras.config.set_dtype_policy(name)

    def _only_tensorflow(self, kind, what):
        raise Stopped(
            "unsupported",
            kind,
            f"{what}: this environment computes with {self.title} and has no TensorFlow.",
        )

    def _loss(self, model):
        """The mean loss of targets, answers and weights."""
        function, ops = self.keras.losses.get(model.loss), self.keras.ops

        def loss(targets, answers, weights=None):
            values = function(targets, answers)
            return ops.mean(values if weights is None else values * weights)

        return loss


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

    def set_threads(self, number):
        """Stopped: JAX has no such setting."""
        del number
        raise Stopped(
            "unsupported", "threads", "JAX has no setting for the number of its CPU threads."
        )

    def check_model(self, request, *, has_dropout):
        """Stopped for recurrent layers in float16: their weights start as an orthogonal matrix."""
        del has_dropout
        if request.model in RECURRENT and request.knobs.get("precision") == "float16":
            raise Stopped(
                "unsupported",
                "precision",
                "JAX %s factorises no matrix in float16, and the weights of a recurrent layer "
                "start as a factor of one." % self.version,
            )

    def caller(self, model, feed, *, as_function):
        """Call the model, or a function of its state that jax.jit compiled; read the answer."""
        follow = feed.form.next
        if not as_function:
            return lambda: np.asarray(model(self.as_inputs(follow()[0])))
        run = self._jax.jit(lambda *told: model.stateless_call(*told)[0])
        state = [
            [variable.value for variable in variables]
            for variables in (model.trainable_variables, model.non_trainable_variables)
        ]
        return lambda: np.asarray(run(*state, self.as_inputs(follow()[0])))

    def trainer(self, model, feed, *, as_function):
        """A loop over the state of model and optimizer, as Keras's guide for JAX writes it."""
        follow, optimizer, loss = feed.form.next, model.optimizer, self._loss(model)
        optimizer.build(model.trainable_variables)
        scale = getattr(optimizer, "stateless_scale_loss", None)

        def compute(trained, others, x, columns, slots):
            answers, others = model.stateless_call(trained, others, x, training=True)
            value = loss(columns[0], answers, *columns[1:])
            return (scale(slots, value) if scale else value), (value, others)

        differentiate = self._jax.value_and_grad(compute, has_aux=True)

        def step(state, x, columns):
            trained, others, slots = state
            (_, (value, others)), gradients = differentiate(trained, others, x, columns, slots)
            trained, slots = optimizer.stateless_apply(slots, gradients, trained)
            return value, (trained, others, slots)

        run = self._jax.jit(step) if as_function else step
        owners = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
        state = [tuple([variable.value for variable in owned] for owned in owners)]

        def call():
            x, *columns = follow()
            value, state[0] = run(state[0], self.as_inputs(x), [self.tensor(c) for c in columns])
            return float(value)

        def finish():
            for owned, values in zip(owners, state[0]):
                for variable, value in zip(owned, values):
                    variable.assign(value)

        return call, finish

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

    def set_threads(self, number):
        """Threads within and between operations."""
        self._torch.set_num_threads(number)
        self._torch.set_num_interop_threads(number)

    def caller(self, model, feed, *, as_function):
        """Call the model without gradients, and read the answer."""
        self._check_function(as_function)
        torch, follow = self._torch, feed.form.next

        def call():
            with torch.no_grad():
                return model(self.as_inputs(follow()[0])).detach().cpu().numpy()

        return call

    def trainer(self, model, feed, *, as_function):
        """A loop with PyTorch's gradients, as Keras's guide for PyTorch writes it."""
        self._check_function(as_function)
        torch, follow, loss = self._torch, feed.form.next, self._loss(model)
        optimizer, variables = model.optimizer, model.trainable_variables
        scale = getattr(optimizer, "scale_loss", None)

        def call():
            x, *columns = follow()
            model.zero_grad()
            answers = model(self.as_inputs(x), training=True)
            value = loss(self.tensor(columns[0]), answers, *map(self.tensor, columns[1:]))
            (scale(value) if scale else value).backward()
            with torch.no_grad():
                optimizer.apply([v.value.grad for v in variables], variables)
            return float(value)

        return call, _nothing

    def _check_function(self, as_function):
        if as_function:
            raise Stopped(
                "unsupported",
                "method",
                "A function of the user's own would be torch.compile's, which needs a C++ compiler "
                "beside the environment.",
            )

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


def _nothing():
    """Leave the model as it is: it is what was trained."""


def _is_float(array) -> bool:
    return "float" in str(array.dtype)


def _jax_devices(array) -> tuple:
    return tuple(sorted(str(device) for device in array.devices()))
