"""Correcting over a family: what chance makes look sure is not, and nothing else changes much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import special, stats

from orchestrator.paired import families, intervals

if TYPE_CHECKING:
    from orchestrator.paired.intervals import Estimates, Floats

# Ten pairs of one shape, so that scatter and ratio are what a test says.
SHAPE = np.array([-1.3, -0.9, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 0.9, 1.3])


def estimated(means: list[float], scatters: list[float]) -> Estimates:
    """Ten pairs a contrast, with these means and standard deviations of the log ratio."""
    unit = SHAPE / SHAPE.std(ddof=1)
    rows = [mean + scatter * unit for mean, scatter in zip(means, scatters, strict=True)]
    return intervals.estimate(np.array(rows), alpha=0.05)


def q_of(found: Estimates) -> Floats:
    """All of one family, all tested."""
    count = len(found.p)
    return families.corrected(found, ["version"] * count, np.ones(count, dtype=bool))


def plain(found: Estimates) -> Floats:
    """Benjamini and Hochberg alone."""
    corrected: Floats = stats.false_discovery_control(found.p)
    return corrected


def test_blocks_that_agree_by_chance_show_nothing() -> None:
    """Among 200 alike, one scatters a fifth as much: its 3% is three of the usual errors."""
    found = estimated([0.03] + [0.0] * 199, [0.006] + [0.03] * 199)
    assert found.low[0] > 1.02
    assert plain(found)[0] < 0.05
    assert q_of(found)[0] > 0.05


def test_a_difference_among_alike_scatters_is_called() -> None:
    """The family knows its scatter, so that a true 10% in ten pairs stays far below 5%."""
    found = estimated([0.1] + [0.0] * 199, [0.03] * 200)
    assert q_of(found)[0] < 0.001


def test_what_scatters_more_than_the_others_gains_nothing() -> None:
    """Seen with the scatter of the others it would be sure; its own says that it is not."""
    found = estimated([0.1] + [0.0] * 199, [0.2] + [0.03] * 199)
    assert q_of(found)[0] >= plain(found)[0] > 0.05


@pytest.mark.parametrize("seed", range(5))
def test_no_q_is_below_that_of_the_plain_correction(seed: int) -> None:
    """Whatever the family, nothing is called that Benjamini and Hochberg would not call."""
    random = np.random.default_rng(seed)
    scatters = list(np.exp(random.normal(-3, 1, 40)))
    found = estimated(list(random.normal(0, 0.05, 40)), scatters)
    assert (q_of(found) >= plain(found)).all()


def test_families_do_not_touch_each_other() -> None:
    """Each has the q that it has alone; what is not tested has none, and weighs nothing."""
    found = estimated(
        [0.02, 0.03, 0.01, 0.04, 0.05, 0.06, 0.5], [0.03, 0.02, 0.03, 0.04] + [0.1] * 3
    )
    names = ["version"] * 4 + ["mode"] * 3
    tested = np.array([True] * 6 + [False])
    q = families.corrected(found, names, tested)
    alone = estimated([0.02, 0.03, 0.01, 0.04], [0.03, 0.02, 0.03, 0.04])
    assert list(q[:4]) == pytest.approx(list(q_of(alone)))
    assert list(q[4:6]) == pytest.approx(list(stats.false_discovery_control(found.p[4:6])))
    assert np.isnan(q[6])


def test_two_scatters_say_nothing_of_a_third() -> None:
    """Of one or two contrasts the plain correction is all there is."""
    for scatters in ([0.03], [0.03, 0.01]):
        found = estimated([0.02 + 0.01 * n for n in range(len(scatters))], scatters)
        assert list(q_of(found)) == pytest.approx(list(plain(found)))


def test_the_weight_of_a_family_is_found_again() -> None:
    """Variances drawn from a scaled inverse chi-square give back what they were drawn with."""
    random = np.random.default_rng(3)
    true = 4e-4 * 8 / random.chisquare(8, 20_000)
    variance = true * random.chisquare(9, 20_000) / 9
    weight, typical = families._prior(variance, np.full(20_000, 9.0))
    assert weight == pytest.approx(8, rel=0.1)
    assert typical == pytest.approx(4e-4, rel=0.03)


@pytest.mark.parametrize("x", [0.01, 0.5, 3.0, 1e4])
def test_the_inverse_of_trigamma_is_one(x: float) -> None:
    """For families whose scatters are all unlike, and for those whose scatters are alike."""
    value = float(special.polygamma(1, x))
    assert families._trigamma_inverse(value) == pytest.approx(x)
