"""Which intervals are wide, what a run will see, and when it has enough rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orchestrator import precision
from orchestrator.model.plan import ALPHA_BY_WIDTH, Goal, Plan
from orchestrator.model.precision import Precision
from orchestrator.paired import intervals
from orchestrator.precision import Measured
from orchestrator.report import goals
from tests import factories

CASES = [factories.case(data=name) for name in ("one", "two")]
few = settings(max_examples=25, deadline=None)
log_ratios = arrays(
    np.float64, (4, 12), elements=st.floats(-0.5, 0.5) | st.just(math.nan), fill=st.nothing()
)


def noise(spread: float, contrasts: int, rounds: int) -> np.ndarray[tuple[int, ...]]:
    """Log ratios of versions that do not differ."""
    return np.random.default_rng(7).normal(0, spread, (contrasts, rounds))


def plan(goal: Goal, rounds: int) -> Plan:
    """Two cases of two arms."""
    return factories.plan(forms=[("tf.keras", "graph")], cases=CASES, rounds=rounds, goal=goal)


def found(
    *spreads: float, rounds: int, block_s: float = 10.0, lost: tuple[float, ...] = ()
) -> Measured:
    """One contrast in each case, scattered by so much, and others that give no more pairs."""
    blocks = len(spreads) * rounds
    return Measured(
        log_ratios=np.outer(spreads, noise(1, 1, rounds)),
        cases=tuple(frozenset({case.name}) for case, _ in zip(CASES, spreads, strict=False)),
        lost=np.outer(lost, noise(1, 1, rounds)),
        block_s={case.name: block_s for case in CASES},
        spent_s=blocks * block_s,
    )


@few
@given(log_ratios, st.none() | st.floats(0.001, 0.5))
def test_the_sign_decides_nothing(ratios: np.ndarray[tuple[int, ...]], asked: float | None) -> None:
    """Which of two arms is the slower one changes no decision."""
    assert np.array_equal(
        precision.asking(ratios, precision=asked), precision.asking(-ratios, precision=asked)
    )


@few
@given(st.integers(10, 40), st.floats(0.01, 0.2), st.floats(-3, 3))
def test_a_difference_decides_nothing(rounds: int, asked: float, shift: float) -> None:
    """A run does not end because something is significant."""
    ratios = noise(0.05, 8, rounds)
    assert np.array_equal(
        precision.asking(ratios, precision=asked), precision.asking(ratios + shift, precision=asked)
    )


@few
@given(log_ratios)
def test_few_pairs_ask_for_more(ratios: np.ndarray[tuple[int, ...]]) -> None:
    """No width ends a run before ten pairs."""
    short = np.isfinite(ratios).sum(axis=1) < precision.LEAST_PAIRS
    assert precision.asking(ratios, precision=0.99)[short].all()
    assert precision.asking(ratios)[short].all()


def test_runs_can_be_decided_at_once() -> None:
    """A further axis in front holds runs, each decided by itself."""
    runs = noise(0.04, 15, 12).reshape(5, 3, 12)
    for asked in (None, 0.03):
        one_by_one = [precision.asking(run, precision=asked) for run in runs]
        assert np.array_equal(one_by_one, precision.asking(runs, precision=asked))


def test_noise_is_pooled() -> None:
    """Many contrasts of three pairs each tell as much as one of many."""
    assert precision.spread(noise(0.05, 60, 3)) == pytest.approx(0.05, rel=0.15)
    assert precision.spread(np.array([[0.1, math.nan], [0.2, math.nan]])) is None


def test_one_formula_says_what_can_be_seen() -> None:
    """Before a run as after it."""
    afterwards = intervals.detectable(
        np.array([0.04 / math.sqrt(12)]), np.array([12]), threshold=0.02, alpha=ALPHA_BY_WIDTH
    )
    assert precision.detectable(0.04, 12, threshold=0.02) == pytest.approx(afterwards[0])
    assert precision.detectable(0.04, 1, threshold=0.02) is None


@few
@given(st.floats(0.001, 0.2), st.floats(0.005, 0.3))
def test_rounds_are_as_many_as_it_takes(spread: float, asked: float) -> None:
    """The last of them makes the interval narrow enough, and the one before does not."""
    rounds = precision.rounds_for(spread, asked)
    pairs = np.array([rounds - 1, rounds])
    half = intervals.half_widths(spread / np.sqrt(pairs), pairs, alpha=ALPHA_BY_WIDTH)
    assert half[1] <= math.log1p(asked)
    assert rounds == precision.LEAST_PAIRS or half[0] > math.log1p(asked)


@pytest.mark.parametrize(
    ("goal", "round_s", "rounds"),
    [
        (Goal(precision=0.02), 60, 3),
        (Goal(budget_s=1800), 60, 3),
        (Goal(budget_s=150), 60, 2),
        (Goal(budget_s=10), 60, 1),
    ],
)
def test_a_pilot_fits_into_its_budget(goal: Goal, round_s: float, rounds: int) -> None:
    """As far as anybody knows beforehand, and one round there must be."""
    assert rounds == precision.pilot(goal, round_s)


def test_a_wide_interval_gets_the_next_round() -> None:
    """And the others do not: each case is measured until it is precise."""
    goal = Goal(precision=0.02)
    decision = precision.decide(found(0.001, 0.05, rounds=12), plan(goal, 12), goal)
    assert (CASES[1].name,) == decision.cases
    assert decision.reason.startswith("1 interval wider than 2%, the widest ")


def test_a_budget_goes_to_the_widest() -> None:
    """To all where they are alike."""
    goal = Goal(budget_s=3600)
    alike = precision.decide(found(0.05, 0.048, rounds=12), plan(goal, 12), goal)
    assert tuple(case.name for case in CASES) == alike.cases
    apart = precision.decide(found(0.05, 0.01, rounds=12), plan(goal, 12), goal)
    assert (CASES[0].name,) == apart.cases


@pytest.mark.parametrize(
    ("goal", "spread", "reason"),
    [
        (Goal(precision=0.02), 0.001, "every interval is as narrow as was asked for"),
        (Goal(budget_s=259), 0.05, "another round does not fit into the budget"),
        (Goal(budget_s=259, precision=0.02), 0.001, "every interval is as narrow as"),
        (Goal(budget_s=259, precision=0.02), 0.05, "another round does not fit"),
    ],
)
def test_whichever_is_reached_first_ends_it(goal: Goal, spread: float, reason: str) -> None:
    """Twelve rounds of two blocks took 240 s, and the next takes 20."""
    decision = precision.decide(found(spread, spread, rounds=12), plan(goal, 12), goal)
    assert () == decision.cases
    assert decision.reason.startswith(reason)


def test_a_precision_is_not_pursued_for_ever() -> None:
    """Where no budget ends it, a cap does, which was told beforehand."""
    goal = Goal(precision=0.001)
    decision = precision.decide(found(0.1, 0.1, rounds=100), plan(goal, 100), goal)
    assert ((), "a run has 100 rounds at most") == (decision.cases, decision.reason)


def test_what_has_no_pairs_keeps_no_run_going() -> None:
    """A run of one arm, or of arms that fail, ends after its pilot."""
    goal = Goal(budget_s=3600)
    decision = precision.decide(found(rounds=3), plan(goal, 3), goal)
    assert () == decision.cases
    assert decision.reason == "no comparison has pairs that more rounds would add to"


def test_a_forecast_counts_what_fits() -> None:
    """Three rounds took 60 s, so 30 minutes have room for 90."""
    goal = Goal(budget_s=1800)
    measured = found(0.05, 0.05, rounds=3)
    expected = precision.forecast(measured, plan(goal, 3), goal)
    assert expected is not None
    assert (90, 1800) == (expected.rounds, expected.seconds)
    spread = precision.spread(measured.log_ratios)
    assert spread is not None
    assert expected.detectable == precision.detectable(spread, 90, threshold=0.02)


def test_a_forecast_says_what_a_budget_is_short_of() -> None:
    """The precision would take more rounds than fit."""
    goal = Goal(budget_s=200, precision=0.001)
    expected = precision.forecast(found(0.05, 0.05, rounds=3), plan(goal, 3), goal)
    assert expected is not None
    assert expected.rounds == 10
    assert expected.short_of is not None
    assert expected.short_of > 100


def test_a_precision_that_was_not_reached_says_what_it_takes() -> None:
    """More rounds than there were, and their time; none where it was reached."""
    goal = Goal(precision=0.02)
    told = precision.reached(found(0.05, 0.001, rounds=12), plan(goal, 12), 0.02)
    assert not told.reached
    assert told.rounds is not None
    assert told.rounds > 12
    assert told.seconds == (told.rounds - 12) * 20
    narrow = precision.reached(found(0.001, 0.001, rounds=12), plan(goal, 12), 0.02)
    assert (True, None, None) == (narrow.reached, narrow.rounds, narrow.seconds)


def test_an_interval_that_no_round_narrows_counts() -> None:
    """A comparison that came to fail keeps no run going, and stands in its report all the same."""
    goal, told = Goal(precision=0.02), found(0.001, 0.001, rounds=12, lost=(0.001, 0.08))
    decision = precision.decide(told, plan(goal, 12), goal)
    assert () == decision.cases
    assert decision.reason.startswith("every interval that more rounds would narrow is as narrow")
    wide = precision.reached(told, plan(goal, 12), 0.02)
    assert (False, None, 1) == (wide.reached, wide.rounds, wide.lost)
    assert wide.widest is not None
    assert wide.widest > 0.02
    said = goals.reached(wide)
    assert said.startswith("The precision of 2% was not reached: the widest interval reaches ")
    assert said.endswith(
        "; 1 comparison wider than that gave no pair in the last rounds, "
        "and more would hardly narrow it."
    )
    narrow = precision.reached(found(rounds=12, lost=(0.001,)), plan(goal, 12), 0.02)
    assert (True, 0) == (narrow.reached, narrow.lost)
    assert "was reached" in goals.reached(narrow)


def test_a_run_that_ends_too_early_is_told_to_take_longer() -> None:
    """Below five rounds there is no verdict, whatever the reason for the end."""
    goal = Goal(budget_s=30)
    short = precision.decide(found(0.05, 0.05, rounds=4), plan(goal, 4), goal).reason
    assert short.startswith("another round does not fit into the budget, and fewer than 5 rounds")
    enough = precision.decide(found(0.05, 0.05, rounds=5), plan(goal, 5), goal).reason
    assert enough == "another round does not fit into the budget"


def test_wide_intervals_are_told_without_exponents() -> None:
    """190%, and not 1.9e+02%."""
    wide = Precision(asked=0.3, reached=False, widest=1.9, rounds=None, seconds=None, lost=0)
    assert "the widest interval reaches 190.0% to either side" in goals.reached(wide)


@pytest.mark.parametrize(
    ("widest", "shown"), [(0.02001, "2.1%"), (0.0193, "1.9%"), (0.024, "2.4%"), (0.02, "2.0%")]
)
def test_a_width_does_not_read_as_what_was_asked_unless_it_is(widest: float, shown: str) -> None:
    """2.001% is not `2%` where 2% were asked for."""
    reached = widest <= 0.02
    it = Precision(asked=0.02, reached=reached, widest=widest, rounds=None, seconds=None, lost=0)
    assert f"reaches {shown} to either side" in goals.reached(it)
