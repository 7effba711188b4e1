"""The framework's own trace of a few steps, left beside a profile for its own viewers."""

import json
import os
from importlib import import_module

_STEPS = 3
# What a profiler leaves, the most telling first.
_FILES = (".xplane.pb", ".trace.json.gz", ".trace")
_TIMELINE = "timeline.json"  # for chrome://tracing


def save(cell, folder):
    """Trace steps into `folder`: name of the file below it, and a note when there is none."""
    try:
        name = _traced(cell, folder)
    except Exception as error:
        return None, f"There is no trace: {type(error).__name__}: {error}"
    backend = cell.backend
    note = f"{backend.title} {backend.version} leaves no trace of such a step."
    return name, None if name else note


def _traced(cell, folder):
    backend, step = cell.backend, cell.method.once
    os.makedirs(folder, exist_ok=True)
    if backend.framework == "tensorflow":
        profiler = getattr(getattr(backend.tf, "profiler", None), "experimental", None)
        if profiler is None:
            return _timeline(cell, step, folder)
        start, stop = profiler.start, profiler.stop
    elif backend.framework == "jax":
        profiler = import_module("jax").profiler
        start, stop = profiler.start_trace, profiler.stop_trace
    else:
        return None
    start(folder)
    try:
        for _ in range(_STEPS):
            step()
    finally:
        stop()
    return _left(folder)


def _left(folder):
    names = [
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, files in os.walk(folder)
        for name in files
    ]
    return next((name for end in _FILES for name in sorted(names) if name.endswith(end)), None)


def _timeline(cell, step, folder):
    """Before 2.2: the statistics of one step, drawn as Chrome draws its own."""
    statistics = _of_function(step) if cell.backend.executes_eagerly else _of_session(cell, step)
    if not statistics.dev_stats:
        return None
    timeline = import_module("tensorflow.python.client.timeline").Timeline(statistics)
    trace = json.loads(timeline.generate_chrome_trace_format())
    for event in trace["traceEvents"]:
        if event.get("name") == "unknown":  # as it calls all that runs op by op
            event["name"] = event["args"]["name"]
    with open(os.path.join(folder, _TIMELINE), "w", encoding="utf-8") as file:
        json.dump(trace, file)
    return _TIMELINE


def _of_function(step):
    context = import_module("tensorflow.python.eager.context")
    context.enable_run_metadata()
    try:
        step()
        return context.export_run_metadata().step_stats
    finally:
        context.disable_run_metadata()


def _of_session(cell, step):
    """Have the function that a Keras of sessions calls keep statistics of one call."""
    v1 = cell.backend.tf.compat.v1
    metadata = v1.RunMetadata()
    for name in ("train_function", "test_function", "predict_function"):
        function = getattr(cell.model, name, None)
        if function is not None:
            function.run_options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
            function.run_metadata = metadata
            function._callable_fn = None  # noqa: SLF001 (or it would keep the options that it has)
    step()
    return metadata.step_stats
