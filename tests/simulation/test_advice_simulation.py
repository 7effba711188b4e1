"""What the advice claims about its errors, checked by drawing grids with planted differences.

Everything goes through the real table, verdict and advice; only the times are drawn. Seeds are
fixed, so that a test passes always or never.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator import advice
from orchestrator.advice import ranges
from orchestrator.merge import merge
from orchestrator.paired import intervals
from orchestrator.verdict import compare
from tests import factories
from tests.simulation import race

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.model.advice import Advice

GRIDS = 50
ENVIRONMENTS = ["tf114", "tf20"]
METHODS = ("train_on_batch", "fit", "custom_loop_function")
THRESHOLD = 0.02
# What each value of a column adds to the log time.
Effects = dict[str, dict[str, float]]


@cache
def grid(rounds: int) -> pd.DataFrame:
    """Two versions, modes, inputs and sizes, and three ways to train: 48 cells, two tasks of 24."""
    plan = factories.plan(
        environments=ENVIRONMENTS,
        forms=[("tf.keras", "graph"), ("tf.keras", "eager")],
        cases=[
            factories.case(method, data=data, input=kind)
            for data in ("small", "large")
            for kind in ("numpy", "dataset")
            for method in METHODS
        ],
        rounds=rounds,
    )
    return merge([(plan, factories.measured(plan, lambda _: 0.01))])


def effect(frame: pd.DataFrame, effects: Effects) -> NDArray[np.float64]:
    """The true log time of each row: the sum of what its values add."""
    total = np.zeros(len(frame))
    for column, values in effects.items():
        total += frame[column].map(values).fillna(0.0).to_numpy(dtype=float)
    return total


def drawn(
    frame: pd.DataFrame, random: np.random.Generator, added: NDArray[np.float64], noise: race.Noise
) -> Advice:
    """The advice of one grid in which every process takes so much longer."""
    noisy = race.timed(frame, random, noise=noise)
    noisy = noisy.assign(median_s=noisy["median_s"] * np.exp(added))
    return advice.of(noisy, compare(noisy, environments=ENVIRONMENTS, threshold=THRESHOLD))


def planted(random: np.random.Generator) -> Effects:
    """Effects of 0 to 50% of every axis, a third of them none at all."""
    values = {
        "environment": ENVIRONMENTS,
        "mode": ["graph", "eager"],
        "input": ["numpy", "dataset"],
        "method": METHODS,
    }
    return {
        column: {
            name: float(random.uniform(0, 0.4)) * float(random.random() > 1 / 3) for name in names
        }
        for column, names in values.items()
    }


@pytest.mark.parametrize("noise", ["normal", "bimodal", "drifting"])
def test_a_grid_without_differences_has_no_advice(noise: race.Noise) -> None:
    """At most one in a hundred tells anybody what to do, or what matters, in few rounds or many."""
    random = np.random.default_rng(21)
    found = [
        drawn(grid(rounds), random, np.zeros(len(grid(rounds))), noise)
        for rounds in (5, 10)
        for _ in range(GRIDS)
    ]
    assert sum(each.any for each in found) <= 0.01 * len(found)
    assert sum(any(item.sure for item in each.effects) for each in found) <= 0.01 * len(found)
    assert all(item.sure or not item.most for each in found for item in each.effects)


@cache
def planted_grids(noise: race.Noise) -> list[tuple[Effects, NDArray[np.float64], Advice]]:
    """GRIDS grids of six rounds: the effects of each, what they add to each row, the advice."""
    random = np.random.default_rng(22)
    found = []
    for _ in range(GRIDS):
        effects = planted(random)
        added = effect(grid(6), effects)
        found.append((effects, added, drawn(grid(6), random, added, noise)))
    return found


@pytest.mark.parametrize("noise", ["normal", "bimodal", "drifting"])
def test_the_top_choice_is_right_and_nothing_good_is_to_be_avoided(noise: race.Noise) -> None:
    """In 95 of 100 grids at least; that is the bound for each of the two, in each task."""
    frame = grid(6)
    choices = right = alarms = 0
    for _, added, found in planted_grids(noise):
        true = dict(zip(zip(frame["arm"], frame["case"], strict=True), added, strict=True))
        for choice in found.choices:
            least = min(time for (_, case), time in true.items() if choice.task.size in case)
            within = [true[item.arm, item.case] <= least + 1e-9 for item in choice.fastest]
            choices += bool(choice.fastest)
            right += any(within)
        for item in (item for group in found.avoid for item in group.slow):
            least = min(time for (_, case), time in true.items() if item.task.size in case)
            here = item.configuration
            alarms += true[here.arm, here.case] <= least + math.log1p(THRESHOLD)
    assert choices >= GRIDS  # of 2 * GRIDS tasks: the bound is not kept by saying nothing
    assert right >= 0.95 * choices
    assert alarms <= 0.01 * GRIDS


def test_a_clear_winner_is_named_alone() -> None:
    """30% faster than the next of 24 in ten rounds: crowned in nine tasks of ten."""
    random = np.random.default_rng(23)
    frame = grid(10)
    best = (frame["arm"] == "tf20/tf.keras/graph") & frame["case"].str.endswith("dataset/fit")
    added = np.where(best, math.log(0.7), 0.0)
    choices = [
        choice
        for _ in range(GRIDS // 2)
        for choice in drawn(frame, random, added, "normal").choices
    ]
    crowned = [choice.fastest[0] for choice in choices if choice.sure]
    assert len(crowned) >= 0.9 * len(choices)
    assert {("tf20/tf.keras/graph", "fit", "dataset")} == {
        (item.arm, item.method, item.input) for item in crowned
    }


def test_an_interaction_is_found_and_no_other() -> None:
    """tf20 is slower in eager mode only: version and mode depend on each other, nothing else."""
    random = np.random.default_rng(24)
    frame = grid(10)
    added = np.where(frame["arm"] == "tf20/tf.keras/eager", math.log(1.3), 0.0)
    found = [drawn(frame, random, added, "normal").interactions for _ in range(GRIDS // 2)]
    pairs = [{(item.change.axis, item.by.axis) for item in each} for each in found]
    assert pairs.count({("version", "mode")}) >= 0.99 * len(pairs)
    assert found[0][0].factor.ratio == pytest.approx(1.3, rel=0.03)


@pytest.mark.parametrize("noise", ["normal", "bimodal", "drifting"])
def test_the_axis_that_matters_most_is_named(noise: race.Noise) -> None:
    """Alone or among others, in 95 of 100 grids; alone wherever it stands out."""
    named = right = alone = standing = 0
    for effects, _, found in planted_grids(noise):
        spans = {
            "version" if column == "environment" else column: np.ptp(list(values.values()))
            for column, values in effects.items()
        }
        second, largest = sorted(spans.values())[-2:]
        most = [item.axis for item in found.effects if item.most]
        named += bool(most)
        right += any(spans[axis] == largest for axis in most)
        if largest - second > 0.1:
            standing += 1
            alone += len(most) == 1
    assert named >= 0.95 * GRIDS
    assert right >= 0.95 * named
    assert alone >= 0.95 * standing > 0


def test_the_intervals_of_means_hold_what_was_planted() -> None:
    """Overall, and at each value of another axis, in nine of ten and more."""
    covered = []
    for effects, _, found in planted_grids("normal"):
        true = effects["environment"]["tf20"] - effects["environment"]["tf114"]
        version = next(item for item in found.ranges if item.axis == "version")
        means = [version.mean, *(item.mean for item in version.within)]
        covered += [mean.low <= math.exp(true) <= mean.high for mean in means if mean]
    assert sum(covered) >= 0.9 * len(covered) > 0


@pytest.mark.parametrize(
    "rounds",
    [[10, 10, 10, 40], [6] * 11 + [60], [range(10), range(10, 20)], [5, 6, 6, 6, 6]],
    ids=["one wide", "one of many wide", "two runs", "one lost"],
)
def test_means_of_pairs_with_unequal_rounds_hold(rounds: list[int | range]) -> None:
    """The mean over pairs that were measured more and less often excludes 1 no more often."""
    random = np.random.default_rng(1)
    places = [range(item) if isinstance(item, int) else item for item in rounds]
    last = max(max(item) for item in places) + 1
    drawn = random.normal(0, 0.05, (4000, len(places), last))
    for pair, item in enumerate(places):
        drawn[:, pair, [place for place in range(last) if place not in item]] = np.nan
    means = np.array([ranges.by_round(one) for one in drawn])
    found = intervals.estimate(means, alpha=0.05)
    assert np.mean((found.low > 1) | (found.high < 1)) <= 0.065
