"""A run that is planned by a budget or a precision, in words: before it, during it, after it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.model.phrases import count
from orchestrator.report import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.model.findings import Findings
    from orchestrator.model.plan import Goal
    from orchestrator.model.precision import Forecast, Precision


def before(goal: Goal, *, most: int) -> str:
    """What follows the rounds that are planned first: the pilot."""
    wishes = []
    if goal.precision is not None:
        asked = words.percent(goal.precision)
        wishes.append(f"until every interval reaches at most {asked} to either side")
    if goal.budget_s is not None:
        wishes.append(f"as long as they fit into {words.duration(goal.budget_s)} of measuring")
    else:
        wishes.append(f"up to {most}")
    return f"That is a pilot; then rounds are added, {', '.join(wishes)}."


def too_small(goal: Goal, round_s: float) -> str:
    """That a budget has no room for a verdict, by the estimate; empty where it may have."""
    if goal.budget_s is None or goal.budget_s >= ENOUGH_BLOCKS * round_s:
        return ""
    fit = int(goal.budget_s // round_s)
    return (
        f"{words.duration(goal.budget_s)} will hardly do: a round takes about "
        f"{words.roughly(round_s)}, so that {_fit(fit)}. Fewer than {ENOUGH_BLOCKS} rounds give no "
        f"verdict; {ENOUGH_BLOCKS} take about {words.roughly(ENOUGH_BLOCKS * round_s)}."
    )


def overrun(goal: Goal, *, rounds: int, spent_s: float) -> str:
    """That the rounds so far have used up the budget; empty where they have not."""
    if goal.budget_s is None or spent_s <= goal.budget_s:
        return ""
    told = (
        f"{count(rounds, 'round')} took {words.duration(spent_s)}, more than the budget of "
        f"{words.duration(goal.budget_s)}: {_fit(int(goal.budget_s / spent_s * rounds))}."
    )
    few = rounds < ENOUGH_BLOCKS
    return f"{told} Fewer than {ENOUGH_BLOCKS} are indicative." if few else told


def forecast(found: Forecast, goal: Goal) -> str:
    """`About 14 rounds, 26 min of measuring in all: differences of 4% and more will be seen.`"""
    told = (
        f"About {count(found.rounds, 'round')}, {words.roughly(found.seconds)} of measuring in all"
    )
    if found.rounds < ENOUGH_BLOCKS:
        return f"{told}: fewer than {ENOUGH_BLOCKS} are indicative, and give no verdict."
    if found.detectable is not None:
        told += f": differences of {words.about(found.detectable)} and more will be seen"
    if found.short_of is not None and goal.precision is not None:
        told += f"; a precision of {words.percent(goal.precision)} takes about {found.short_of}"
    return f"{told}."


def here(rounds: int, seen: float | None, *, expected: bool) -> str:
    """What the last selftest of this machine says of a run of so many rounds.

    `expected`: their number is a forecast. `seen`: None where they are too few for a verdict.
    """
    told = f"About {count(rounds, 'round')}" if expected else count(rounds, "round")
    if seen is None:
        return f"{told}: fewer than {ENOUGH_BLOCKS} are indicative, and give no verdict."
    return f"{told} on this machine can see differences of {words.about(seen)}."


def so_far(goal: Goal | None, *, ended: bool) -> str:
    """` so far; more may be added (budget 30 min 0 s)`, behind a number of rounds."""
    if goal is None:
        return ""
    parts = []
    if goal.budget_s is not None:
        parts.append(f"budget {words.duration(goal.budget_s)}")
    if goal.precision is not None:
        parts.append(f"precision {words.percent(goal.precision)}")
    return f"{'' if ended else ' so far; more may be added'} ({', '.join(parts)})"


def may_grow(goal: Goal | None) -> str:
    """` More rounds may be added then (precision 2%).`; nothing without a goal."""
    told = so_far(goal, ended=True)
    return f" More rounds may be added then{told}." if told else ""


def after(findings: Findings, rounds: int) -> Iterator[str]:
    """What became of a run with a goal."""
    if findings.precision is not None:
        yield reached(findings.precision)
    if findings.ended:
        yield ended(rounds, findings.ended)


def ended(rounds: int, reason: str) -> str:
    """Why a run got no more rounds."""
    return f"No more rounds after {rounds}: {reason}."


def reached(found: Precision) -> str:
    """Whether a run is as precise as was asked, and what it would take."""
    asked = words.percent(found.asked)
    if found.widest is None:
        return f"The precision of {asked} was not reached: nothing was compared."
    # Where it is wider than was asked for, it must not read as if it were not.
    tenths = (round if found.reached else math.ceil)(found.widest * 1000)
    widest = f"the widest interval reaches {tenths / 10:.1f}% to either side"
    if found.reached:
        return f"The precision of {asked} was reached: {widest}."
    takes = ""
    if found.rounds is not None and found.seconds is not None:
        takes = (
            f"; that takes about {count(found.rounds, 'round')}, "
            f"{words.roughly(found.seconds)} more"
        )
    lost = ""
    if found.lost:
        lost = (
            f"; {count(found.lost, 'comparison')} wider than that gave no pair in the last rounds, "
            "and more would hardly narrow "
            f"{'it' if found.lost == 1 else 'them'}"
        )
    return f"The precision of {asked} was not reached: {widest}{takes}{lost}."


def _fit(rounds: int) -> str:
    return {0: "none fits", 1: "1 fits"}.get(rounds, f"{rounds} fit")
