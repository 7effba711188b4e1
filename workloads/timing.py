"""The clock, what reading it costs, and the loops that time calls.

Inside a timed region there is nothing but: clock, call, clock, store.
"""

import os
import resource
from time import get_clock_info, perf_counter
from typing import List, NamedTuple

CLOCK = "perf_counter"
# Memory is read every so many calls, and never between two readings of the clock.
MEMORY_EVERY = 10
_OVERHEAD_CALLS = 1000
# Of the budget: what warm-up may take, and when timing ends. The rest is for the outputs.
WARMUP_SHARE = 0.1
TIMED_SHARE = 0.8


class Timed(NamedTuple):
    """Seconds of each call, what was kept of its answer, and the memory around them in bytes."""

    values_s: List[float]
    kept: list
    rss_bytes: List[int]


def describe(*, source, batch) -> dict:
    """How values were taken: the result's `timing`."""
    return {
        "source": source,
        "clock": CLOCK,
        "clock_resolution_s": get_clock_info(CLOCK).resolution,
        "overhead_s": overhead_s(),
        "batch": batch,
    }


def overhead_s() -> float:
    """Seconds that timing adds to a call: the median over empty calls, timed the same way."""
    values = repeat(lambda: None, at_most=_OVERHEAD_CALLS).values_s
    return sorted(values)[len(values) // 2]


def rss_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_rss_bytes() -> int:
    """Most resident memory that this process ever had.

    The kernel's high-water mark starts anew with a program, whereas getrusage's also counts what
    the host had before it became this program; some sandboxes have only the latter.
    """
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget(_):
    """Keep nothing of an answer."""


def repeat(
    call, *, at_most, at_least=1, until=None, keep=forget, memory_every=MEMORY_EVERY
) -> Timed:
    """Time calls until there are `at_most`, or the clock passes `until` after `at_least`.

    `keep` takes what is wanted from each answer, which is then let go as a user's loop would.
    """
    values, kept, memory = [], [], [rss_bytes()]
    for number in range(1, at_most + 1):
        start = perf_counter()
        answer = call()
        end = perf_counter()
        values.append(end - start)
        kept.append(keep(answer))
        del answer  # or the next call's would be exchanged for it inside the timed region
        if number % memory_every == 0:
            memory.append(rss_bytes())
        if until is not None and number >= at_least and perf_counter() >= until:
            break
    memory.append(rss_bytes())
    return Timed(values, kept, memory)


def grow(call, *, steps, until) -> List[float]:
    """Seconds a step of calls over 1, 2, 4 ... steps, `steps` in all or until the clock says so."""
    values, size, done = [], 1, 0
    while done < steps:
        size = min(size, steps - done)
        values.append(whole(call, steps=size).values_s[0])
        done += size
        size *= 2
        if perf_counter() >= until:
            break
    return values


def whole(call, *, steps, keep=forget) -> Timed:
    """Time one call over `steps` steps; its value is the whole divided by them."""
    timed = repeat(lambda: call(steps), at_most=1, keep=keep)
    return timed._replace(values_s=[timed.values_s[0] / steps])
