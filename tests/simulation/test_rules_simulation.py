"""What other rules would say of the same noise, and why the verdict's own is as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pytest
from scipy import stats

from orchestrator.paired import intervals
from tests.simulation import race, values
from tests.simulation.figures import CHOICE, NAIVE, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tests.simulation.figures import Keep

    Floats = NDArray[np.float64]
    Rule = Callable[[Floats, Floats], NDArray[np.bool_]]

REPEATS = 1000 * values.TIMES
ITERATIONS = 30
PROCESSES = (5, 10, 20)
GRID = 200
GRIDS = 400 * values.TIMES
MIXED = 40 * values.TIMES
OURS: Final = "paired t on the log ratio per block (stackrace's interval)"


def pooled_t(one: Floats, other: Floats) -> NDArray[np.bool_]:
    """Every iteration as a sample of its own."""
    flat = [arm.reshape(len(arm), -1) for arm in (one, other)]
    found: NDArray[np.bool_] = np.asarray(stats.ttest_ind(*flat, axis=1).pvalue) < 0.05
    return found


def mann_whitney(one: Floats, other: Floats) -> NDArray[np.bool_]:
    """Ranks of every iteration, at asv's level."""
    first, second = (arm.reshape(len(arm), -1) for arm in (one, other))
    p = stats.mannwhitneyu(first, second, axis=1, method="asymptotic").pvalue
    found: NDArray[np.bool_] = np.asarray(p) < 0.002
    return found


def welch(one: Floats, other: Floats) -> NDArray[np.bool_]:
    """The medians of processes, without pairs."""
    medians = [np.median(arm, axis=2) for arm in (one, other)]
    p = stats.ttest_ind(*medians, axis=1, equal_var=False).pvalue
    found: NDArray[np.bool_] = np.asarray(p) < 0.05
    return found


def paired(one: Floats, other: Floats) -> NDArray[np.bool_]:
    """The medians of processes, block by block."""
    ratios = np.log(np.median(other, axis=2)) - np.log(np.median(one, axis=2))
    found = intervals.estimate(ratios, alpha=0.05)
    return (found.low > 1) | (found.high < 1)


RULES: Final[dict[str, Rule]] = {
    "t over pooled iterations": pooled_t,
    "Mann-Whitney, p < .002, on pooled iterations": mann_whitney,
    "Welch on process medians": welch,
    OURS: paired,
}


def arms(processes: int, *, interleaved: bool) -> tuple[Floats, Floats]:
    """Seconds of two arms that are the same, (repeats, processes, iterations) each."""
    random = np.random.default_rng([processes, interleaved])
    shape = (REPEATS, 2 * processes)
    process = random.normal(0, 0.02, shape) + np.cumsum(random.normal(0, 0.01, shape), axis=1)
    within = values.noisy(0.3, series=1000 * 2 * processes, iterations=ITERATIONS, seed=processes)
    seconds = np.exp(process[..., None] + within.reshape(*shape, ITERATIONS))
    if not interleaved:
        return seconds[:, :processes], seconds[:, processes:]
    blocks = seconds.reshape(REPEATS, processes, 2, ITERATIONS)
    turned = random.random((REPEATS, processes, 1)) < 0.5
    return (
        np.where(turned, blocks[:, :, 0], blocks[:, :, 1]),
        np.where(turned, blocks[:, :, 1], blocks[:, :, 0]),
    )


def test_only_pairs_in_random_order_keep_their_word(keep: Keep) -> None:
    """Every other rule calls a version different from itself far more often than it says."""
    found: dict[tuple[str, bool], list[float]] = {}
    for interleaved in (False, True):
        for processes in PROCESSES:
            one, other = arms(processes, interleaved=interleaved)
            for name, rule in RULES.items():
                share = float(rule(one, other).mean())
                found.setdefault((name, interleaved), []).append(share)
    for name in RULES:
        apart, blocks = (
            " / ".join(f"{share:.1%}" for share in found[name, interleaved])
            for interleaved in (False, True)
        )
        keep(NAIVE, name, bound=apart, found=blocks, size=f"{REPEATS} each")
    scatter = 4 * np.sqrt(0.05 * 0.95 / REPEATS)
    assert [0.05] * len(PROCESSES) == pytest.approx(found[OURS, True], abs=scatter)
    assert min(found[OURS, False]) > 0.1
    assert min(found["Welch on process medians", False]) > 0.1
    assert min(found["t over pooled iterations", True]) > 0.2
    assert min(found["Mann-Whitney, p < .002, on pooled iterations", True]) > 0.1


def test_the_correction_costs_no_power_and_keeps_grids_clean(keep: Keep) -> None:
    """A smaller q would do the one and not the other."""
    frame = race.table(cases=GRID, rounds=10)
    random = np.random.default_rng(31)
    truly = np.arange(GRID) < GRID // 10
    names = ("Benjamini-Hochberg, q < .05", "Benjamini-Hochberg, q < .01", "both p, q < .05")
    false, hits = np.zeros(3), np.zeros(3)
    for number in range(GRIDS + MIXED):
        ratio = np.where(truly, 1.05, 1.0) if number >= GRIDS else 1.0
        timed = race.timed(frame, random, noise="drifting", ratio=ratio)
        plain = [race.called_plainly(timed, level) for level in (0.05, 0.01)]
        called = [*plain, race.called(timed)]
        if number < GRIDS:
            false += [each.any() for each in called]
        else:
            hits += [each[truly].sum() for each in called]
    power = hits / (MIXED * truly.sum())
    for name, share, found in zip(names, false / GRIDS, power, strict=True):
        size = f"{GRIDS} grids, {MIXED} mixed"
        keep(CHOICE, name, bound=percent(share), found=percent(found), size=size)
    assert power[2] >= power[0] - 0.05
    assert power[2] >= power[1] + 0.1
    assert false[2] <= false[0] / 2
