"""Iterations that take far longer than their neighbours, and whether they come in a rhythm.

Outliers are told by the median absolute deviation around a running median (Hampel, 1974; Pearson,
2002, IEEE Transactions on Control Systems Technology 10, 55-63). A rhythm is searched among all
periods and phases: the tail of the binomial says how often events without a rhythm fall into its
places, times the number of rhythms that were looked at (Bonferroni).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import special

from orchestrator.series import noise
from orchestrator.series.stacks import by_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ENOUGH: Final = 20  # iterations
# Deviations of the noise, and a fraction of the time: a spike exceeds both.
_DEVIATIONS: Final = 6.0
_FLOOR: Final = 0.15
_WINDOW: Final = 15
_SHORTEST: Final = 4  # a shorter period is no row of spikes, but times that alternate
_LEAST: Final = 4  # fewer have no rhythm
_FILLED: Final = 0.75  # of the places of a rhythm these must have a spike
_BY_CHANCE: Final = 0.05


class Spikes(NamedTuple):
    """The distribution of the values of one process, in seconds, and its spikes.

    `spikes`: how many; `share`: of the iterations; `size`: their median, over that of all;
    `period`: in iterations, None where they have no rhythm.
    """

    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    spikes: int
    share: float
    size: float | None
    period: int | None


def find(every: Sequence[Sequence[float]]) -> list[Spikes | None]:
    """Of the timed iterations of each process, in seconds; None for too few of them."""
    found: list[Spikes | None] = [None] * len(every)
    for places, seconds in by_length(every, enough=ENOUGH):
        marked = spiking(seconds)
        count, iterations = marked.sum(axis=1), seconds.shape[1]
        p50, p95, p99 = np.percentile(seconds, (50, 95, 99), axis=1)
        sizes = _median_of(seconds, marked) / p50
        columns = (p50, p95, p99, seconds.max(axis=1), count, count / iterations, sizes)
        for place, row, numbers in zip(
            places.tolist(),
            marked,
            zip(*(each.tolist() for each in columns), strict=True),
            strict=True,
        ):
            p50_s, p95_s, p99_s, largest_s, spikes, share, size = numbers
            found[place] = Spikes(
                p50_s,
                p95_s,
                p99_s,
                largest_s,
                spikes=spikes,
                share=share,
                size=size if spikes else None,
                period=rhythm(np.flatnonzero(row), iterations) if spikes >= _LEAST else None,
            )
    return found


def _median_of(values: NDArray[np.float64], marked: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(series,): the median of the marked values; infinite where none is."""
    ranked = np.sort(np.where(marked, values, np.inf), axis=1)  # the others last
    count = np.maximum(marked.sum(axis=1), 1)
    rows = np.arange(len(values))
    middle: NDArray[np.float64] = (ranked[rows, (count - 1) // 2] + ranked[rows, count // 2]) / 2
    return middle


def spiking(seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(series, iterations): which of them are spikes.

    Not by their logarithms: where others share the cores, some iterations take a quarter of the
    usual time and some twice as long, and it is those that take longer which a spike must exceed.
    """
    rest = seconds / noise.course(seconds, window=_WINDOW) - 1
    found: NDArray[np.bool_] = rest > np.maximum(_DEVIATIONS * noise.mad(rest), _FLOOR)[:, None]
    return found


def rhythm(places: NDArray[np.intp], iterations: int) -> int | None:
    """The period in which events come, out of the places of all; None for none."""
    # Neighbours are one event: what takes long may begin in one iteration and end in the next.
    events = places[np.diff(places, prepend=-2) > 1]
    if len(events) < _LEAST:
        return None
    periods = np.arange(_SHORTEST, iterations // (_LEAST - 1) + 1)
    best, found = _BY_CHANCE, None
    for width in (0, 1, 2):  # iterations by which each may be early or late
        usable = periods[periods >= 5 * (2 * width + 1)] if width else periods
        chance, period = _likeliest(events, usable, width, iterations)
        if chance < best:
            best, found = chance, period
    return found


def _likeliest(
    events: NDArray[np.intp], periods: NDArray[np.intp], width: int, iterations: int
) -> tuple[float, int | None]:
    """The period that events without a rhythm would hit least often, and how often that is."""
    looked_at = len(periods) * len(events)
    # Of any phase a rhythm has at least so many places; too few events cannot fill them.
    periods = periods[_FILLED * (iterations // periods) <= len(events)]
    # (periods, phases, events): each event in turn says where the places of a rhythm lie.
    distance = events[None, None, :] - events[None, :, None]
    late = (distance + width) % periods[:, None, None]
    hits = (late <= 2 * width).sum(axis=2)
    places = (iterations - 1 - events % periods[:, None]) // periods[:, None] + 1
    filled = (hits >= _FILLED * places) & (hits >= _LEAST)
    which, phases = filled.nonzero()
    if len(which) == 0:
        return 1.0, None
    share = (2 * width + 1) / periods[which]
    chance = looked_at * special.bdtrc(hits[which, phases] - 2, len(events) - 1, share)
    least = int(chance.argmin())
    return float(chance[least]), int(periods[which[least]])
