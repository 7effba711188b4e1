"""The only file that imports TensorFlow: the differences of its releases end here."""

import os
import sys
from importlib import import_module
from importlib.util import find_spec

from workloads import forms, kerases, known_faults, steps, watched, xplane
from workloads.backend import FLOATS, OPTIMIZERS, Backend, Evidence, Nowhere
from workloads.kerases import PRIVATE
from workloads.protocol import Stopped

_TF2 = (2, 0)
_POLICIES = (2, 1)  # of precision; what 2.0 calls so has no mixed_float16
_ONEDNN = (2, 5)
_GENERATORS = (2, 3)  # Keras, stand-alone
_NO_GPU = "-1"  # what the host gives to a case for the CPU


class TensorFlow(Backend):
    """TensorFlow in one mode, and any of the Kerases that there are for it."""

    framework = "tensorflow"
    title = "TensorFlow"

    def __init__(self, tf, keras, api):
        super().__init__(keras, api, tf.__version__)
        self.tf = tf
        self._strategy = None
        self._threads = None

    @property
    def executes_eagerly(self) -> bool:
        """Whether the user's own code runs op by op."""
        return self.tf.executing_eagerly()

    @property
    def fits_datasets(self) -> bool:
        """Whether `fit` takes a dataset."""
        return not kerases.is_separate(self.keras, self.api)

    @property
    def fits_generators(self) -> bool:
        """Whether `fit` takes a generator."""
        old = kerases.release(kerases.version(self.keras)) < _GENERATORS
        return not (old and kerases.is_separate(self.keras, self.api))

    @property
    def slices_tensors(self) -> bool:
        """Whether `fit` cuts a tensor into batches: not one of a graph, or taken for one."""
        return self.executes_eagerly and not kerases.is_separate(self.keras, self.api)

    def seed(self, seeds):
        """As everywhere; the graph is cleared as well."""
        self.tf.compat.v1.reset_default_graph()
        super().seed(seeds)
        if self._threads and not self.executes_eagerly:
            # Keras's own session does not ask for them in every release.
            v1 = self.tf.compat.v1
            number = self._threads
            config = v1.ConfigProto(
                intra_op_parallelism_threads=number,
                inter_op_parallelism_threads=number,
                allow_soft_placement=True,
            )
            self._backend_module().set_session(v1.Session(config=config))

    def _seed_framework(self, seed):
        # Clearing Keras may have made a new default graph, whose seed this is.
        if _is_tf1(self.tf):
            self.tf.compat.v1.set_random_seed(seed)
        else:
            self.tf.random.set_seed(seed)

    def optimizer(self, name, rate):
        """Return the optimizer, in the form that this mode and this release have."""
        optimizers, title = self.keras.optimizers, OPTIMIZERS[name]
        # The private Keras of 2.0 and 2.1 still has TensorFlow 1's by name. Those cannot train
        # eagerly: looking for `None in grads` compares tensors there, and fails.
        is_old = self.api == PRIVATE and self.executes_eagerly and not _is_tf1(self.tf)
        if is_old or not hasattr(optimizers, title):
            # The `keras` package of 2.5 to 2.9 has no optimizers by name, only this way to them.
            return optimizers.get({"class_name": title, "config": {"learning_rate": rate}})
        # From 2.11 on, the graph mode's own training loop takes none but the older optimizers.
        lacks_graph = not hasattr(getattr(optimizers, title), "get_updates")
        if not self.executes_eagerly and lacks_graph and hasattr(optimizers, "legacy"):
            return getattr(optimizers.legacy, title)(rate)
        return super().optimizer(name, rate)

    def tensor(self, array):
        """Return a constant; in graph mode a variable that is fed once.

        As a constant it would be part of the graph, which may not exceed 2 GB. Floats are of the
        type that models compute in, unless the array says another than numpy's own.
        """
        if array.dtype == "float64":
            array = array.astype(self.keras.backend.floatx())
        return self.tf.constant(array) if self.executes_eagerly else self._variable(array)

    def _variable(self, array):
        v1, session = self.tf.compat.v1, self.session()
        placeholder = v1.placeholder(array.dtype, array.shape)
        # In no collection: neither Keras nor a saver shall take it for one of the model's.
        variable = v1.Variable(placeholder, trainable=False, collections=[], use_resource=True)
        session.run(variable.initializer, {placeholder: array})
        return variable.read_value()

    def dataset(self, elements):
        """Return a dataset of tensors in memory: in graph mode of variables that are fed once."""
        hold = (lambda array: array) if self.executes_eagerly else self._variable
        return forms.dataset_of(self.tf.data.Dataset, elements, hold)

    def next_of(self, dataset):
        """What the one iterator of a dataset yields next, in the session."""
        iterator = self.tf.compat.v1.data.make_initializable_iterator(dataset)
        self.session().run(iterator.initializer)
        return iterator.get_next()

    def first_of(self, dataset):
        """Return the first element of a dataset, as arrays."""
        if not self.executes_eagerly:
            return self.session().run(self.next_of(dataset))
        found = next(iter(dataset))
        return forms.each(lambda tensor: tensor.numpy(), found)

    def as_inputs(self, x):
        """A batch's samples as tensors of the type that models take."""
        return steps.numbers(self, x, as_floats=True)

    def as_tensor(self, column):
        """Targets or weights as tensors."""
        return steps.numbers(self, column, as_floats=False)

    def caller(self, model, feed, *, as_function):
        """Call the model in the way of this mode."""
        if self.executes_eagerly:
            self._check_answers("model(x)")
            return steps.eager_caller(self, model, feed, as_function=as_function)
        self._check_not_graph(as_function, "call")
        return steps.graph_caller(self, model, feed)

    def trainer(self, model, feed, *, as_function):
        """Train by a loop of the user's own, in the way of this mode."""
        if self._strategy is not None:
            raise Stopped(
                "unsupported",
                "strategy",
                "A loop of one's own is distributed by strategy.run(), which is another loop.",
            )
        if self.executes_eagerly:
            self._check_answers("a GradientTape")
            return steps.eager_trainer(self, model, feed, as_function=as_function), _nothing
        self._check_not_graph(as_function, "custom_loop")
        return steps.graph_trainer(self, model, feed), _nothing

    def _check_answers(self, what):
        if kerases.is_separate(self.keras, self.api):
            raise Stopped(
                "unsupported",
                "symbolic",
                f"Keras {kerases.version(self.keras)} computes in a graph of its own in every "
                f"mode: {what} finds symbols there and no values.",
            )

    def _check_not_graph(self, as_function, same):
        if as_function:
            raise Stopped(
                "unsupported",
                "method",
                f"In graph mode everything is a graph already, and tf.function adds nothing to "
                f"run: it is the method {same}.",
            )

    def learning_phase(self) -> dict:
        """What a session is fed with to train: dropout is on."""
        phase = self._backend_module().learning_phase
        if hasattr(self._backend_module(), "symbolic_learning_phase"):
            phase = self._backend_module().symbolic_learning_phase
        found = phase()
        return {found: True} if self.tf.is_tensor(found) else {}

    def scope(self, strategy, request):
        """Return the scope of a tf.distribute strategy."""
        self._strategy = self._distributed(strategy, request) if strategy else None
        return self._strategy.scope() if strategy else Nowhere()

    def _distributed(self, name, request):
        self._refuse(
            "strategy",
            (kerases.is_separate(self.keras, self.api), "this Keras knows no tf.distribute"),
            (
                not self.executes_eagerly and request.method in ("train_on_batch", "test_on_batch"),
                f"in graph mode its {request.method} wants eager execution under a strategy",
            ),
            (
                not self.executes_eagerly and request.input.startswith(("tensor", "dataset")),
                "in graph mode a strategy's own session knows no tensors made before the model",
            ),
            (
                kerases.release(self.version) <= _TF2
                and (name, request.method) == ("mirrored", "train_on_batch"),
                "its train_on_batch cannot find its mirrored variables, and ends with an error",
            ),
            *known_faults.of_strategy(
                kerases.release(self.version), request, eagerly=self.executes_eagerly
            ),
        )
        distribute = self.tf.distribute
        if name == "mirrored":
            return distribute.MirroredStrategy()
        return distribute.OneDeviceStrategy(f"/{request.device}:0")

    def check_model(self, request, *, has_dropout):
        """Stopped (`unsupported`) for what this release is known to end with an error on."""
        rules = known_faults.of_model(
            kerases.release(self.version),
            request,
            eagerly=self.executes_eagerly,
            has_dropout=has_dropout,
        )
        self._refuse("release", *rules)

    def _refuse(self, kind, *rules):
        """Stopped (`unsupported`) with the reason of the first rule that holds."""
        for holds, why in rules:
            if holds:
                whole = f"{self.api} {kerases.version(self.keras)}, TensorFlow {self.version}"
                raise Stopped("unsupported", kind, f"{whole}: {why}.")

    def check_onednn(self):
        """TensorFlow heeds TF_ENABLE_ONEDNN_OPTS from 2.5 on."""
        old = kerases.release(self.version) < _ONEDNN
        self._refuse("onednn", (old, "oneDNN cannot be chosen before TensorFlow 2.5"))

    def set_threads(self, number):
        """Threads within and between operations, for functions and for sessions."""
        self.tf.config.threading.set_intra_op_parallelism_threads(number)
        self.tf.config.threading.set_inter_op_parallelism_threads(number)
        self._threads = number

    def _set_policy(self, name):
        policies = getattr(self.keras, "mixed_precision", None)
        experimental = getattr(policies, "experimental", None)
        if hasattr(policies, "set_global_policy"):
            policies.set_global_policy(name)
        elif experimental is not None and kerases.release(self.version) >= _POLICIES:
            experimental.set_policy(name)
        elif name not in FLOATS:
            self._refuse("precision", (True, f"it has no policies, and {name} is one"))

    def session(self):
        """Return the session that this Keras trains in, with its variables initialized."""
        return self._backend_module().get_session()

    def _backend_module(self):
        if kerases.is_separate(self.keras, self.api):
            if _is_tf1(self.tf):
                return self.keras.backend
            return self.tf.compat.v1.keras.backend
        # Where Keras hides it in TensorFlow 2, the module of another function of it still has it.
        return sys.modules[self.keras.backend.clear_session.__module__]

    def traced(self, inputs):
        """How a layer that is called now is executing."""
        del inputs
        if self.tf.executing_eagerly():
            return "eager"
        graph = type(self.tf.compat.v1.get_default_graph()).__name__
        return "function_graph" if graph == "FuncGraph" else "plain_graph"

    def devices(self):
        """Names and kinds of the devices, without claiming their memory."""
        return [
            (device.name, device.device_type)
            for device in self.tf.config.experimental.list_physical_devices()
        ]

    def describe(self):
        """Facts about TensorFlow and Keras: versions, what they were built with, threads."""
        tf, threading = self.tf, self.tf.config.threading
        return dict(
            super().describe(),
            tensorflow={
                "version": tf.__version__,
                "git_version": tf.version.GIT_VERSION,
                "compiler": tf.version.COMPILER_VERSION,
                "cuda": _cuda(tf),
            },
            tensorflow_threads={
                "intra_op": threading.get_intra_op_parallelism_threads(),
                "inter_op": threading.get_inter_op_parallelism_threads(),
            },
        )

    def evidence(self, model, x, step):
        """Devices of one more step: from its statistics, or from a profile of its kernels."""
        if not self.executes_eagerly:
            return Evidence(**watched.told(self.tf, watched.of_session(self.tf, model, step)))
        found = Evidence(
            weights=tuple(sorted({_device(weight) for weight in model.weights})),
            outputs=self._output_devices(model, x),
        )
        if hasattr(self.tf, "profiler") and hasattr(self.tf.profiler, "experimental"):
            profiler = self.tf.profiler.experimental
            kernels = xplane.watch(profiler.start, profiler.stop, step)
            return found._replace(kernels=kernels, source="a profile of one step")
        return found._replace(**watched.told(self.tf, watched.of_functions(step)))

    def _output_devices(self, model, x):
        if kerases.is_separate(self.keras, self.api):
            return ()  # it computes through a session's graph, and answers with arrays
        # Calling the model, unlike predicting with it, leaves its answer where it was computed.
        return (model(self.tf.constant(x, model.inputs[0].dtype)).device,)


