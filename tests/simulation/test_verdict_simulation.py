"""What the verdict claims about its errors, checked by drawing thousands of races.

Everything goes through the real table; only the times are drawn. Where tens of thousands of races
are needed, the comparison's statistics are asked directly. Seeds are fixed, so that a test passes
always or never. STACKRACE_SIMULATE=full draws ten times as many.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator import precision
from orchestrator.paired import intervals
from orchestrator.verdict import compare
from tests.simulation import race
from tests.simulation.figures import percent
from tests.simulation.values import TIMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.model.comparison import Comparison, Contrast
    from tests.simulation.figures import Keep

CASES = 400
GRID = 200
# Of a version with itself: a rate of 1% is told from one of 0.2% by so many.
GRIDS = 400 * TIMES
MIXED = 40 * TIMES  # grids of which 20 cells differ
noises = pytest.mark.parametrize("noise", race.NOISES)
table = cache(race.table)


def judged(frame: pd.DataFrame) -> Comparison:
    """Every case's tf20 against its tf114."""
    return compare(frame, environments=["tf114", "tf20"], threshold=0.02, kinds=["version"])


def drawn(
    seed: int, *, rounds: int, noise: race.Noise, ratio: float, times: int
) -> Iterator[Contrast]:
    """Contrasts of `times` * CASES races of one true ratio."""
    random = np.random.default_rng(seed)
    frame = table(cases=CASES, rounds=rounds)
    for _ in range(times):
        yield from judged(race.timed(frame, random, noise=noise, ratio=ratio)).contrasts


@noises
@pytest.mark.parametrize("rounds", [5, 10, 20])
def test_a_version_against_itself_is_excluded_by_one_interval_in_twenty(
    noise: race.Noise, rounds: int, keep: Keep
) -> None:
    """The raw 95% interval misses 1 in 5% of 10,000 races, give or take a point."""
    random = np.random.default_rng(rounds)
    frame = table(cases=CASES, rounds=rounds)
    draws, missed = 25 * TIMES, 0
    for _ in range(draws):
        ratios = race.log_ratios(race.timed(frame, random, noise=noise))
        found = intervals.estimate(ratios, alpha=0.05)
        missed += int(((found.low > 1) | (found.high < 1)).sum())
    races = draws * CASES
    share = missed / races
    what = f"{noise} noise, {rounds} rounds"
    keep("R1", what, bound="4 to 6%", found=percent(share), size=f"{races} races")
    assert races >= 10_000
    assert share == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.1, 3.0])
def test_the_interval_holds_the_true_ratio(ratio: float, keep: Keep) -> None:
    """Coverage does not depend on the size of the effect."""
    held = [
        item.low <= ratio <= item.high
        for item in drawn(int(10 * ratio), rounds=10, noise="bimodal", ratio=ratio, times=5 * TIMES)
        if item.low and item.high
    ]
    share = sum(held) / len(held)
    what = f"true ratio {ratio:g}, bimodal noise, 10 rounds"
    keep("R2", what, bound="93.5 to 97%", found=percent(share), size=f"{len(held)} races")
    assert 0.935 <= share <= 0.97


@noises
def test_a_grid_without_differences_has_no_verdict_of_one(noise: race.Noise, keep: Keep) -> None:
    """200 comparisons of a version with itself: one grid in 100 at most has a verdict of one."""
    random = np.random.default_rng(11)
    frame = table(cases=GRID, rounds=10)
    false = sum(
        bool(race.called(race.timed(frame, random, noise=noise)).any()) for _ in range(GRIDS)
    )
    what = f"{noise} noise, 10 rounds"
    keep("R3", what, bound="at most 1%", found=percent(false / GRIDS), size=f"{GRIDS} grids")
    assert false <= 0.01 * GRIDS


@pytest.mark.parametrize("ratio", [1.0, 1.04])
def test_the_statistics_alone_say_what_the_comparison_says(ratio: float) -> None:
    """The shortcut that draws many grids leaves nothing out: states and intervals agree."""
    frame = race.timed(
        table(cases=GRID, rounds=10), np.random.default_rng(16), noise="drifting", ratio=ratio
    )
    contrasts = judged(frame).contrasts
    found = intervals.estimate(race.log_ratios(frame), alpha=0.05)
    assert race.states(frame) == [contrast.state for contrast in contrasts]
    assert list(found.low) == pytest.approx([contrast.low for contrast in contrasts])
    assert list(found.high) == pytest.approx([contrast.high for contrast in contrasts])


