"""Where the operations of one step ran, from the statistics that TensorFlow keeps of it."""

from importlib import import_module


def of_session(tf, model, step) -> dict:
    """Have the session in which Keras runs keep statistics for one step.

    SOFTWARE_TRACE tells every operation's device. FULL_TRACE also asks CUPTI for the GPU's
    kernels, and where CUPTI is missing TensorFlow 1 aborts: the measurement would be lost.
    """
    v1 = tf.compat.v1
    metadata = v1.RunMetadata()
    for name in ("train_function", "test_function", "predict_function"):
        function = getattr(model, name, None)
        if function is not None:  # it is made by the first call that needs it
            function.run_options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
            function.run_metadata = metadata
            function._callable_fn = None  # noqa: SLF001 (it would keep the options that it has)
    step()
    return _told(tf, metadata)


def of_functions(tf, step) -> dict:
    """Have TensorFlow's eager context keep statistics for one step."""
    context = import_module("tensorflow.python.eager.context")
    context.enable_run_metadata()
    step()
    metadata = context.export_run_metadata()
    context.disable_run_metadata()
    return _told(tf, metadata)


def _told(tf, metadata):
    operations = [
        (device.device, _kind(node))
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
    ]
    found = "the statistics of one step"
    missing = f"TensorFlow {tf.__version__} keeps no statistics of such a step"
    return {"operations": operations, "source": found if operations else missing}


def _kind(node) -> str:
    """`MatMul`, out of a label such as `dense/MatMul = MatMul(a, b)`, or what stands for it."""
    label = node.timeline_label.partition(" = ")[2] or node.node_name
    return label.partition("(")[0].rpartition(":")[2].rpartition("/")[2]
