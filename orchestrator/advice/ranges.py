"""How far the ratios along each axis reach, and which axes do not matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from orchestrator.model import axes
from orchestrator.model.advice import (
    INSTALLED,
    Change,
    Extreme,
    Indifferent,
    Range,
    Ratio,
    SimpleEffect,
)
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.paired import blocks, intervals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.paired.cells import Cells


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """All pairs of cells in which one value of an axis takes the place of another, and no more."""

    change: Change
    candidates: tuple[int, ...]
    references: tuple[int, ...]
    log_ratios: NDArray[np.float64]  # (pairs, rounds); NaN where there is none


def changes(cells: Cells, comparison: Comparison) -> list[Pairs]:
    """Every step along every axis: those of the contrasts, and from one size to another."""
    return _pairs(cells, (*_contrasted(cells, comparison), *_sizes(cells)))


def installed(cells: Cells, comparison: Comparison) -> list[Pairs]:
    """Each environment against the reference, both in their own default: often several axes."""
    return _pairs(cells, _as_installed(cells, comparison))


def _pairs(cells: Cells, steps: Iterable[tuple[Change, int, int]]) -> list[Pairs]:
    groups: dict[Change, list[tuple[int, int]]] = {}
    for change, candidate, reference in steps:
        groups.setdefault(change, []).append((candidate, reference))
    found = []
    for change, members in groups.items():
        candidates = np.array([candidate for candidate, _ in members], dtype=np.intp)
        references = np.array([reference for _, reference in members], dtype=np.intp)
        paired = blocks.valid_pairs(cells, candidates, references)
        paired &= ~blocks.apart(cells, candidates, references)[:, None]
        ratios = np.where(paired, cells.log_s[candidates] - cells.log_s[references], np.nan)
        kept = np.isfinite(ratios).any(axis=1)
        if kept.any():
            found.append(
                Pairs(
                    change=change,
                    candidates=tuple(int(cell) for cell in candidates[kept]),
                    references=tuple(int(cell) for cell in references[kept]),
                    log_ratios=ratios[kept],
                )
            )
    return found


def ranged(cells: Cells, pairs: Pairs, *, alpha: float) -> Range:
    """The geometric mean of a step's ratios, overall and at each value of other axes; extremes."""
    each = np.nanmean(pairs.log_ratios, axis=1)
    groups = _groups(cells, pairs)
    members = [range(len(each)), *(group.members for group in groups)]
    whole, *parts = _means(pairs, members, alpha=alpha)

    def extreme(place: int) -> Extreme:
        cell = pairs.candidates[place]
        ratio = float(np.exp(each[place]))
        return Extreme(ratio=ratio, arm=cells.arms[cell], case=cells.cases[cell])

    return Range(
        axis=pairs.change.axis,
        level=pairs.change.level,
        reference=pairs.change.reference,
        contrasts=len(each),
        cases=len({cells.cases[cell] for cell in pairs.candidates}),
        mean=whole,
        best=extreme(int(each.argmin())),
        worst=extreme(int(each.argmax())),
        within=tuple(
            SimpleEffect(where=group.where, contrasts=len(group.members), mean=mean)
            for group, mean in zip(groups, parts, strict=True)
        ),
    )


class _Group(NamedTuple):
    """Pairs that share a value of another axis, and all values that came with it."""

    where: dict[str, str]
    members: tuple[int, ...]


def _groups(cells: Cells, pairs: Pairs) -> list[_Group]:
    """The pairs by the value that both of their cells have of another axis, if there are several.

    Axes that part the pairs in the same way are one. An axis in which the cells of some pair
    differ, such as the mode of environments as installed, parts none.
    """
    sides = [
        (axes.values(cells.keys[candidate]), axes.values(cells.keys[reference]))
        for candidate, reference in zip(pairs.candidates, pairs.references, strict=True)
    ]
    parted: dict[tuple[tuple[int, ...], ...], list[_Group]] = {}
    for axis in dict.fromkeys(axis for both in sides for side in both for axis in side):
        found: dict[str, list[int]] = {}
        for place, (one, other) in enumerate(sides):
            if one.get(axis, "") != other.get(axis, ""):
                break
            found.setdefault(one.get(axis, ""), []).append(place)
        else:
            parts = tuple(tuple(members) for members in found.values())
            known = parted.setdefault(parts, [_Group({}, members) for members in parts])
            for group, value in zip(known, found, strict=True):
                group.where[axis] = value
    return [group for groups in parted.values() if len(groups) > 1 for group in groups]


