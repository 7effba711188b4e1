"""Which ratios depend on another axis: a version that is slower in one mode only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from orchestrator.advice.choosing import beyond
from orchestrator.advice.ranges import by_round
from orchestrator.model import axes
from orchestrator.model.advice import Interaction, Ratio
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.paired import intervals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from orchestrator.advice.ranges import Pairs
    from orchestrator.model.advice import Change
    from orchestrator.paired.cells import Cells

ERROR: Final = 0.01  # over all questions of a grid together
_SIDES: Final = 2


class _Question(NamedTuple):
    change: Change
    by: Change
    at_reference: NDArray[np.float64]  # (rounds,): mean log ratio over the matched pairs
    at_level: NDArray[np.float64]


def found(
    cells: Cells, steps: Sequence[Pairs], *, threshold: float, alpha: float
) -> tuple[Interaction, ...]:
    """Every pair of steps whose ratios depend on each other, the strongest first.

    The ratio of one step where the other was taken over that where it was not, within rounds, for
    otherwise equal cells: Student's t over rounds, held to its share of the error (Bonferroni), and
    only where it exceeds the threshold.
    """
    questions = [
        item
        for item in _questions(cells, steps)
        if np.isfinite(item.at_level - item.at_reference).sum() >= ENOUGH_BLOCKS
    ]
    if not questions:
        return ()
    factors = np.array([item.at_level - item.at_reference for item in questions])
    signs = np.where(np.nanmean(factors, axis=1) < 0, -1.0, 1.0)
    p = _SIDES * beyond(factors * signs[:, None], float(np.log1p(threshold)))
    sure = p < ERROR / len(questions)
    numbers = intervals.estimate(factors, alpha=alpha / len(questions))
    interactions = [
        Interaction(
            change=item.change,
            by=item.by,
            at_reference=float(np.exp(np.nanmean(item.at_reference))),
            at_level=float(np.exp(np.nanmean(item.at_level))),
            factor=Ratio(
                ratio=float(numbers.ratio[place]),
                low=float(numbers.low[place]),
                high=float(numbers.high[place]),
            ),
        )
        for place, item in enumerate(questions)
        if sure[place]
    ]
    return tuple(sorted(interactions, key=lambda item: -abs(np.log(item.factor.ratio))))


def _questions(cells: Cells, steps: Sequence[Pairs]) -> list[_Question]:
    """Each two steps once: that a depends on b is that b depends on a."""
    own = [axes.values(key) for key in cells.keys]
    asked = []
    for place, one in enumerate(steps):
        for other in steps[place + 1 :]:
            if one.change.axis != other.change.axis:
                question = _question(own, one, other.change)
                if question is not None:
                    asked.append(question)
    return asked


def _question(own: Sequence[dict[str, str]], pairs: Pairs, by: Change) -> _Question | None:
    """The pairs that have a partner across `by`, both sides of it."""
    at: dict[str, dict[tuple[tuple[str, str], ...], int]] = {by.reference: {}, by.level: {}}
    for place, (candidate, reference) in enumerate(
        zip(pairs.candidates, pairs.references, strict=True)
    ):
        level = own[candidate].get(by.axis, "")
        if level != own[reference].get(by.axis, "") or level not in at:
            continue
        rest = {
            name: value
            for name, value in own[candidate].items()
            if name not in {by.axis, pairs.change.axis}
        }
        at[level][tuple(sorted(rest.items()))] = place
    matched = [key for key in at[by.reference] if key in at[by.level]]
    if not matched:
        return None
    before = pairs.log_ratios[[at[by.reference][key] for key in matched]]
    after = pairs.log_ratios[[at[by.level][key] for key in matched]]
    return _Question(pairs.change, by, by_round(before), by_round(after))
