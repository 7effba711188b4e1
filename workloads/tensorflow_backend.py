"""The only file that imports TensorFlow: the differences of its releases end here."""

import os
import sys
from importlib import import_module

from workloads import kerases, xplane
from workloads.backend import Backend, Evidence
from workloads.protocol import Stopped

_TF2 = (2, 0)
_NO_GPU = "-1"  # what the host gives to a case for the CPU


class TensorFlow(Backend):
    """TensorFlow in one mode, and any of the Kerases that there are for it."""

    framework = "tensorflow"
    title = "TensorFlow"

    def __init__(self, tf, keras, api):
        super().__init__(keras, api, tf.__version__)
        self.tf = tf

    @property
    def executes_eagerly(self) -> bool:
        """Whether the user's own code runs op by op."""
        return self.tf.executing_eagerly()

    @property
    def fits_datasets(self) -> bool:
        """Whether `fit` takes a dataset."""
        return not kerases.is_separate(self.keras, self.api)

    def seed(self, seeds):
        """As everywhere; the graph is cleared as well."""
        self.tf.compat.v1.reset_default_graph()
        super().seed(seeds)

    def _seed_framework(self, seed):
        # Clearing Keras may have made a new default graph, whose seed this is.
        if _is_tf1(self.tf):
            self.tf.compat.v1.set_random_seed(seed)
        else:
            self.tf.random.set_seed(seed)

    def adam(self, rate):
        """Return the optimizer, in the form that this mode and this release have."""
        optimizers = self.keras.optimizers
        if not hasattr(optimizers, "Adam"):
            # The `keras` package of 2.5 to 2.9 has no optimizers by name, only this way to them.
            return optimizers.get({"class_name": "Adam", "config": {"learning_rate": rate}})
        # From 2.11 on, the graph mode's own training loop takes none but the older optimizers.
        lacks_graph = not hasattr(optimizers.Adam, "get_updates")
        if not self.executes_eagerly and lacks_graph and hasattr(optimizers, "legacy"):
            return optimizers.legacy.Adam(rate)
        return super().adam(rate)

    def dataset(self, batches):
        """Return a dataset of tensors in memory, and in graph mode what its one iterator yields."""
        if self.executes_eagerly:
            return self.tf.data.Dataset.from_tensor_slices(tuple(batches)).repeat(), None
        return self._graph_dataset(batches)

    def _graph_dataset(self, batches):
        """The arrays live in variables that are fed once.

        As constants they would be part of the graph, which may not exceed 2 GB.
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
        if kerases.is_separate(self.keras, self.api):
            if _is_tf1(self.tf):
                return self.keras.backend.get_session()
            return self.tf.compat.v1.keras.backend.get_session()
        # Where Keras hides it in TensorFlow 2, the module of another function of it still has it.
        return sys.modules[self.keras.backend.clear_session.__module__].get_session()

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
            return Evidence(**self._session_statistics(model, step))
        found = Evidence(
            weights=tuple(sorted({_device(weight) for weight in model.weights})),
            outputs=self._output_devices(model, x),
        )
        if hasattr(self.tf, "profiler") and hasattr(self.tf.profiler, "experimental"):
            profiler = self.tf.profiler.experimental
            kernels = xplane.watch(profiler.start, profiler.stop, step)
            return found._replace(kernels=kernels, source="a profile of one step")
        return found._replace(**self._eager_statistics(step))

    def _output_devices(self, model, x):
        if kerases.is_separate(self.keras, self.api):
            return ()  # it computes through a session's graph, and answers with arrays
        # Calling the model, unlike predicting with it, leaves its answer where it was computed.
        return (model(self.tf.constant(x, model.inputs[0].dtype)).device,)

    def _session_statistics(self, model, step):
        """Have the session that trains keep statistics for one step.

        SOFTWARE_TRACE tells every operation's device. FULL_TRACE also asks CUPTI for the GPU's
        kernels, and where CUPTI is missing TensorFlow 1 aborts: the measurement would be lost.
        """
        v1 = self.tf.compat.v1
        metadata = v1.RunMetadata()
        function = model.train_function
        function.run_options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
        function.run_metadata = metadata
        function._callable_fn = None  # noqa: SLF001 (or it would keep the options that it has)
        step()
        return self._statistics(metadata)

    def _eager_statistics(self, step):
        context = import_module("tensorflow.python.eager.context")
        context.enable_run_metadata()
        step()
        metadata = context.export_run_metadata()
        context.disable_run_metadata()
        return self._statistics(metadata)

    def _statistics(self, metadata):
        operations = [
            (device.device, _kind(node))
            for device in metadata.step_stats.dev_stats
            for node in device.node_stats
        ]
        found = "the statistics of one step"
        missing = f"TensorFlow {self.version} keeps no statistics of such a step"
        return {"operations": operations, "source": found if operations else missing}


def load(api, mode) -> TensorFlow:
    """Import TensorFlow and the Keras of `api`; set the mode, or leave it as it comes."""
    # Memory of a GPU is taken as it is needed. Of all ways to say so, this one alone is the same
    # for every TensorFlow since 1.14, for functions and for the sessions of either Keras.
    if os.environ.get("CUDA_VISIBLE_DEVICES") != _NO_GPU:
        os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    import tensorflow as tf  # noqa: PLC0415 (importing it is what is timed)

    if mode == "graph" and not _is_tf1(tf):
        tf.compat.v1.disable_eager_execution()
    if mode == "eager" and _is_tf1(tf):
        tf.compat.v1.enable_eager_execution()
    keras = tf.keras if api == "tf.keras" else import_module(api)
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


def _is_tf1(tf) -> bool:
    return kerases.release(tf.__version__) < _TF2


def _device(weight) -> str:
    """Device of a variable: of TensorFlow's, or of the one that is inside of Keras 3's."""
    return weight.device if hasattr(weight, "device") else weight.value.device


def _kind(node) -> str:
    """`MatMul`, out of a label such as `dense/MatMul = MatMul(a, b)`, or what stands for it."""
    label = node.timeline_label.partition(" = ")[2] or node.node_name
    return label.partition("(")[0].rpartition(":")[2].rpartition("/")[2]


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