def _means(pairs: Pairs, groups: Iterable[Sequence[int]], *, alpha: float) -> list[Ratio | None]:
    """The geometric mean of each group of pairs; None where fewer than two rounds have a ratio."""
    rounds = np.array([by_round(pairs.log_ratios[list(members)]) for members in groups])
    found = intervals.estimate(rounds, alpha=alpha)
    return [
        Ratio(ratio=float(ratio), low=float(low), high=float(high)) if np.isfinite(low) else None
        for ratio, low, high in zip(found.ratio, found.low, found.high, strict=True)
    ]


def by_round(log_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over pairs in each round: (rounds,). NaN in rounds that say nothing of it.

    Rounds are independent of each other, pairs of one round are not: they may share a process. So
    the rounds count that all pairs have, where these are enough. Else a round takes what each pair
    has in it, as its distance from the pair's own mean, the larger the fewer rounds the pair has:
    then the rounds vary as much as the mean over pairs that were measured unequally often does.
    """
    valid = np.isfinite(log_ratios)
    shared = valid.all(axis=0)
    if shared.sum() >= ENOUGH_BLOCKS:
        return np.where(shared, np.where(shared, log_ratios, 0.0).mean(axis=0), np.nan)
    some = valid.any(axis=0)
    rounds, own = valid.sum(axis=1), np.nanmean(log_ratios, axis=1)
    if rounds.min() == 1:  # nobody knows how much that pair varies
        return np.where(some & (np.cumsum(some) == 1), own.mean(), np.nan)
    every = some.sum()
    # Of the rounds over the pair's own, without the bias of a variance around its own mean.
    scale = np.sqrt((every / rounds) * (every - 1) / (rounds - 1))
    apart = np.where(valid, log_ratios - own[:, None], 0.0) * scale[:, None]
    return np.where(some, own.mean() + apart.mean(axis=0), np.nan)


def indifferent(comparison: Comparison) -> tuple[Indifferent, ...]:
    """Axes whose contrasts are all `same`, over all that were compared.

    Other work is no choice: twice the batch in the same time is anything but indifferent.
    """
    groups: dict[str, list[Contrast]] = {}
    for item in comparison.contrasts:
        if (
            item.kind != "as_installed"
            and item.ratio is not None
            and item.knob not in axes.WORK_AXES
        ):
            groups.setdefault(axes.of_contrast(item), []).append(item)
    found = []
    for axis, members in groups.items():
        ends = [(item.low, item.high) for item in members if item.state == "same"]
        lows = [low for low, _ in ends if low is not None]
        highs = [high for _, high in ends if high is not None]
        if len(lows) == len(highs) == len(members):
            found.append(
                Indifferent(axis=axis, contrasts=len(members), low=min(lows), high=max(highs))
            )
    return tuple(found)


def _contrasted(cells: Cells, comparison: Comparison) -> Iterator[tuple[Change, int, int]]:
    places = _places(cells)
    for item in comparison.contrasts:
        if item.kind == "as_installed" or item.different:
            continue
        candidate = places[item.candidate.arm, item.candidate.case]
        reference = places[item.reference.arm, item.reference.case]
        axis = axes.of_contrast(item)
        one, other = axes.values(cells.keys[candidate]), axes.values(cells.keys[reference])
        # Against an arm as reference, two cells may differ in more than what the kind says.
        if {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)} == {
            axis
        }:
            yield (
                Change(axis=axis, level=one.get(axis, ""), reference=other.get(axis, "")),
                candidate,
                reference,
            )


def _as_installed(cells: Cells, comparison: Comparison) -> Iterator[tuple[Change, int, int]]:
    places = _places(cells)
    for item in comparison.contrasts:
        if item.kind == "as_installed" and not item.different:
            candidate = places[item.candidate.arm, item.candidate.case]
            reference = places[item.reference.arm, item.reference.case]
            one, other = cells.keys[candidate].environment, cells.keys[reference].environment
            yield Change(axis=INSTALLED, level=one, reference=other), candidate, reference


def _places(cells: Cells) -> dict[tuple[str, str], int]:
    names = zip(cells.arms, cells.cases, strict=True)
    return {(arm, case): place for place, (arm, case) in enumerate(names)}


def _sizes(cells: Cells) -> Iterator[tuple[Change, int, int]]:
    """Every other size against the first one, which is no contrast: more work takes longer."""
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for place, key in enumerate(cells.keys):
        own = axes.values(key)
        size = own.pop("size")
        reference = first.setdefault(tuple(sorted(own.items())), place)
        if reference != place:
            other = axes.values(cells.keys[reference])["size"]
            yield Change(axis="size", level=size, reference=other), place, reference
