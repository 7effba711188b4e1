"""What a request can ask for, each as the order of its steps."""

import os
from math import ceil
from time import perf_counter

from workloads import (
    checks,
    frameworks,
    inputs,
    kerases,
    knobs,
    methods,
    models,
    proofs,
    protocol,
    refusals,
    timing,
)
from workloads.backend import Evidence

# A per-step callback costs time itself: a few steps are timed with it, after the measurement.
_DIAGNOSTIC_STEPS = 10
# Watching a call adds milliseconds to it: from here on they do not matter.
_TRUSTED_S = 1.0


def load(request, result) -> list:
    """Import what the request's action needs: one api's Keras, or every Keras that is there."""
    if request.action == "describe":
        return _load_what_works(result)
    framework = frameworks.expected(request)
    if request.action == "probe":
        return [frameworks.load(framework, api) for api in frameworks.apis(framework)]
    return [frameworks.load(framework, request.api, request.mode)]


def _load_what_works(result):
    framework, loaded = frameworks.installed(), []
    result["diagnostics"] = {}
    for api in frameworks.apis(framework):
        with refusals.noted(result, api):
            loaded.append(frameworks.load(framework, api))
    if not loaded:
        raise protocol.Stopped(
            "environment_error",
            "import",
            f"{frameworks.TITLES[framework]} and its Keras cannot be imported: "
            + "; ".join(sorted(set(result["diagnostics"].values()))),
        )
    return loaded


def probe(loaded, request, phases, result):
    """Check a new environment: versions, one training step, a saved model, with every Keras."""
    for backend in loaded:
        frameworks.check_versions(backend, request.expected)
    result["metadata"] = loaded[-1].describe()
    phases.begin("first_call")
    for backend in loaded:
        backend.seed(request.seeds)
        checks.probe(backend, request.batch_shape)


def describe(loaded, request, phases, result):
    """Tell what is in an environment that somebody else made: which Kerases it has, and works."""
    result["metadata"] = dict(loaded[0].describe(), apis={})
    phases.begin("first_call")
    for backend in loaded:
        with refusals.noted(result, backend.api):
            backend.seed(request.seeds)
            checks.train_once(backend, request.batch_shape)
            result["metadata"]["apis"][backend.api] = kerases.version(backend.keras)
    if not result["metadata"]["apis"]:
        raise protocol.Stopped(
            "environment_error",
            "training",
            "No Keras of this environment can train a step: "
            + "; ".join(sorted(set(result["diagnostics"].values()))),
        )


def measure(loaded, request, phases, result):
    """Time one cell, and leave what it took to trust the number."""
    (backend,) = loaded
    frameworks.check_versions(backend, request.expected)
    turned = knobs.of(request)
    knobs.after_import(backend, turned)
    result["metadata"] = backend.describe()
    with phases.timed("data"):
        backend.seed(request.seeds)
        feed = inputs.make(backend, request, turned)
    with phases.timed("build"):
        model = models.build(backend, request, turned, feed.batch_shape)
    _check(backend, model, request, result)
    method = methods.bind(backend, model, feed, request, turned)
    with phases.timed("first_call"):
        method.once()
    start = perf_counter()
    phases.begin("warmup")
    result["warmup_s"] = [_watched(backend, model, method, result)]
    _check_speed(method, request, result["warmup_s"][0])
    until = start + request.budget_s * timing.WARMUP_SHARE
    result["warmup_s"] += _warm_up(method, calls=request.warmup - 1, until=until)
    phases.begin("timed")
    until = start + request.budget_s * timing.TIMED_SHARE
    _time(method, request, until, result)
    result["diagnostics"]["peak_rss_bytes"] = timing.peak_rss_bytes()
    with refusals.noted(result, "outputs"):
        phases.begin("outputs")
        result["outputs"] = checks.outputs(model, feed.first.x)
    if method.in_steps:
        room = request.budget_s * (1 - timing.TIMED_SHARE) / 2
        with refusals.noted(result, "steps"):
            result["diagnostics"]["step_s"] = _steps(backend, method, room, result)
    if request.device == "gpu":
        evidence = Evidence(source="it could not be watched, see diagnostics")
        phases.begin("proof")
        with refusals.noted(result, "proof"):
            evidence = backend.evidence(model, feed.first.x, method.once)
        result["proof"] = proofs.of_gpu(evidence)


