"""What the time is made of: one cell under Python's profiler instead of the clock.

Build is everything before the steady state: making data and model, and the first call. The warm-up
belongs to neither. The steady state is profiled in the thread that trains, and attribution.py says
whose time each function's is: a C function that runs the step counts to training, because it was
called from there, for as long as it takes. Two things change that.

Where TensorFlow pulls the data inside of the step (fit over a dataset, and over arrays too in
TensorFlow 2's functions), its C function also waits for threads that Python does not see. Its time
may be that of kernels or of threads of C++, and is unattributed, together with what no function
accounts for.

Python code of the input that runs in other threads is seen by looking at all threads every two
milliseconds. When the step waits for it, that is data; and where the step waits for most of the
time that it takes, so is what else was done meanwhile: without that, it would have waited longer.
"""

import os
import sys
import threading
from time import perf_counter

from workloads import attribution, cells, observing, profilers, timing, tracing

_TOP = 20
_MUCH = 30.0  # of the time, in %
_EVERY_S = 0.002
_MOST = 0.5  # of the time that the input's Python is at work
_STEPS = ("TFE_Py_Execute", "TF_SessionRun")
_PULLS = ("__next__", "_next_internal", "get_next", "next")
_THROUGH_DATA = (".fit", ".fit_generator", ".evaluate", ".predict")
# The Python that calls the C functions above.
_STEP_FILES = frozenset(("execute.py", "pywrap_tensorflow_internal.py", "session.py"))
# Where a thread waits for work, or for another one's.
_IDLE_FILES = frozenset(
    ("connection.py", "data_utils.py", "pool.py", "queue.py", "selectors.py", "threading.py")
)


def profile(loaded, request, phases, result):
    """Profile a cell: build, then the steady state, then a trace of the framework's own."""
    (backend,) = loaded
    built = profilers.make()
    cell = built.runcall(cells.make, backend, request, phases, result)
    with phases.timed("first_call"):
        built.runcall(cell.method.once)
    cell.traces.stop()
    cells.complete(cell, request, result)
    start = perf_counter()
    phases.begin("warmup")
    with observing.Observer(backend, cell.model) as seen:
        cell.method.once()
    seen.tell(result)
    step_s = _warm_up(cell.method, request, start + request.budget_s * timing.WARMUP_SHARE)
    phases.begin("profile")
    until = start + request.budget_s * timing.TIMED_SHARE
    steady = _steady(cell.method, request, step_s, until)
    build_s = sum(result["phases_s"][name] for name in ("data", "build", "first_call"))
    steady.pulls_inside = _pulls_inside(cell, seen, steady.stats)
    result["profile"] = _described(steady, profilers.stats_of(built), build_s)
    if request.trace_folder:
        phases.begin("trace")
        trace, note = tracing.save(cell, request.trace_folder)
        result["profile"]["trace"] = trace
        result["profile"]["notes"] += [note] if note else []


class _Steady:
    """The steady state: its functions, seconds and batches, and what other threads did."""

    def __init__(self):
        self.stats = {}
        self.run_s = 0.0
        self.batches = 0
        self.looks = _Looks(threading.get_ident())
        self.pulls_inside = False


def _warm_up(method, request, until):
    """Seconds of a step, if it can be called for many."""
    calls = max(1, request.warmup - 1)
    if method.in_steps:
        return timing.grow(method.call, steps=calls, until=until)[-1]
    return timing.repeat(method.call, at_most=calls, until=until).values_s[-1]


def _steady(method, request, step_s, until):
    steady, profiler, done = _Steady(), profilers.make(), 0
    arguments = ()
    if method.in_steps:
        arguments = (max(1, min(request.iterations, int((until - perf_counter()) / step_s))),)
    steady.looks.start()
    begun = perf_counter()
    while not done or (not arguments and done < request.iterations and perf_counter() < until):
        profiler.runcall(method.call, *arguments)
        done += 1
    steady.run_s = perf_counter() - begun
    steady.looks.stop()
    steady.stats = profilers.stats_of(profiler)
    steady.batches = arguments[0] if arguments else done * method.batches
    return steady