def mixed(noise: race.Noise, effect: float) -> tuple[float, float, float]:
    """Of grids of which 20 cells differ: the share found, that which the plain correction finds,
    and the share of false ones among what is called.
    """
    random = np.random.default_rng(12)
    frame = table(cases=GRID, rounds=10)
    truly = np.arange(GRID) < GRID // 10
    hits = plain = alarms = 0
    for _ in range(MIXED):
        timed = race.timed(frame, random, noise=noise, ratio=np.where(truly, 1 + effect, 1.0))
        called = race.called(timed)
        hits += int(called[truly].sum())
        alarms += int(called[~truly].sum())
        plain += int(race.called_plainly(timed, 0.05)[truly].sum())
    count = MIXED * int(truly.sum())
    return hits / count, plain / count, alarms / max(1, hits + alarms)


@noises
@pytest.mark.parametrize(("effect", "power"), [(0.05, 0.6), (0.10, 0.99)])
def test_a_grid_with_a_few_differences_finds_them_and_little_else(
    noise: race.Noise, effect: float, power: float, keep: Keep
) -> None:
    """20 of 200 cells are slower, and found.

    Where a quarter of the processes takes 6% longer, ten blocks show less, whatever the rule: the
    bound there is what Benjamini and Hochberg's correction alone finds, less ten points.
    """
    found, plain, false = mixed(noise, effect)
    bound = min(power, plain - 0.1) if noise == "bimodal" else power
    told = f"at least {percent(bound)}"
    if noise == "bimodal":
        told += f" (Benjamini-Hochberg alone: {percent(plain)})"
    what = f"differences of {effect:.0%} found, {noise} noise"
    keep("R4", what, bound=told, found=percent(found), size=f"{MIXED * GRID // 10} differences")
    what = f"false among what is called, beside {effect:.0%}, {noise} noise"
    keep("R4", what, bound="at most 6%", found=percent(false), size=f"{MIXED} grids")
    assert found >= bound
    assert false <= 0.06


def shown_in_four_of_five(frame: pd.DataFrame, noise: race.Noise) -> float:
    """The smallest ratio - 1 whose interval lies beyond 2% in four races of five.

    A true ratio moves the whole interval of a log ratio, so one set of races shows all of them.
    """
    random = np.random.default_rng(14)
    low = np.concatenate(
        [
            intervals.estimate(
                race.log_ratios(race.timed(frame, random, noise=noise)), alpha=0.05
            ).low
            for _ in range(5 * TIMES)
        ]
    )
    return float(1.02 / np.quantile(low, 0.2) - 1)


def pilot(noise: race.Noise) -> NDArray[np.float64]:
    """Log ratios of three rounds of 24 cases: what is known before the rest is planned."""
    frame = table(cases=24, rounds=3)
    return race.log_ratios(race.timed(frame, np.random.default_rng(17), noise=noise))


@noises
@pytest.mark.parametrize("rounds", [6, 10, 20])
def test_the_smallest_detectable_effect_is_right_within_a_quarter(
    noise: race.Noise, rounds: int, keep: Keep
) -> None:
    """Told before the run, from three rounds of it, and after it, from all."""
    frame = table(cases=CASES, rounds=rounds)
    true = shown_in_four_of_five(frame, noise)
    spread = precision.spread(pilot(noise))
    assert spread is not None
    before = precision.detectable(spread, rounds, threshold=0.02, alpha=0.05)
    after = judged(race.timed(frame, np.random.default_rng(13), noise=noise)).detectable
    assert before is not None
    assert after is not None
    keep(
        "R5",
        f"{noise} noise, {rounds} rounds",
        bound=f"{true * 0.75:.1%} to {true * 1.25:.1%} (simulated {true:.1%})",
        found=f"{before:.1%} before, {after:.1%} after",
        size=f"a pilot of 3 rounds of 24 cases; {5 * TIMES * CASES} races",
    )
    assert before == pytest.approx(true, rel=0.25)
    assert after == pytest.approx(true, rel=0.25)


@noises
def test_sequential_arms_never_get_a_verdict(noise: race.Noise, keep: Keep) -> None:
    """All of tf114, then all of tf20: numbers, reasons, no states, whatever the difference."""
    frame = table(cases=CASES, rounds=10)
    late = 1e6 * (frame["environment"] == "tf20")
    moved = frame.assign(
        started_s=frame["started_s"] + late, started_wall_s=frame["started_wall_s"] + late
    )
    found = judged(race.timed(moved, np.random.default_rng(15), noise=noise, ratio=1.5))
    verdicts = sum(contrast.state is not None for contrast in found.contrasts)
    what = f"verdicts on sequential arms, true ratio 1.5, {noise} noise"
    keep("R6", what, bound="0", found=str(verdicts), size=f"{CASES} comparisons")
    assert verdicts == 0
    assert all("not interleaved" in (contrast.reason or "") for contrast in found.contrasts)
    assert found.detectable is None
