"""From what single processes show to what is said of their cell."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from orchestrator.model.quantities import ENOUGH_PROCESSES, FINDINGS, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.quantities import FindingKind
    from orchestrator.quantities.processes import Shown
    from orchestrator.series.spikes import Spikes

# One iteration in a hundred is interrupted on any machine. Fewer than these are no property of the
# cell, unless they have a rhythm.
MANY_SPIKES: Final = 0.03

Numbers = dict[str, float]


def of_cell(arm: str, case: str, processes: Sequence[Shown]) -> list[Finding]:
    """What more than half of the processes show, of those that could."""
    every = [claims(shown) for shown in processes]
    found = []
    for kind in FINDINGS:
        told = [each[kind] for each in every if kind in each]
        shown = [numbers for numbers in told if numbers is not None]
        # A GPU that heats up in one process is one that might have in others.
        least = 0 if kind == "throttle unknown" else len(told) / 2
        if len(shown) > least:
            found.append(
                Finding(
                    kind=kind,
                    arm=arm,
                    case=case,
                    shown=len(shown),
                    processes=len(told),
                    indicative=len(told) < ENOUGH_PROCESSES,
                    numbers=_together(shown),
                )
            )
    return found


def claims(shown: Shown) -> dict[FindingKind, Numbers | None]:
    """What one process could show: the numbers with which it does, or None where it does not."""
    found: dict[FindingKind, Numbers | None] = {}
    if shown.memory is not None:
        growth = {"bytes": shown.memory.an_iteration}
        found["memory grows"] = growth if shown.memory.rises else None
    if shown.time is not None:
        rise = {"fraction": shown.time.whole} if shown.time.rises else None
        found["gets slower"] = rise
        if shown.throttle == "unknown":
            found["throttle unknown"] = rise
    if shown.spikes is not None and not shown.turns:
        found["spikes"] = _spikes(shown.spikes)
    if shown.retraces is not None:
        found["retraces"] = {"retraces": float(shown.retraces)} if shown.retraces else None
    if shown.state != "too short":
        found["no steady state"] = {} if shown.state == "no steady state" else None
    return found


def _spikes(found: Spikes) -> Numbers | None:
    if found.size is None or (found.period is None and found.share < MANY_SPIKES):
        return None
    numbers = {"share": found.share, "size": found.size}
    return numbers if found.period is None else {**numbers, "period": float(found.period)}


def _together(shown: Sequence[Numbers]) -> Numbers:
    """The median of each number; a number that fewer than half of them have is left out."""
    names = dict.fromkeys(name for numbers in shown for name in numbers)
    have = {name: [numbers[name] for numbers in shown if name in numbers] for name in names}
    return {
        name: statistics.median(values)
        for name, values in have.items()
        if len(values) > len(shown) / 2
    }