class _Looks(threading.Thread):
    """Looks at all threads, again and again: what they did while the input's Python was at work.

    `waited` and `hidden` are parts of the time: in the first the watched thread ran the step or
    waited, in the second it did something else.
    """

    def __init__(self, watched):
        super().__init__(daemon=True)
        self._watched = watched
        self._ended = threading.Event()
        self.in_step = self.waited = self.hidden = 0.0

    def run(self):
        own, looks = threading.get_ident(), 0
        seen = dict.fromkeys(("in_step", "waited", "hidden"), 0)
        while not self._ended.wait(_EVERY_S):
            frames = sys._current_frames()  # noqa: SLF001 (there is no other way to see them)
            watched = _base(frames.pop(self._watched))
            frames.pop(own)
            looks += 1
            if any(_base(frame) not in _IDLE_FILES for frame in frames.values()):
                waits = "waited" if watched in _IDLE_FILES else "hidden"
                seen["in_step" if watched in _STEP_FILES else waits] += 1
        for name, count in seen.items():
            setattr(self, name, count / max(1, looks))

    def stop(self):
        """Look no longer."""
        self._ended.set()
        self.join()


def _base(frame) -> str:
    return os.path.basename(frame.f_code.co_filename)


def _described(steady, before, build_s):
    found, run_s, notes = attribution.shares(steady.stats), steady.run_s, []
    seconds = attribution.own_seconds(steady.stats, found)
    seconds["unattributed"] = max(0.0, run_s - sum(seconds.values()))
    if steady.pulls_inside:
        inside_s = _in_steps(steady.stats, found)
        seconds["training"] -= inside_s
        seconds["unattributed"] += inside_s
    _move(seconds, run_s, steady.looks, steady.pulls_inside)
    percent = {name: 100 * value / run_s for name, value in seconds.items()}
    if percent["unattributed"] > _MUCH:
        notes.append(
            f"{percent['unattributed']:.0f}% of the time is in no Python function: the step's "
            "kernels, and the threads of C++ that feed it from inside. The trace tells them apart."
        )
    return dict(
        percent,
        run_s=run_s,
        iterations=steady.batches,
        build=100 * build_s / run_s,
        functions=_top(before, steady.stats, found),
        trace=None,
        notes=notes,
    )


def _move(seconds, run_s, looks, pulls_inside):
    """Count to data what the step waited for, and what was hidden behind that."""
    waited, hidden = looks.waited, looks.hidden
    if pulls_inside:
        moved_s = min(seconds["unattributed"], looks.in_step * run_s)
        seconds["unattributed"] -= moved_s
        seconds["data"] += moved_s
        waited += looks.in_step
    else:
        hidden += looks.in_step
    if waited < _MOST * (waited + hidden):
        return
    left_s = hidden * run_s
    for name in ("other", "training"):
        moved_s = min(seconds[name], left_s)
        seconds[name] -= moved_s
        seconds["data"] += moved_s
        left_s -= moved_s


def _pulls_inside(cell, seen, stats) -> bool:
    """Whether the step's C function is what pulls its data, and so waits for it."""
    if cell.backend.framework != "tensorflow" or seen.executed_as == "op by op":
        return False
    if seen.executed_as == "session":
        return bool(cell.feed.form.symbolic)
    steps = sum(times[1] for key, times in stats.items() if _is_step(key))
    pulls = sum(
        times[1]
        for (file, _, name), times in stats.items()
        if os.path.basename(file) == "iterator_ops.py" and name in _PULLS
    )
    loop = (seen.training_loop or "").split(" > ")
    return any(part.endswith(_THROUGH_DATA) for part in loop) and 2 * pulls < steps


def _is_step(key) -> bool:
    return any(name in key[2] for name in _STEPS)


def _in_steps(stats, found) -> float:
    """Seconds in the C functions that run steps, as far as these count to training."""
    return sum(
        attribution.divided(key, times[2], times[4], found)["training"]
        for key, times in stats.items()
        if _is_step(key)
    )


def _top(before, stats, found):
    """The functions with the most time of their own, in both."""
    told = [_function(key, times, "build") for key, times in before.items()]
    for key, times in stats.items():
        parts = attribution.divided(key, times[2], times[4], found)
        told.append(_function(key, times, max(parts, key=parts.get)))
    told.sort(key=lambda function: -function["own_s"])
    return told[:_TOP]


def _function(key, times, root):
    file, _, name = key
    return {
        "name": name.strip("<>") if file == "~" else f"{os.path.basename(file)}:{name}",
        "calls": times[1],
        "own_s": times[2],
        "total_s": times[3],
        "root": root,
    }