def load(api, mode) -> TensorFlow:
    """Import TensorFlow and the Keras of `api`; set the mode, or leave it as it comes."""
    # Memory of a GPU is taken as it is needed. Of all ways to say so, this one alone is the same
    # for every TensorFlow since 1.14, for functions and for the sessions of either Keras.
    if os.environ.get("CUDA_VISIBLE_DEVICES") != _NO_GPU:
        os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    import tensorflow as tf  # noqa: PLC0415 (importing it is what is timed)

    if mode == "graph" and not _is_tf1(tf):
        tf.compat.v1.disable_eager_execution()
    if mode in ("eager", "run_eagerly") and _is_tf1(tf):
        tf.compat.v1.enable_eager_execution()
    keras = _keras(tf, api)
    if mode == "run_eagerly" and kerases.is_separate(keras, api):
        raise Stopped(
            "unsupported",
            "mode",
            f"Keras {kerases.version(keras)} has no run_eagerly: it computes in a graph of its own "
            "in every mode.",
        )
    if mode == "graph" and kerases.release(kerases.version(keras)) >= kerases.THREE:
        # It must not be tried: some releases raise an error, others compute nothing, very fast.
        raise Stopped(
            "unsupported",
            "mode",
            f"Keras {kerases.version(keras)} has no graph mode: after disable_eager_execution() "
            "its fit cannot iterate over its data, and its train_on_batch returns a symbolic "
            "tensor and trains nothing. tf_keras has that mode.",
        )
    return TensorFlow(tf, keras, api)


def _keras(tf, api):
    """The module of the api's Keras, with all of it that is used."""
    if api == "tf.keras":
        return tf.keras
    if api != PRIVATE:
        return import_module(api)
    for part in ("backend", "callbacks", "layers", "losses", "models", "optimizers", "utils"):
        import_module(f"tensorflow.python.keras.{part}")
    if find_spec("tensorflow.python.keras.mixed_precision") is not None:
        import_module("tensorflow.python.keras.mixed_precision")
    return import_module("tensorflow.python.keras")


def _nothing():
    """Leave the model as it is: it is what was trained."""


def _is_tf1(tf) -> bool:
    return kerases.release(tf.__version__) < _TF2


def _device(weight) -> str:
    """Device of a variable: of TensorFlow's, or of the one that is inside of Keras 3's."""
    return weight.device if hasattr(weight, "device") else weight.value.device


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
