"""From which iteration on a process is in its steady state.

A series is cut into segments of constant level by optimal partitioning (Jackson et al., 2005, IEEE
Signal Processing Letters 12, 105-108) of the logarithms. The last segment is the steady state, with
whatever before it has the same level; and a process whose last level came late has none: the
classification of Barrett et al. (2017), Virtual Machine Warmup Blows Hot and Cold, OOPSLA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from orchestrator.series import noise
from orchestrator.series.stacks import by_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

ENOUGH: Final = 20  # fewer iterations show no levels
# Of the iterations, counted from the end, these must have one level: a quarter, as Barrett's 500 of
# 2,000 have.
LEAST_STEADY: Final = 0.25
# Levels that differ by less are one: of such steps no median moves by half as much.
ALIKE: Final = float(np.log(1.02))
# A cut must explain this times log n variances: enough for the largest of all partial sums of
# noise, whose scale is an estimate itself.
PENALTY: Final = 8.0
# The fewer iterations, the less sure is the estimate of their noise.
_UNSURE: Final = 10.0
_QUIETEST: Final = 1e-4  # no clock is better; a series of equal values has no noise to go by
_AT_ONCE: Final = 200  # series whose table of partial sums stays in the processor's cache


class Steady(NamedTuple):
    """What became of one process. `start`: its first steady iteration, from 0; -1 for none."""

    state: Literal["steady", "no steady state", "too short"]
    start: int


def find(every: Sequence[Sequence[float] | NDArray[np.float64]]) -> list[Steady]:
    """For each process the start of its steady state; `every`: seconds, warm-up first."""
    found = [Steady("too short", -1)] * len(every)
    for places, seconds in by_length(every, enough=ENOUGH):
        for place, start in zip(places, find_starts(np.log(seconds)), strict=True):
            found[place] = Steady("no steady state" if start < 0 else "steady", int(start))
    return found


def find_starts(log_s: NDArray[np.float64]) -> NDArray[np.intp]:
    """(series,): the first steady iteration of each; -1 where none is, for (series, iterations)."""
    iterations = log_s.shape[1]
    starts = np.zeros(len(log_s), dtype=np.intp)
    for place, cuts in _cuts(log_s):
        starts[place] = _last_level(log_s[place], cuts)
    starts[starts > (1 - LEAST_STEADY) * iterations] = -1
    return starts


def segments(log_s: NDArray[np.float64]) -> list[int]:
    """Where the segments of one series start: 0, and the iterations at which its level changes."""
    return [0, *(cut for _, cuts in _cuts(log_s[None, :]) for cut in cuts)]


def _last_level(log_s: NDArray[np.float64], cuts: Sequence[int]) -> int:
    """The start of the last segment, or of the first before it from which on all are alike."""
    level, start = float(noise.median(log_s[cuts[-1] :])), cuts[-1]
    for begin, end in zip([0, *cuts[:-1]][::-1], cuts[::-1], strict=True):
        if abs(float(noise.median(log_s[begin:end])) - level) > ALIKE:
            break
        start = begin
    return start


def _cuts(log_s: NDArray[np.float64]) -> Iterable[tuple[int, list[int]]]:
    """Of the series whose level changes: the place, and where."""
    penalty = PENALTY * np.log(log_s.shape[1])
    changing, places = [], []
    for first in range(0, len(log_s), _AT_ONCE):
        sums = _sums(log_s[first : first + _AT_ONCE])
        which = np.flatnonzero(~_level(sums, penalty))
        changing.append(sums[:, which])
        places.append(first + which)
    every, each = np.concatenate(changing, axis=1), np.concatenate(places)
    for first in range(0, len(each), _AT_ONCE):
        previous = _partition(every[:, first : first + _AT_ONCE], penalty)
        for column in np.flatnonzero(previous[-1]):
            cuts, end = [], int(previous[-1, column])
            while end > 0:
                cuts.append(end)
                end = int(previous[end, column])
            yield int(each[first + column]), cuts[::-1]


def _sums(log_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """(iterations + 1, series): partial sums of each, in deviations of its noise."""
    values = noise.clipped(log_s)
    values -= values.mean(axis=1, keepdims=True)
    variance = noise.long_run_variance(values) * (1 + _UNSURE / log_s.shape[1])
    values /= np.sqrt(np.maximum(variance, _QUIETEST**2))[:, None]
    sums = np.zeros((log_s.shape[1] + 1, len(values)))
    np.cumsum(values.T, axis=0, out=sums[1:])
    return sums


def _level(sums: NDArray[np.float64], penalty: float) -> NDArray[np.bool_]:
    """(series,): which cannot have a cut, found in a fraction of the time of a partition.

    K cuts pay if their K + 1 segments explain K penalties: one of them explains half a penalty.
    """
    reach = np.ptp(sums, axis=0) ** 2
    level = np.ones(sums.shape[1], dtype=np.bool_)
    left = np.arange(sums.shape[1])  # those that a segment of this length could still explain
    for length in range(1, len(sums)):
        least = length * penalty / 2
        open_ = level[left] & (reach[left] >= least)
        if not open_.any():
            break
        if 2 * open_.sum() < len(left):
            left, sums = left[open_], sums[:, open_]
        level[left] &= ((sums[length:] - sums[:-length]) ** 2).max(axis=0) < least
    return level


def _partition(sums: NDArray[np.float64], penalty: float) -> NDArray[np.intp]:
    """(iterations + 1, series): where the last segment of the first t values starts.

    The cost of the first t values is the least over that start s: of the cost of the first s, of
    the squares of values s to t around their mean, and of the penalty for the cut.
    """
    iterations, count = sums.shape[0] - 1, sums.shape[1]
    # Less the sum of all squares, which every partition has in common.
    cost, previous = np.zeros_like(sums), np.zeros(sums.shape, dtype=np.intp)
    every, rest = np.arange(count), np.empty((iterations, count))
    for end in range(1, iterations + 1):
        explained = np.subtract(sums[:end], sums[end], out=rest[:end])
        explained *= explained
        explained /= np.arange(end, 0, -1)[:, None]
        total = np.subtract(cost[:end], explained, out=explained)
        previous[end] = total.argmin(axis=0)
        cost[end] = total[previous[end], every] + penalty
    return previous
