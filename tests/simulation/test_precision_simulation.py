"""Runs that decide for themselves how long they go on do not invent differences by that."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator import precision
from orchestrator.model.plan import ALPHA_BY_WIDTH
from orchestrator.paired import intervals
from tests.simulation import race
from tests.simulation.figures import percent
from tests.simulation.values import TIMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.simulation.figures import Keep

CONTRASTS = 4  # a run, each of a case of its own
MOST = 60  # rounds
CASES = 100
DRAWS = 80 * TIMES
BUDGET = 20 * CONTRASTS  # blocks


@cache
def pairs(noise: race.Noise) -> NDArray[np.float64]:
    """(runs, contrasts, rounds): what each further block of a version with itself would say."""
    random = np.random.default_rng(41)
    frame = race.table(cases=CASES, rounds=MOST)
    drawn = [race.log_ratios(race.timed(frame, random, noise=noise)) for _ in range(DRAWS)]
    return np.concatenate(drawn).reshape(-1, CONTRASTS, MOST)


def worked_through(
    future: NDArray[np.float64], *, wanted: float | None, budget: int
) -> NDArray[np.float64]:
    """The same with NaN for every block that a run did not measure before it stopped."""
    taken = np.full(future.shape[:2], precision.PILOT)
    going = np.ones(len(future), dtype=bool)
    while going.any():
        seen = measured(future[going], taken[going])
        asking = precision.asking(seen, precision=wanted) & (taken[going] < MOST)
        spent = taken[going].sum(axis=1) + asking.sum(axis=1)
        further = asking.any(axis=1) & (spent <= budget)
        taken[going] += asking & further[:, None]
        going[going] = further
    return measured(future, taken)


def measured(future: NDArray[np.float64], taken: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is known after so many rounds of each case."""
    return np.where(np.arange(MOST) < taken[..., None], future, np.nan)


@pytest.mark.parametrize("noise", race.NOISES)
@pytest.mark.parametrize(
    ("words", "wanted", "budget"),
    [
        ("--precision 1%", 0.01, MOST * CONTRASTS),
        ("--precision 2%", 0.02, MOST * CONTRASTS),
        ("--budget", None, BUDGET),
    ],
)
def test_a_run_that_stops_by_itself_excludes_no_more_than_it_says(
    noise: race.Noise, words: str, wanted: float | None, budget: int, keep: Keep
) -> None:
    """A version with itself, in intervals as the report of such a run has them."""
    seen = worked_through(pairs(noise), wanted=wanted, budget=budget)
    found = intervals.estimate(seen.reshape(-1, MOST), alpha=ALPHA_BY_WIDTH)
    share = float(((found.low > 1) | (found.high < 1)).mean())
    rounds = f"{int(found.pairs.min())} to {int(found.pairs.max())} rounds"
    what = f"{words}, {noise} noise, {rounds}"
    keep("R7", what, bound="at most 5.5%", found=percent(share), size=f"{len(found.p)} intervals")
    assert found.pairs.min() >= precision.LEAST_PAIRS
    assert share <= 0.055
