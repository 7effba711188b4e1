"""Python's profiler, for the thread that it is started in and no other.

From 3.12 on cProfile hears of every thread, and adds up the times of all as if they were one's.
There a smaller one stands in for it, which is slower: it is written in Python.
"""

import cProfile
import sys
from time import perf_counter

_HEARS_ALL = (3, 12)
_CALLED, _LEFT = ("call", "c_call"), ("return", "c_return", "c_exception")


def make():
    """Return a profiler: `runcall(function, ...)`, then stats_of()."""
    return _OneThread() if sys.version_info >= _HEARS_ALL else cProfile.Profile()


def stats_of(profiler) -> dict:
    """Functions as cProfile has them: (file, line, name) -> numbers.

    The numbers are calls without recursion, calls, own seconds, seconds with all that it called,
    and of each caller the same four.
    """
    if isinstance(profiler, _OneThread):
        return profiler.stats()
    profiler.create_stats()
    return profiler.stats


class _OneThread:
    def __init__(self):
        self._stack = []  # of a function, when it was entered, and seconds of what it called
        self._within = {}  # function -> how often it is on the stack
        self._edges = {}  # function, caller -> calls without recursion, calls, own, all

    def runcall(self, function, *arguments):
        """Call the function, and listen to this thread meanwhile."""
        sys.setprofile(self._hear)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(None)
            self._stack, self._within = [], {}

    def stats(self):
        """What was heard."""
        found = {}
        for (key, caller), (alone, calls, own_s, total_s) in self._edges.items():
            old = found.get(key, (0, 0, 0.0, 0.0, {}))
            callers = old[4]
            if caller is not None:
                callers[caller] = (calls, alone, own_s, total_s)
            found[key] = (old[0] + alone, old[1] + calls, old[2] + own_s, old[3] + total_s, callers)
        return found

    def _hear(self, frame, event, function):
        now = perf_counter()
        if event in _CALLED:
            key = _key(frame) if event == "call" else _c_key(function)
            self._within[key] = self._within.get(key, 0) + 1
            self._stack.append([key, now, 0.0])
        elif event in _LEFT and self._stack:
            self._leave(now)

    def _leave(self, now):
        key, start, inner_s = self._stack.pop()
        self._within[key] -= 1
        is_outermost, whole_s = not self._within[key], now - start
        caller = None
        if self._stack:
            caller = self._stack[-1][0]
            self._stack[-1][2] += whole_s
        numbers = self._edges.setdefault((key, caller), [0, 0, 0.0, 0.0])
        numbers[0] += is_outermost
        numbers[1] += 1
        numbers[2] += whole_s - inner_s
        numbers[3] += whole_s if is_outermost else 0.0


def _key(frame):
    code = frame.f_code
    return code.co_filename, code.co_firstlineno, code.co_name


def _c_key(function):
    module = getattr(function, "__module__", None) or type(function).__name__
    return "~", 0, f"<built-in method {module}.{function.__name__}>"
