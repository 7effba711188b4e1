"""How far the ratios along each axis reach, and which axes do not matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.model.advice import Change, Extreme, Indifferent, Range, Ratio
from orchestrator.model.cell import split_knobs
from orchestrator.model.knobs import OF_WORK
from orchestrator.paired import blocks, intervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.paired.cells import Cells, Key


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """All pairs of cells in which one value of an axis takes the place of another, and no more."""

    change: Change
    candidates: tuple[int, ...]
    references: tuple[int, ...]
    log_ratios: NDArray[np.float64]  # (pairs, rounds); NaN where there is none


def changes(cells: Cells, comparison: Comparison) -> list[Pairs]:
    """Every step along every axis: those of the contrasts, and from one size to another."""
    groups: dict[Change, list[tuple[int, int]]] = {}
    for change, candidate, reference in (*_contrasted(cells, comparison), *_sizes(cells)):
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


def ranged(cells: Cells, pairs: Pairs) -> Range:
    """The geometric mean of a step's ratios, and its extremes."""
    each = np.nanmean(pairs.log_ratios, axis=1)
    found = intervals.estimate(by_round(pairs.log_ratios)[None, :], alpha=0.05)

    def extreme(place: int) -> Extreme:
        cell = pairs.candidates[place]
        ratio = float(np.exp(each[place]))
        return Extreme(ratio=ratio, arm=cells.arms[cell], case=cells.cases[cell])

    mean = None
    if np.isfinite(found.low[0]):
        mean = Ratio(
            ratio=float(found.ratio[0]), low=float(found.low[0]), high=float(found.high[0])
        )
    return Range(
        axis=pairs.change.axis,
        level=pairs.change.level,
        reference=pairs.change.reference,
        contrasts=len(each),
        mean=mean,
        best=extreme(int(each.argmin())),
        worst=extreme(int(each.argmax())),
    )


def by_round(log_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over pairs in each round: (rounds,). NaN where a round has no pair at all.

    Rounds are independent of each other, pairs of one round are not: they may share a process. A
    pair that a round lacks takes its own mean, so that no round is one of other pairs.
    """
    valid = np.isfinite(log_ratios)
    own = np.nanmean(log_ratios, axis=1)
    filled = np.where(valid, log_ratios, own[:, None])
    return np.where(valid.any(axis=0), filled.mean(axis=0), np.nan)


def indifferent(comparison: Comparison) -> tuple[Indifferent, ...]:
    """Axes whose contrasts are all `same`, over all that were compared.

    Other work is no choice: twice the batch in the same time is anything but indifferent.
    """
    groups: dict[str, list[Contrast]] = {}
    for item in comparison.contrasts:
        if item.kind != "as_installed" and item.ratio is not None and item.knob not in OF_WORK:
            groups.setdefault(item.knob or item.kind, []).append(item)
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
    places = {
        (arm, case): place
        for place, (arm, case) in enumerate(zip(cells.arms, cells.cases, strict=True))
    }
    for item in comparison.contrasts:
        if item.kind == "as_installed" or item.different:
            continue
        candidate = places[item.candidate.arm, item.candidate.case]
        reference = places[item.reference.arm, item.reference.case]
        axis = item.knob or item.kind
        one, other = values(cells.keys[candidate]), values(cells.keys[reference])
        # Against an arm as reference, two cells may differ in more than what the kind says.
        if {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)} == {
            axis
        }:
            yield (
                Change(axis=axis, level=one.get(axis, ""), reference=other.get(axis, "")),
                candidate,
                reference,
            )


def _sizes(cells: Cells) -> Iterator[tuple[Change, int, int]]:
    """Every other size against the first one, which is no contrast: more work takes longer."""
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for place, key in enumerate(cells.keys):
        own = values(key)
        size = own.pop("size")
        reference = first.setdefault(tuple(sorted(own.items())), place)
        if reference != place:
            other = values(cells.keys[reference])["size"]
            yield Change(axis="size", level=size, reference=other), place, reference


def values(key: Key) -> dict[str, str]:
    """The value of every axis in a cell, by the names of the kinds; turned knobs are axes too."""
    return {
        "version": key.environment,
        "api": key.api,
        "mode": key.mode,
        "workload": key.workload or "",
        "size": f"{key.model}-{key.data}",
        "input": key.input,
        "method": key.method,
        "device": key.device,
        **split_knobs(key.knobs),
    }
