"""The framework's own trace of a few steps, left beside a profile for its own viewers."""

import json
import os
from importlib import import_module

from workloads import watched

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
    if cell.backend.executes_eagerly:
        statistics = watched.of_functions(step)
    else:
        statistics = watched.of_session(cell.backend.tf, cell.model, step)
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
