"""The statistics that TensorFlow keeps of one step, and where its operations ran by them."""

from importlib import import_module


def of_session(tf, model, step):
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
    return metadata.step_stats


def of_functions(step):
    """Have TensorFlow's eager context keep statistics for one step."""
    context = import_module("tensorflow.python.eager.context")
    context.enable_run_metadata()
    try:
        step()
        return context.export_run_metadata().step_stats
    finally:
        context.disable_run_metadata()


def told(tf, statistics) -> dict:
    """Device and kind of each operation, and where that comes from."""
    operations = [
        (device.device, _kind(node))
        for device in statistics.dev_stats
        for node in device.node_stats
    ]
    found = "the statistics of one step"
    missing = f"TensorFlow {tf.__version__} keeps no statistics of such a step"
    return {"operations": operations, "source": found if operations else missing}


def _kind(node) -> str:
    """`MatMul`, out of a label such as `dense/MatMul = MatMul(a, b)`, or what stands for it."""
    label = node.timeline_label.partition(" = ")[2] or node.node_name
    return label.partition("(")[0].rpartition(":")[2].rpartition("/")[2]
