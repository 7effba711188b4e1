"""Whether a process gets slower, or its memory grows, from one iteration to the next.

A series is cut into ten blocks, and a line is fitted to their medians by least squares: medians
pass by spikes, and neighbours of that distance no longer depend on each other, so that the usual t
of the slope holds (Draper and Smith, Applied Regression Analysis, 3rd ed., section 1.4). A rise
must also be worth the word: a floor keeps what is sure, but tiny, out.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import stats

from orchestrator.series.stacks import by_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BLOCKS: Final = 10
ENOUGH: Final = 50  # iterations, so that a block has a median
SURE: Final = 0.006  # the share of t values that noise leaves beyond the bound
# In shorter series neighbouring blocks do depend on each other: the bound is the stricter.
_LONG: Final = 200
# Of the time: over the whole series. Ten blocks of noise of 3% that depends on itself by .6 rise by
# as much in 2 of 1,000 series of 200.
FLOOR: Final = float(np.log(1.04))
FLOOR_BYTES: Final = 5_000.0  # of the memory: an iteration, half of 1 MB in a hundred
ENOUGH_SAMPLES: Final = 5
# Memory that grew once, and then stays, is a cache. What leaks grows from block to block.
_APART: Final = 3
_AT_ONCE: Final = 0.7  # of all growth between two blocks that are next but one


class Trend(NamedTuple):
    """How a series changes. `an_iteration`: seconds or bytes; `whole`: from its start to its end.

    `whole` is a fraction of the time at the start, or bytes.
    """

    an_iteration: float
    whole: float
    rises: bool


def of_times(every: Sequence[Sequence[float]]) -> list[Trend | None]:
    """Of the timed iterations of each process, in seconds; None for too few of them."""
    found: list[Trend | None] = [None] * len(every)
    for places, seconds in by_length(every, enough=ENOUGH):
        log_s = np.log(seconds)
        slopes, rises = rising(log_s)
        wholes = np.expm1(slopes * log_s.shape[1])
        starts = np.exp(np.median(log_s, axis=1) - slopes * log_s.shape[1] / 2)
        each = starts * wholes / log_s.shape[1]
        for row, place in enumerate(places):
            found[place] = Trend(float(each[row]), float(wholes[row]), bool(rises[row]))
    return found


def rising(log_s: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(series,): the change of the logarithm an iteration, and whether the series rises."""
    count = log_s.shape[1]
    edges = np.linspace(0, count, BLOCKS + 1).round().astype(int)
    places = (edges[:-1] + edges[1:] - 1) / 2
    slope, t = _line(places, _medians(log_s, edges))
    sure = stats.t.isf(SURE * min(1.0, count / _LONG), BLOCKS - 2)
    return slope, (t > sure) & (slope * count > FLOOR)


def of_memory(
    every: Sequence[Sequence[float]], *, iterations: Sequence[int], sampled: Sequence[int]
) -> list[Trend | None]:
    """Of the resident memory of each process, in bytes; None when it was read too rarely.

    `every`: what was read before the first iteration, after each `sampled`, and after the last.
    """
    found: list[Trend | None] = [None] * len(every)
    for places, values in by_length(every, enough=ENOUGH_SAMPLES + 1):
        counts = np.array([(iterations[int(place)], sampled[int(place)]) for place in places])
        for count, step in np.unique(counts, axis=0):
            alike = (counts == (count, step)).all(axis=1)
            slopes, rises = _growing(values[alike], count, step)
            for place, slope, grows in zip(places[alike], slopes, rises, strict=True):
                found[int(place)] = Trend(float(slope), float(slope * count), bool(grows))
    return found


def _growing(
    read: NDArray[np.float64], iterations: int, sampled: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(series,): bytes an iteration, and whether the memory grows."""
    # The first iteration allocates what all others use: the sample before it tells nothing.
    values = read[:, 1:]
    at = np.minimum(np.arange(1, values.shape[1] + 1) * sampled, iterations).astype(float)
    blocks = min(BLOCKS, values.shape[1])
    edges = np.linspace(0, values.shape[1], blocks + 1).round().astype(int)
    medians, places = _medians(values, edges), _medians(at[None, :], edges)[0]
    slope, t = _line(places, medians)
    sure = (t > stats.t.isf(SURE, blocks - 2)) & (slope > FLOOR_BYTES)
    return slope, sure & _goes_on(places, medians)


def _goes_on(places: NDArray[np.float64], medians: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether it grows by half the floor in most places and in the second half, not at once."""
    apart, half = min(_APART, len(places) - 2), len(places) // 2
    usual = np.median(
        (medians[:, apart:] - medians[:, :-apart]) / (places[apart:] - places[:-apart]), axis=1
    )
    late = (medians[:, -1] - medians[:, half]) / (places[-1] - places[half])
    most = (medians[:, 2:] - medians[:, :-2]).max(axis=1)
    at_once = most > _AT_ONCE * (medians[:, -1] - medians[:, 0])
    found: NDArray[np.bool_] = (np.minimum(usual, late) > FLOOR_BYTES / 2) & ~at_once
    return found


def _medians(series: NDArray[np.float64], edges: NDArray[np.int_]) -> NDArray[np.float64]:
    pairs = pairwise(edges)
    return np.stack([np.median(series[:, first:last], axis=1) for first, last in pairs], axis=1)


def _line(
    places: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(series,): least squares over `places`: slope, and its t with two degrees fewer."""
    x = places - places.mean()
    y = values - values.mean(axis=1, keepdims=True)
    slope = y @ x / (x @ x)
    rest = ((y - slope[:, None] * x) ** 2).sum(axis=1)
    error = np.sqrt(rest / (len(x) - 2) / (x @ x))
    # Without any noise, what rises does so for sure.
    return slope, slope / np.maximum(error, 1e-9 * np.abs(slope) + np.finfo(float).tiny)
