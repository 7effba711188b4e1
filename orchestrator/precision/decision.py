"""Whether a run gets another round, of which cases, and what it will have seen in the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.model.phrases import count
from orchestrator.model.precision import Forecast, Precision
from orchestrator.precision import widths

if TYPE_CHECKING:
    from orchestrator.model.plan import Goal, Plan
    from orchestrator.paired.intervals import Floats
    from orchestrator.precision.measured import Measured

PILOT: Final = 3  # rounds, from which noise and times are known
MOST: Final = 100  # rounds for a precision, where no budget ends them
MOST_IN_BUDGET: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The cases of the next round, and why these; without any, why the run ends."""

    cases: tuple[str, ...]
    reason: str


def pilot(goal: Goal, round_s: float) -> int:
    """How many rounds come first: fewer where a budget has hardly room. `round_s`: an estimate."""
    return min(PILOT, expected(goal, round_s))


def expected(goal: Goal, round_s: float) -> int:
    """How many rounds there will be at most. `round_s`: an estimate."""
    if goal.budget_s is None:
        return MOST
    return min(MOST_IN_BUDGET, max(1, math.floor(goal.budget_s / round_s)))


def most(goal: Goal) -> int:
    """No run gets more rounds than that."""
    return MOST if goal.budget_s is None else MOST_IN_BUDGET


def decide(found: Measured, plan: Plan, goal: Goal) -> Decision:
    """Look at widths and time, and at nothing else."""
    asking = widths.asking(found.log_ratios, precision=goal.precision)
    wanted = frozenset().union(*(found.cases[place] for place in np.flatnonzero(asking)))
    cases = tuple(case.name for case in plan.cases if case.name in wanted)
    if not found.cases:
        return Decision(cases=(), reason="no comparison has pairs that more rounds would add to")
    if not cases:
        lost = goal.precision is not None and _wide(found.lost, goal.precision)
        which = "that more rounds would narrow " if lost else ""
        return Decision(cases=(), reason=f"every interval {which}is as narrow as was asked for")
    if goal.budget_s is not None and found.spent_s + found.seconds(cases) > goal.budget_s:
        few = f", and fewer than {ENOUGH_BLOCKS} rounds give no verdict: allow more"
        end = few if plan.rounds < ENOUGH_BLOCKS else ""
        return Decision(cases=(), reason=f"another round does not fit into the budget{end}")
    if plan.rounds >= most(goal):
        return Decision(cases=(), reason=f"a run has {most(goal)} rounds at most")
    return Decision(cases=cases, reason=_why(found, goal, int(asking.sum())))


def forecast(found: Measured, plan: Plan, goal: Goal) -> Forecast | None:
    """What is expected after the rounds so far; None while their noise cannot be told.

    As if every case got all rounds that are still to come, and all contrasts were as noisy.
    """
    spread = widths.spread(found.log_ratios)
    if spread is None:
        return None
    round_s = found.seconds(found.compared)
    rounds, needed = most(goal), None
    if goal.budget_s is not None:
        more = (goal.budget_s - found.spent_s) / round_s if round_s else rounds
        rounds = min(rounds, plan.rounds + max(0, math.floor(more)))
    if goal.precision is not None:
        needed = max(plan.rounds, widths.rounds_for(spread, goal.precision))
        rounds, needed = min(rounds, needed), needed if needed > rounds else None
    return Forecast(
        rounds=rounds,
        seconds=found.spent_s + (rounds - plan.rounds) * round_s,
        detectable=widths.detectable(spread, rounds, threshold=plan.threshold),
        short_of=needed,
    )


def reached(found: Measured, plan: Plan, asked: float) -> Precision:
    """Whether a run became as precise as was asked, and what it would take.

    Every interval counts, also those that no round would narrow any more.
    """
    half = widths.half_widths(np.concatenate((found.log_ratios, found.lost)))
    known = half[np.isfinite(half)]
    widest = float(np.expm1(known.max())) if len(known) else None
    lost = _wide(found.lost, asked)
    asking = bool(widths.asking(found.log_ratios, precision=asked).any())
    spread = widths.spread(found.log_ratios) if asking else None
    rounds = None
    if spread is not None:
        rounds = max(plan.rounds + 1, widths.rounds_for(spread, asked))
    return Precision(
        asked=asked,
        reached=widest is not None and not asking and not lost,
        widest=widest,
        rounds=rounds,
        seconds=None if rounds is None else (rounds - plan.rounds) * found.seconds(found.compared),
        lost=lost,
    )


def _wide(log_ratios: Floats, asked: float) -> int:
    """How many intervals reach further than that."""
    return int((widths.half_widths(log_ratios) > np.log1p(asked)).sum())


def _why(found: Measured, goal: Goal, asking: int) -> str:
    pairs = np.isfinite(found.log_ratios).sum(axis=1)
    if pairs.min() < widths.LEAST_PAIRS:
        return f"some comparisons have fewer than {widths.LEAST_PAIRS} pairs"
    widest = np.expm1(widths.half_widths(found.log_ratios).max())
    told = count(asking, "interval")
    if goal.precision is None:
        return f"the widest interval reaches {widest:.1%} to either side; {told} about as wide"
    return f"{told} wider than {goal.precision * 100:.3g}%, the widest {widest:.1%} to either side"
