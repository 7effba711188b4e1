"""The clock, what reading it costs, and the loops that time calls.

Inside a timed region there is nothing but: clock, call, clock, store.
"""

import os
import resource
from itertools import repeat as times
from math import ceil
from time import get_clock_info, perf_counter
from typing import List, NamedTuple

CLOCK = "perf_counter"
# Memory is read every so many calls, and never between two readings of the clock.
MEMORY_EVERY = 10
_OVERHEAD_CALLS = 1000
# A call that takes less than so many times what the clock costs is timed together with others.
CLOCK_SHARE = 100
ENOUGH_VALUES = 10
# Of the budget: what warm-up may take, and when timing ends. The rest is for the outputs.
WARMUP_SHARE = 0.1
TIMED_SHARE = 0.8


class Timed(NamedTuple):
    """Seconds of each call, what was kept of its answer, and the memory around them in bytes."""

    values_s: List[float]
    kept: list
    rss_bytes: List[int]


class Clock(NamedTuple):
    """What the clock can tell apart, and what reading it twice and storing a value costs."""

    resolution_s: float
    overhead_s: float


def measure_clock() -> Clock:
    """The clock as it is in this process."""
    return Clock(get_clock_info(CLOCK).resolution, overhead_s())


def describe(clock, *, source, batch) -> dict:
    """How values were taken: the result's `timing`."""
    return {
        "source": source,
        "clock": CLOCK,
        "clock_resolution_s": clock.resolution_s,
        "overhead_s": clock.overhead_s,
        "batch": batch,
    }


def batch_size(call_s, clock, *, iterations, turns=1) -> int:
    """How many calls a value has to cover, so that the clock is less than a hundredth of it.

    1, 2 or 5 times a power of ten, so that processes which measure nearly the same decide the same;
    fewer where `iterations` would not give enough values. A multiple of the `turns` in which calls
    of several kinds follow each other, so that every value covers the same; else 1.
    """
    least_s = CLOCK_SHARE * max(clock)
    if call_s >= least_s:
        return 1
    power, needed = 1, ceil(least_s / call_s) if call_s > 0 else iterations
    while power * 10 < needed:
        power *= 10
    size = next(step * power for step in (1, 2, 5, 10) if step * power >= needed)
    most = iterations // ENOUGH_VALUES
    return max(1, min(-(-size // turns), most // turns) * turns)


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


def repeat_batches(call, *, size, at_most, at_least=1, until=None, keep=forget) -> Timed:
    """Time calls, `size` of them between two readings of the clock: seconds a call, a value each.

    There are `at_most` calls, less what does not fill a batch, or as many as the clock lets begin
    before `until`, after `at_least`. What `keep` takes is that of each batch's last answer.
    """
    memory_every = memory_reads(size)
    values, kept, memory = [], [], [rss_bytes()]
    for number in range(1, at_most // size + 1):
        turns = times(None, size)
        start = perf_counter()
        for _ in turns:
            answer = call()
        end = perf_counter()
        values.append((end - start) / size)
        kept.append(keep(answer))
        del answer
        if number % memory_every == 0:
            memory.append(rss_bytes())
        if until is not None and number * size >= at_least and perf_counter() >= until:
            break
    memory.append(rss_bytes())
    return Timed(values, kept, memory)


def memory_reads(size) -> int:
    """After how many batches of so many calls memory is read: no more often than it is else."""
    return -(-MEMORY_EVERY // size)


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