ACTIONS = {"measure": measure, "probe": probe, "describe": describe}


def _check(backend, model, request, result):
    """Stopped (`invalid`) unless model, Keras and device are those that were asked for."""
    result["metadata"]["keras"]["optimizer"] = kerases.class_path(model.optimizer)
    frameworks.check_keras(backend, model)
    result["parameters"] = int(model.count_params())
    result["dtype"] = _name_of(model.weights[0].dtype)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "unset")
    look = proofs.of_cpu if request.device == "cpu" else proofs.beforehand
    result["proof"] = look(backend.devices(), visible)
    if request.parameters not in (None, result["parameters"]):
        raise protocol.Stopped(
            "invalid",
            "parameters",
            f"The model has {result['parameters']} parameters where {request.parameters} are "
            "expected: it is not the model that was asked for.",
        )


def _name_of(dtype) -> str:
    """`float32`: of TensorFlow's type, or of the text that Keras 3 has instead.

    Asked without running the session, for the same reason as in inputs.make.
    """
    return getattr(getattr(dtype, "base_dtype", dtype), "name", dtype)


def _watched(backend, model, method, result):
    """Seconds of the warm-up's first call, which is watched from inside, and so a bit slower."""
    with checks.Observer(backend, model) as seen:
        values = timing.repeat(method.once, at_most=1).values_s
    result["executed_as"] = seen.executed_as
    result["training_loop"] = seen.training_loop
    result["data_adapter"] = seen.data_adapter
    result["diagnostics"] = {"calls": dict(seen.calls, outer_eager=backend.executes_eagerly)}
    return values[0]


def _check_speed(method, request, call_s):
    """Stopped (`timed_out`) when one call tells that the budget ends before the least is done."""
    # What cannot be left out: the call that is over, one more for a fit over a dataset (see
    # _warm_up), and the iterations that are timed.
    calls = 1 + method.in_steps + min(request.minimum_iterations, request.iterations)
    needed_s = calls * call_s
    if call_s < _TRUSTED_S or needed_s <= request.budget_s:
        return
    enough_s = ceil(needed_s / timing.TIMED_SHARE)
    raise protocol.Stopped(
        "timed_out",
        "too_slow",
        f"One call takes {call_s:.1f} s. The {calls} that a measurement needs at least would take "
        f"{needed_s:.0f} s, and a job has {request.budget_s:g} s: it was stopped after the first. "
        f"Allow more with --max-job-seconds {enough_s}, or choose a smaller model or smaller data.",
    )


def _warm_up(method, *, calls, until):
    """Seconds of the warm-up's other calls."""
    if method.in_steps:
        # One at least is not watched: how many steps will fit is computed from it.
        return timing.grow(method.call, steps=max(1, calls), until=until)
    if perf_counter() < until:
        return timing.repeat(method.call, at_most=calls, until=until).values_s
    return []


def _time(method, request, until, result):
    at_least = min(request.minimum_iterations, request.iterations)
    if method.in_steps:
        room = int((until - perf_counter()) / result["warmup_s"][-1])
        done = max(at_least, min(request.iterations, room))
        timed = timing.whole(method.call, steps=done, keep=methods.loss_of)
        result["timing"] = timing.describe(source="whole", batch=done)
    else:
        timed = timing.repeat(
            method.call,
            at_most=request.iterations,
            at_least=at_least,
            until=until,
            keep=methods.loss_of,
        )
        done = len(timed.values_s)
        result["timing"] = timing.describe(source="call", batch=1)
    result["values_s"] = timed.values_s
    result["rss_bytes"] = timed.rss_bytes
    result["losses"] = timed.kept
    result["iterations"] = {"asked": request.iterations, "done": done}


def _steps(backend, method, room_s, result):
    """Seconds of single steps, taken by a callback: they explain the value, they are not it."""
    begun, ended = [], []
    callback = backend.on_each_step(
        lambda: begun.append(perf_counter()), lambda: ended.append(perf_counter())
    )
    fitting = int(room_s / result["values_s"][0])
    steps = min(_DIAGNOSTIC_STEPS, result["iterations"]["done"], fitting)
    if steps > 0:  # else the host would end the process, and the measurement with it
        method.call(steps, [callback])
    return [end - begin for begin, end in zip(begun, ended)]
