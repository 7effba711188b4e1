"""What to avoid: slow configurations, together where one value makes them slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from orchestrator.advice.tasks import levels
from orchestrator.model.advice import Avoided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.advice.choosing import Judged
    from orchestrator.model.advice import Slow
    from orchestrator.paired.cells import Cells


class _Level(NamedTuple):
    axis: str
    value: str  # empty: a knob that is not turned


def grouped(cells: Cells, judged: Sequence[Judged], *, threshold: float) -> tuple[Avoided, ...]:
    """All slow configurations, the values that explain most of them first.

    A value explains its configurations where all of them are slow, in every task in which there
    was something else to take, and each is slower than the same configuration with another value.
    """
    slow = {cell: item for task in judged for cell, item in task.slow.items()}
    causes = _causes(cells, judged, threshold=threshold)
    left, found = set(slow), []
    while causes:
        level, members = max(causes.items(), key=lambda item: len(item[1] & left))
        if not members & left:
            break
        found.append(_avoided(level, [slow[cell] for cell in sorted(members)]))
        left -= members
        del causes[level]
    return (*found, *(_avoided(None, [slow[cell]]) for cell in sorted(left)))


def _causes(cells: Cells, judged: Sequence[Judged], *, threshold: float) -> dict[_Level, set[int]]:
    found: dict[_Level, set[int]] = {}
    refuted: set[_Level] = set()
    for task in judged:
        values = {cell: levels(cells.keys[cell]) for cell in task.members}
        for axis in dict.fromkeys(axis for turned in values.values() for axis in turned):
            by_value: dict[str, list[int]] = {}
            for cell, turned in values.items():
                by_value.setdefault(turned.get(axis, ""), []).append(cell)
            if len(by_value) == 1:
                continue  # there was nothing else to take
            for value, members in by_value.items():
                level = _Level(axis, value)
                if all(
                    cell in task.slow and _slower(cells, cell, axis, values, threshold)
                    for cell in members
                ):
                    found.setdefault(level, set()).update(members)
                else:
                    refuted.add(level)
    return {level: members for level, members in found.items() if level not in refuted}


def _slower(
    cells: Cells, cell: int, axis: str, values: dict[int, dict[str, str]], threshold: float
) -> bool:
    """Than the fastest that differs from it in this axis alone; False where there is none."""
    rest = {name: value for name, value in values[cell].items() if name != axis}
    others = [
        np.nanmean(cells.log_s[cell] - cells.log_s[other])
        for other, turned in values.items()
        if other != cell
        and {name: value for name, value in turned.items() if name != axis} == rest
        and np.isfinite(cells.log_s[cell] - cells.log_s[other]).any()
    ]
    return bool(others) and max(others) > np.log1p(threshold)


def _avoided(level: _Level | None, slow: Sequence[Slow]) -> Avoided:
    ratios = [item.against_fastest.ratio for item in slow]
    axis, value = level or ("", "")
    return Avoided(axis=axis, value=value, least=min(ratios), most=max(ratios), slow=tuple(slow))
