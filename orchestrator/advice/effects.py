"""Which axis matters most: how far the values of each lie apart, over all measured cells."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from orchestrator.advice.choosing import beyond
from orchestrator.advice.ranges import by_round
from orchestrator.model import axes
from orchestrator.model.advice import MainEffect, Ratio
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.paired import intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from orchestrator.advice.ranges import Pairs

ERROR: Final = 0.01  # over all axes of a grid together, for what is said to matter
ORDER: Final = 0.05  # for naming one axis before another
_SIDES: Final = 2


class _Apart(NamedTuple):
    """Two values of an axis, the slower one first."""

    axis: str
    slower: str
    faster: str
    contrasts: int
    by_round: NDArray[np.float64]  # (rounds,): mean log ratio over otherwise equal cells


def main(steps: Sequence[Pairs], *, threshold: float, alpha: float) -> tuple[MainEffect, ...]:
    """The effect of every axis that is a choice, the largest first.

    Of the values of an axis those count that lie furthest apart. Whoever looks for the widest of
    many pairs finds one by luck: each pair of values is held to its share of the error, over all
    axes (Bonferroni's bound), by Student's t over rounds against the threshold.
    """
    pairs = [item for item in _pairs(steps) if _rounds(item) > 1]
    if not pairs:
        return ()
    surprise = _SIDES * beyond(np.array([item.by_round for item in pairs]), np.log1p(threshold))
    widest: dict[str, int] = {}
    for place, item in enumerate(pairs):
        known = widest.setdefault(item.axis, place)
        if _size(item) > _size(pairs[known]):
            widest[item.axis] = place
    order = sorted(widest.values(), key=lambda place: -_size(pairs[place]))
    sure = [
        bool(surprise[place] < ERROR / len(pairs)) and _rounds(pairs[place]) >= ENOUGH_BLOCKS
        for place in order
    ]
    most = _most([pairs[place] for place in order], sure)
    return tuple(
        _effect(
            pairs[place],
            alpha=alpha / sum(item.axis == pairs[place].axis for item in pairs),
            sure=certain,
            most=first,
        )
        for place, certain, first in zip(order, sure, most, strict=True)
    )


def _pairs(steps: Sequence[Pairs]) -> Iterator[_Apart]:
    """Each value against its reference, and each two values that share one."""
    # Other work takes another time: that is no choice.
    choices = [step for step in steps if step.change.axis not in axes.WORK_AXES]
    for step in choices:
        change = step.change
        yield _oriented(change.axis, change.level, change.reference, step.log_ratios)
    for one, other in itertools.combinations(choices, 2):
        if (one.change.axis, one.change.reference) == (other.change.axis, other.change.reference):
            ratios = _between(one, other)
            if len(ratios):
                yield _oriented(one.change.axis, one.change.level, other.change.level, ratios)


def _between(one: Pairs, other: Pairs) -> NDArray[np.float64]:
    """(pairs, rounds): log ratios of the candidates of two steps that share their reference."""
    places = {cell: place for place, cell in enumerate(other.references)}
    shared = [(place, places[cell]) for place, cell in enumerate(one.references) if cell in places]
    first = [place for place, _ in shared]
    second = [place for _, place in shared]
    ratios: NDArray[np.float64] = one.log_ratios[first] - other.log_ratios[second]
    return ratios[np.isfinite(ratios).any(axis=1)]


def _oriented(axis: str, level: str, reference: str, ratios: NDArray[np.float64]) -> _Apart:
    mean = by_round(ratios)
    if np.nanmean(mean) < 0:
        return _Apart(axis, reference, level, len(ratios), -mean)
    return _Apart(axis, level, reference, len(ratios), mean)


def _size(item: _Apart) -> float:
    return float(np.nanmean(item.by_round))


def _rounds(item: _Apart) -> int:
    return int(np.isfinite(item.by_round).sum())


def _most(axes: Sequence[_Apart], sure: Sequence[bool]) -> list[bool]:
    """Which may matter most: the first, and those that are not surely smaller, by rounds."""
    if not any(sure):
        return [False] * len(axes)
    first = axes[sure.index(True)]
    others = max(1, sum(sure) - 1)
    smaller = beyond(np.array([first.by_round - item.by_round for item in axes]), 0.0)
    return [
        certain and (item is first or not p < ORDER / others)
        for item, certain, p in zip(axes, sure, smaller, strict=True)
    ]


def _effect(item: _Apart, *, alpha: float, sure: bool, most: bool) -> MainEffect:
    """`alpha`: the share of one of the pairs of values that the axis has."""
    found = intervals.estimate(item.by_round[None, :], alpha=alpha)
    return MainEffect(
        axis=item.axis,
        slowest=item.slower,
        fastest=item.faster,
        contrasts=item.contrasts,
        apart=Ratio(
            ratio=float(found.ratio[0]), low=float(found.low[0]), high=float(found.high[0])
        ),
        sure=sure,
        most=most,
    )
