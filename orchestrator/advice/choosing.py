"""The fastest configuration of a task, and those that are surely slower.

Whoever looks for the best of many finds one that was lucky. Two bounds keep that out. To crown a
wrong configuration, it must beat the true best by mistake: k - 1 tests could do that, so each is
held to a (k - 1)th of the error. To call any of k configurations slower than whichever came out
best, one of k (k - 1) ordered pairs must err: each is held to that share (both are Bonferroni's
bound). Every test asks for more than the practical threshold, not for more than nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from orchestrator.advice.tasks import configuration
from orchestrator.model import phrases
from orchestrator.model.advice import Choice, Ratio, Slow
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.paired import blocks, intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from orchestrator.advice.tasks import Grouped
    from orchestrator.model.comparison import Comparison
    from orchestrator.paired.cells import Cells

# One grid without differences in a hundred may have an advice, over all its tasks together.
ERROR: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A task's choice, and its configurations that are surely slower than the fastest."""

    choice: Choice
    slow: Mapping[int, Slow] = field(default_factory=dict)  # by their places in `Cells`
    members: tuple[int, ...] = ()  # that took part; none where nothing could be said
    undecided: tuple[int, ...] = ()  # the fastest, and what more rounds could tell from it


def judged(cells: Cells, group: Grouped, comparison: Comparison, *, tasks: int) -> Judged:
    """What one of so many tasks says."""
    enough = [cell for cell in group.members if cells.measured[cell].sum() >= ENOUGH_BLOCKS]
    reason = _nothing_to_say(cells, group, enough, comparison)
    if reason:
        choice = Choice(task=group.task, configurations=len(group.members), reason=reason)
        return Judged(choice=choice)
    order = _by_time(cells, np.array(enough, dtype=np.intp))
    best, others = order[:1], order[1:]
    count = len(order)
    references = np.repeat(best, count - 1)
    paired = blocks.valid_pairs(cells, others, references)
    ratios = np.where(paired, cells.log_s[others] - cells.log_s[references], np.nan)
    surprise = beyond(ratios, np.log1p(comparison.threshold))
    surprise[blocks.apart(cells, others, references)] = 1.0
    surprise[paired.sum(axis=1) < ENOUGH_BLOCKS] = 1.0
    level = ERROR / tasks / (count - 1)
    crowned = bool((surprise < level).all())
    slower = surprise < level / count
    found = intervals.estimate(ratios, alpha=comparison.alpha / (count - 1))
    against = [
        Ratio(ratio=float(ratio), low=float(low), high=float(high))
        if np.isfinite(low) and np.isfinite(high)
        else None
        for ratio, low, high in zip(found.ratio, found.low, found.high, strict=True)
    ]
    slow = {
        int(cell): Slow(
            configuration=configuration(cells, int(cell), comparison),
            task=group.task,
            against_fastest=ratio,
        )
        for cell, sure, ratio in zip(others, slower, against, strict=True)
        if sure and ratio is not None
    }
    tied = [] if crowned else [int(cell) for cell in others[~slower]]
    reach = found.high > 1 + comparison.threshold  # more than that slower, for all that is known
    return Judged(
        choice=_choice(cells, group, comparison, order=order, tied=tied, against=against),
        slow=slow,
        members=tuple(enough),
        undecided=(int(best[0]), *(int(cell) for cell in others[reach] if cell in tied)),
    )


def beyond(log_ratios: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """One-sided p of each row: how surprising if its true mean were no more than `least`.

    Student's t over the paired log ratios; NaN entries are no pairs, and one pair says nothing.
    """
    pairs, mean, error = intervals.means(log_ratios)
    freedom = np.maximum(pairs - 1, 1)
    flat = error == 0
    distance = (mean - least) / np.where(flat, 1.0, error)
    p = np.where(flat, np.where(mean > least, 0.0, 1.0), stats.t.sf(distance, freedom))
    return np.where(pairs > 1, p, 1.0)


def _nothing_to_say(
    cells: Cells, group: Grouped, enough: list[int], comparison: Comparison
) -> str | None:
    if len(group.members) == 1:
        return "one configuration has a number: there is nothing to choose from"
    if len(enough) < 2:  # noqa: PLR2004
        most = int(cells.measured[list(group.members)].sum(axis=1).max())
        return f"{phrases.count(most, 'round')} of each, a choice needs {ENOUGH_BLOCKS}"
    names = {(cells.arms[cell], cells.cases[cell]) for cell in group.members}
    for item in comparison.contrasts:
        both = {
            (item.candidate.arm, item.candidate.case),
            (item.reference.arm, item.reference.case),
        }
        if both <= names and item.different:
            return f"{item.candidate.arm} and {item.reference.arm} compute something else"
    return None


def _by_time(cells: Cells, members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Fastest first, by the mean log time relative to each round's median: a slow round is one."""
    log_s = cells.log_s[members]
    rounds = np.isfinite(log_s).any(axis=0)
    relative = log_s[:, rounds] - np.nanmedian(log_s[:, rounds], axis=0)
    return members[np.argsort(np.nanmean(relative, axis=1), kind="stable")]


def _choice(
    cells: Cells,
    group: Grouped,
    comparison: Comparison,
    *,
    order: NDArray[np.intp],
    tied: Sequence[int],
    against: Sequence[Ratio | None],
) -> Choice:
    best, *others = (int(cell) for cell in order)
    if len(tied) == len(others):
        reason = (
            f"none of {phrases.count(len(order), 'configuration')} is surely faster than another"
        )
        return Choice(task=group.task, configurations=len(order), reason=reason)
    second = next((place for place, cell in enumerate(others) if cell not in tied), 0)
    installed = group.as_installed if group.as_installed in (best, *others) else None
    place = others.index(installed) if installed in others else None
    return Choice(
        task=group.task,
        configurations=len(order),
        fastest=tuple(configuration(cells, cell, comparison) for cell in (best, *tied)),
        next=configuration(cells, others[second], comparison),
        against_next=against[second],
        as_installed=None if installed is None else configuration(cells, installed, comparison),
        against_installed=None if place is None else against[place],
    )
