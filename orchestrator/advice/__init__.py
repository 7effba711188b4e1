"""What to choose, what to avoid and what does not matter, from the measured grid alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.advice import avoiding, choosing, effects, interactions, ranges, steps
from orchestrator.advice.tasks import tasks_of
from orchestrator.model.advice import Advice, Asked
from orchestrator.paired.cells import read

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.model.comparison import Comparison

__all__ = ["of"]

_AS_NAMED: Final = Asked()


def of(frame: pd.DataFrame, comparison: Comparison, asked: Asked = _AS_NAMED) -> Advice:
    """The advice of a merged table and its comparison; no rule is known beforehand.

    Claims are corrected for how many were possible: in a grid without differences one in a hundred
    has any. `comparison` gives all contrasts, the reference and the practical threshold; `asked`:
    how the user asked for what was measured.
    """
    cells = read(frame)
    found = tasks_of(cells, comparison)
    judged = [choosing.judged(cells, task, comparison, tasks=len(found)) for task in found]
    choices = tuple(item.choice for item in judged)
    spread = ranges.changes(cells, comparison)
    return Advice(
        choices=choices,
        avoid=avoiding.grouped(cells, judged, threshold=comparison.threshold),
        indifferent=ranges.indifferent(comparison),
        ranges=tuple(
            ranges.ranged(cells, step, alpha=comparison.alpha)
            for step in (*ranges.installed(cells, comparison), *spread)
        ),
        effects=effects.main(spread, threshold=comparison.threshold, alpha=comparison.alpha),
        interactions=interactions.found(
            cells, spread, threshold=comparison.threshold, alpha=comparison.alpha
        ),
        steps=steps.after(cells, found, judged, asked),
    )
