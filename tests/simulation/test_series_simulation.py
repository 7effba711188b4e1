"""What is claimed about the values of one process, checked on thousands of series.

Log time is noise of 3% that depends on itself by up to .6, with one spike of 40% in a hundred.
STACKRACE_SIMULATE=full draws ten times as many series. Seeds are fixed: a test passes always or
never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator.series import spikes, steady, trend
from tests.simulation import values
from tests.simulation.figures import percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.simulation.figures import Keep

ITERATIONS = values.ITERATIONS
MB = 1e6
rhos = pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
noisy = values.noisy


@rhos
@pytest.mark.parametrize("iterations", [50, 100, ITERATIONS])
def test_a_steady_process_has_no_warm_up(rho: float, iterations: int, keep: Keep) -> None:
    """Noise is cut into levels in two of a hundred processes at most."""
    starts = steady.find_starts(noisy(rho, iterations=iterations))
    share = float(np.mean(starts != 0))
    what = f"spurious warm-up, {iterations} iterations, rho {rho:g}"
    keep("R9", what, bound="at most 2%", found=percent(share), size=f"{len(starts)} processes")
    assert share <= 0.02


@rhos
@pytest.mark.parametrize(("warmup", "slower"), [(1, 1.0), (3, 0.3), (10, 0.3), (60, 0.2)])
def test_a_warm_up_is_found_and_never_cut_short(
    rho: float, warmup: int, slower: float, keep: Keep
) -> None:
    """No process is called steady more than five iterations before it is."""
    log_s = noisy(rho, series=700)
    log_s[:, :warmup] += np.log1p(slower)
    starts = steady.find_starts(log_s)
    early = int(((starts >= 0) & (starts < warmup - 5)).sum())
    what = f"called steady too early: {warmup} iterations {slower:.0%} slower, rho {rho:g}"
    keep("R9", what, bound="0", found=str(early), size=f"{len(starts)} processes")
    assert early == 0
    assert np.mean(np.abs(starts - warmup) <= 5) >= 0.99


@rhos
@pytest.mark.parametrize("change", [0.2, -0.2])
def test_a_late_step_is_found(rho: float, change: float, keep: Keep) -> None:
    """A level that came after half of the time is the steady one, whichever way it went."""
    log_s = noisy(rho, series=700)
    log_s[:, 140:] += np.log1p(change)
    starts = steady.find_starts(log_s)
    share = float(np.mean(np.abs(starts - 140) <= 5))
    what = f"late step of {change:+.0%} found, rho {rho:g}"
    keep("R9", what, bound="at least 95%", found=percent(share), size=f"{len(starts)} processes")
    assert share >= 0.95


@rhos
def test_a_level_that_came_in_the_last_quarter_is_not_steady(rho: float) -> None:
    """Nobody knows whether it would have stayed."""
    log_s = noisy(rho, series=700)
    log_s[:, 180:] += np.log1p(0.3)
    assert np.mean(steady.find_starts(log_s) < 0) >= 0.95


@rhos
def test_a_process_of_one_speed_does_not_get_slower(rho: float, keep: Keep) -> None:
    """One false alarm in two hundred processes at most."""
    _, rises = trend.rising(noisy(rho, series=10_000, iterations=200))
    share = float(np.mean(rises))
    what = f"false alarms of rising time, rho {rho:g}"
    keep("R8", what, bound="at most 0.5%", found=percent(share), size=f"{len(rises)} processes")
    assert share <= 0.005


@rhos
def test_a_tenth_more_in_two_hundred_iterations_is_seen(rho: float, keep: Keep) -> None:
    """In 99 of a hundred processes, with the change an iteration."""
    log_s = noisy(rho, series=2000, iterations=200) + np.log(np.linspace(1, 1.1, 200))
    slopes, rises = trend.rising(log_s)
    share = float(np.mean(rises))
    what = f"10% over 200 iterations seen, rho {rho:g}"
    keep("R8", what, bound="at least 99%", found=percent(share), size=f"{len(rises)} processes")
    assert share >= 0.99
    assert np.mean(slopes) * 200 == pytest.approx(np.log(1.1), rel=0.1)


def memory(rho: float, growth: NDArray[np.float64]) -> NDArray[np.float64]:
    """(series, samples): resident bytes, read before, every tenth iteration and after."""
    scatter = noisy(rho, series=1000, iterations=len(growth), spiky=False) + 5.0
    read = 200 * MB + scatter / values.NOISE * 0.1 * MB + growth
    read[:, 0] -= 30 * MB  # what the first iteration allocates
    pages: NDArray[np.float64] = np.round(read / 4096) * 4096
    return pages


def grown(read: NDArray[np.float64]) -> float:
    """The share of processes whose memory is said to grow over 200 iterations."""
    found = trend.of_memory(list(read), iterations=[200] * len(read), sampled=[10] * len(read))
    return float(np.mean([item is not None and item.rises for item in found]))


AT = np.array([0, *range(10, 201, 10), 200], dtype=np.float64)
GROWTHS: dict[str, NDArray[np.float64]] = {
    "nothing": np.zeros(len(AT)),
    "early": np.where(AT >= 60, 20 * MB, 0.0),
    "late": np.where(AT >= 120, 20 * MB, 0.0),
    "less and less": 20 * MB * (1 - np.exp(-AT / 20)),
}


@rhos
@pytest.mark.parametrize("allocated", GROWTHS)
def test_memory_that_does_not_leak_does_not_grow(rho: float, allocated: str, keep: Keep) -> None:
    """Nor does what is allocated once, early or late."""
    read = memory(rho, GROWTHS[allocated])
    share = grown(read)
    what = f"false alarms of rising memory, allocated {allocated}, rho {rho:g}"
    keep("R8", what, bound="at most 0.5%", found=percent(share), size=f"{len(read)} processes")
    assert share <= 0.005


@rhos
def test_a_megabyte_in_a_hundred_iterations_is_seen(rho: float, keep: Keep) -> None:
    """In 99 of a hundred processes."""
    read = memory(rho, MB / 100 * AT)
    share = grown(read)
    what = f"1 MB in 100 iterations seen, rho {rho:g}"
    keep("R8", what, bound="at least 99%", found=percent(share), size=f"{len(read)} processes")
    assert share >= 0.99


@rhos
def test_noise_has_no_spikes_and_random_spikes_no_rhythm(rho: float) -> None:
    """One false alarm in a hundred processes at most."""
    quiet = spikes.find(np.exp(noisy(rho, series=1000, spiky=False)).tolist())
    assert np.mean([item is not None and item.spikes > 0 for item in quiet]) <= 0.01
    random = [item for item in spikes.find(np.exp(noisy(rho, series=1000)).tolist()) if item]
    assert np.mean([item.spikes > 0 for item in random]) >= 0.5
    assert np.mean([item.period is not None for item in random]) <= 0.01


@rhos
@pytest.mark.parametrize(("period", "jitter"), [(5, 0), (20, 0), (20, 1), (40, 0)])
def test_a_rhythm_is_found(rho: float, period: int, jitter: int) -> None:
    """With its period, among random spikes, whichever iteration it begins with."""
    log_s = noisy(rho, series=200)
    random = np.random.default_rng(period)
    for row in log_s:
        at = np.arange(random.integers(period), ITERATIONS, period)
        moved = at + random.integers(-jitter, jitter + 1, len(at))
        row[np.clip(moved, 0, ITERATIONS - 1)] += np.log(1.5)
    found = [item.period for item in spikes.find(np.exp(log_s).tolist()) if item]
    assert np.mean([item == period for item in found]) >= 0.95
