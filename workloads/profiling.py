"""What the time is made of: one cell under Python's profiler instead of the clock.

Build is everything before the steady state: making data and model, and the first call. The warm-up
belongs to neither. The steady state is profiled in the thread that trains, and attribution.py says
whose time each function's is: a C function that runs the step counts to training, because it was
called from there, for as long as it takes.

There is one exception. Where TensorFlow pulls the data inside of the step (fit over a dataset, and
over arrays too in TensorFlow 2's functions), its C function also waits for threads that Python does
not see. Of its time, what Python code of the input took in other threads meanwhile counts to data,
seen by looking every two milliseconds; the rest may be kernels or threads of C++, and is
unattributed, together with what no function accounts for.
"""

import cProfile
import os
import sys
import threading
from time import perf_counter

from workloads import attribution, cells, knobs, observing, timing, tracing

_TOP = 20
_MUCH = 30.0  # of the time, in %
_EVERY_S = 0.002
_ENOUGH_CALLS = 0.9  # of the iterations: a function that was called for every batch
_STEPS = ("TFE_Py_Execute", "TF_SessionRun", "TFE_Py_ExecuteCancelable")
_PULLS = ("__next__", "_next_internal", "get_next", "next")
# The Python that calls the C functions above.
_STEP_FILES = ("execute.py", "pywrap_tensorflow_internal.py", "session.py")
_IDLE_FILES = ("queue.py", "selectors.py", "thread.py", "threading.py")


def profile(loaded, request, phases, result):
    """Profile a cell: build, then the steady state, then a trace of the framework's own."""
    (backend,) = loaded
    built = cProfile.Profile()
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
    until = start + request.budget_s * timing.WARMUP_SHARE
    timing.repeat(cell.method.once, at_most=max(1, request.warmup - 1), until=until)
    phases.begin("profile")
    until = start + request.budget_s * timing.TIMED_SHARE
    steady = _steady(cell.method, request, until)
    build_s = sum(result["phases_s"][name] for name in ("data", "build", "first_call"))
    result["profile"] = _described(cell, request, built, steady, build_s, seen.executed_as)
    if request.trace_folder:
        phases.begin("trace")
        trace, note = tracing.save(cell, request.trace_folder)
        result["profile"]["trace"] = trace
        result["profile"]["notes"] += [note] if note else []


class _Steady:
    """The steady state: its functions, its seconds, its iterations, and what other threads did."""

    def __init__(self):
        self.profiler = cProfile.Profile()
        self.run_s = 0.0
        self.iterations = 0
        self.looks = _Looks(threading.get_ident())


def _steady(method, request, until):
    steady = _Steady()
    steady.looks.start()
    while steady.iterations < request.iterations and (
        not steady.iterations or perf_counter() < until
    ):
        steps = _steps_at_once(method, request, steady, until)
        begun = perf_counter()
        steady.profiler.runcall(method.call, *([steps] if method.in_steps else []))
        steady.run_s += perf_counter() - begun
        steady.iterations += steps
    steady.looks.stop()
    return steady


def _steps_at_once(method, request, steady, until):
    """How many steps the next call does: where it can do many, one tells how many fit."""
    if not method.in_steps or not steady.iterations:
        return 1
    fitting = int((until - perf_counter()) / (steady.run_s / steady.iterations))
    return max(1, min(request.iterations - steady.iterations, fitting))


class _Looks(threading.Thread):
    """Looks at all threads, again and again: how often the step waited for Python elsewhere."""

    def __init__(self, thread):
        super().__init__(daemon=True)
        self._watched = thread
        self._ended = threading.Event()
        self._waiting = self._all = 0

    @property
    def share(self) -> float:
        """The part of the time in which the step ran, and Python of the input in another thread."""
        return self._waiting / self._all if self._all else 0.0

    def run(self):
        own = threading.get_ident()
        while not self._ended.wait(_EVERY_S):
            frames = sys._current_frames()  # noqa: SLF001 (there is no other way to see them)
            watched = frames.pop(self._watched, None)
            frames.pop(own, None)
            self._all += 1
            if watched is not None and _base(watched) in _STEP_FILES:
                self._waiting += any(_base(frame) not in _IDLE_FILES for frame in frames.values())

    def stop(self):
        """Look no longer."""
        self._ended.set()
        self.join()


def _base(frame) -> str:
    return os.path.basename(frame.f_code.co_filename)


def _described(cell, request, built, steady, build_s, executed_as):
    stats, before = _stats(steady.profiler), _stats(built)
    found = attribution.shares(stats)
    seconds = attribution.own_seconds(stats, found)
    run_s, notes = steady.run_s, []
    unattributed_s = max(0.0, run_s - sum(seconds.values()))
    if _pulls_inside(cell, request, stats, steady.iterations, executed_as):
        moved_s = _in_steps(stats, found)
        waited_s = min(moved_s, steady.looks.share * run_s)
        seconds["training"] -= moved_s
        seconds["data"] += waited_s
        unattributed_s += moved_s - waited_s
    percent = {name: 100 * value / run_s for name, value in seconds.items()}
    unattributed = 100 * unattributed_s / run_s
    if unattributed > _MUCH:
        notes.append(
            f"{unattributed:.0f}% of the time is in no Python function: the step's kernels, and "
            "the threads of C++ that feed it from inside. The trace tells them apart."
        )
    return dict(
        percent,
        run_s=run_s,
        iterations=steady.iterations * cell.method.batches,
        build=100 * build_s / run_s,
        unattributed=unattributed,
        functions=_top(before, stats, found),
        trace=None,
        notes=notes,
    )


def _stats(profiler):
    profiler.create_stats()
    return profiler.stats


def _pulls_inside(cell, request, stats, iterations, executed_as) -> bool:
    """Whether the step's C function is what pulls its data, and so waits for it."""
    if cell.backend.framework != "tensorflow" or executed_as == "op by op":
        return False
    if executed_as == "session":
        return bool(cell.feed.form.symbolic)
    by_python = any(
        times[1] >= _ENOUGH_CALLS * iterations
        for (file, _, name), times in stats.items()
        if os.path.basename(file) == "iterator_ops.py" and name in _PULLS
    )
    return request.method in knobs.WHOLE and not by_python


def _in_steps(stats, found) -> float:
    """Seconds in the C functions that run steps, as far as these count to training."""
    return sum(
        attribution.divided(key, times[2], times[4], found)["training"]
        for key, times in stats.items()
        if any(name in key[2] for name in _STEPS)
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
