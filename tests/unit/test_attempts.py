"""Which attempt of a block counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.model import attempts
from tests import factories

if TYPE_CHECKING:
    from orchestrator.model.names import Outcome
    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record

Outcomes = dict[int, tuple["Outcome | None", "Outcome | None"]]


def two_arms() -> Plan:
    """One block of two arms."""
    return factories.plan(forms=[("tf.keras", "graph")], rounds=1)


def records(plan: Plan, outcomes: Outcomes) -> list[Record]:
    """Records by attempt: the outcome of either arm, None where it left none."""
    return [
        factories.record(plan, job, outcome=outcome, attempt=attempt)
        for attempt, pair in outcomes.items()
        for job, outcome in zip(plan.jobs, pair, strict=True)
        if outcome is not None
    ]


def counting(outcomes: Outcomes) -> tuple[int | None, int | None]:
    """The counting attempt and the next one to make."""
    plan = two_arms()
    found = attempts.by_key(records(plan, outcomes))
    block = plan.blocks[0]
    return attempts.counting_attempt(block, found), attempts.next_attempt(block, found)


def test_nothing_measured() -> None:
    """A block without records is made as attempt 1."""
    assert counting({}) == (None, 1)


def test_whole_attempt_counts() -> None:
    """A block in which every arm has a final record counts and is not made again."""
    assert counting({1: ("ok", "ok")}) == (1, None)


def test_failures_of_the_cell_are_final() -> None:
    """What the cell itself did wrong is never done again."""
    for outcome in ("failed", "unsupported", "timed_out", "out_of_memory", "crashed"):
        assert counting({1: ("ok", outcome)}) == (1, None)


def test_cut_attempt_is_made_again_whole() -> None:
    """A block that was cut is made again as the next attempt."""
    assert counting({1: ("ok", None)}) == (None, 2)
    assert counting({1: ("ok", None), 2: ("ok", "ok")}) == (2, None)


def test_broken_environment_is_redone_twice() -> None:
    """A cause outside the cell is tried again twice; then the last whole attempt counts."""
    broken: tuple[Outcome, Outcome] = ("ok", "environment_error")
    assert counting({1: broken}) == (None, 2)
    assert counting({1: broken, 2: broken}) == (None, 3)
    assert counting({1: broken, 2: broken, 3: broken}) == (3, None)
    assert counting({1: broken, 2: ("ok", "ok")}) == (2, None)


def test_first_final_attempt_wins() -> None:
    """A later attempt never replaces one that counts."""
    assert counting({1: ("ok", "ok"), 2: ("ok", "ok")}) == (1, None)
