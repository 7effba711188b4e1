"""What a request can ask for, each as the order of its steps."""

from math import ceil
from time import perf_counter

from workloads import (
    cells,
    checks,
    frameworks,
    kerases,
    knobs,
    methods,
    observing,
    profiling,
    proofs,
    protocol,
    refusals,
    sweep,
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
    for api in frameworks.apis(framework, private=True):
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
    cell = cells.make(backend, request, phases, result)
    method = cell.method
    with phases.timed("first_call"):
        method.once()
    cells.complete(cell, request, result)
    start = perf_counter()
    phases.begin("warmup")
    call_s = _watched(cell, result)
    result["warmup_s"] = [call_s / method.batches]
    _check_speed(method, request, call_s)
    until = start + request.budget_s * timing.WARMUP_SHARE
    result["warmup_s"] += _warm_up(method, calls=request.warmup - 1, until=until)
    phases.begin("timed")
    until = start + request.budget_s * timing.TIMED_SHARE
    _time(cell, request, until, result)
    result["diagnostics"]["peak_rss_bytes"] = timing.peak_rss_bytes()
    phases.keep()  # what was measured is not lost when the rest takes too long, or crashes
    method.finish()
    if method.group != "life_cycle":  # which leaves no model behind
        _conclude(cell, request, phases, result)


def _conclude(cell, request, phases, result):
    """After the measurement: what was computed, single steps, and where they ran."""
    backend, method = cell.backend, cell.method
    with refusals.noted(result, "outputs"):
        phases.begin("outputs")
        result["outputs"] = checks.outputs(cell.model, cell.feed.first.x, half=cell.knobs.half)
    if method.in_steps and method.group == "training":
        room = request.budget_s * (1 - timing.TIMED_SHARE) / 2
        with refusals.noted(result, "steps"):
            result["diagnostics"]["step_s"] = _steps(backend, method, room, result)
    if request.device == "gpu":
        evidence = Evidence(source="it could not be watched, see diagnostics")
        phases.begin("proof")
        with refusals.noted(result, "proof"):
            evidence = backend.evidence(cell.model, cell.feed.first.x, method.once)
        result["proof"] = proofs.of_gpu(evidence)


ACTIONS = {
    "measure": measure,
    "probe": probe,
    "describe": describe,
    "profile": profiling.profile,
    "sweep": sweep.sweep,
}


def _watched(cell, result):
    """Seconds of the warm-up's first call, which is watched from inside, and so a bit slower."""
    anew = cell.method.group == "life_cycle"
    with observing.Observer(cell.backend, None if anew else cell.model) as seen:
        values = timing.repeat(cell.method.once, at_most=1).values_s
    seen.tell(result)
    if seen.executed_as == "op by op":
        cell.traces.stop()
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
    """Seconds a batch of the warm-up's other calls."""
    if method.in_steps:
        # One at least is not watched: how many steps will fit is computed from it.
        return timing.grow(method.call, steps=max(1, calls), until=until)
    if perf_counter() < until:
        values = timing.repeat(method.call, at_most=calls, until=until).values_s
        return [value / method.batches for value in values]
    return []


def _time(cell, request, until, result):
    method, counted = cell.method, cell.traces.count
    at_least = min(request.minimum_iterations, request.iterations)
    if method.in_steps:
        timed, done = _time_steps(method, request, at_least, until, result)
    else:
        timed, done = _time_calls(cell, request, at_least, until, result)
    result["rss_bytes"] = timed.rss_bytes
    result["losses"] = timed.kept if method.has_loss else []
    result["iterations"] = {"asked": request.iterations, "done": done}
    result["traces"] = cell.traces.count
    if counted is not None:
        result["retraces"] = cell.traces.count - counted


def _time_steps(method, request, at_least, until, result):
    """One call over all steps; also how many they were."""
    room = int((until - perf_counter()) / result["warmup_s"][-1])
    done = max(at_least, min(request.iterations, room))
    timed = timing.whole(method.call, steps=done, keep=_keep(method))
    result["timing"] = timing.describe(timing.measure_clock(), source="whole", batch=done)
    result["values_s"] = timed.values_s
    return timed, done


def _time_calls(cell, request, at_least, until, result):
    """Call after call, or batch after batch where calls are short; also how many calls."""
    method, clock = cell.method, timing.measure_clock()
    limits = {"at_most": request.iterations, "at_least": at_least, "until": until}
    size = _batch_size(cell, request, clock, result["warmup_s"])
    if size > 1:
        timed = timing.repeat_batches(method.call, size=size, keep=_keep(method), **limits)
        result["timing"] = timing.describe(clock, source="batch", batch=size)
    else:
        timed = timing.repeat(
            method.call,
            keep=_keep(method),
            memory_every=1 if method.group == "life_cycle" else timing.MEMORY_EVERY,
            **limits,
        )
        result["timing"] = timing.describe(clock, source="call", batch=method.batches)
    result["values_s"] = [value / method.batches for value in timed.values_s]
    return timed, size * len(timed.values_s)


def _batch_size(cell, request, clock, warmup_s) -> int:
    """How many calls a value covers, by what those of the warm-up took that were not watched."""
    unwatched = sorted(warmup_s[1:])
    if not unwatched:
        return 1
    return timing.batch_size(
        unwatched[len(unwatched) // 2] * cell.method.batches,
        clock,
        iterations=request.iterations,
        turns=len(knobs.batch_shapes(request, cell.knobs)),
    )


def _keep(method):
    return methods.loss_of if method.has_loss else timing.forget


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
