"""Many comparisons at once: p of each, corrected over all that answer one question.

A grid of 200 comparisons has, by chance, some whose blocks agree far better than its blocks do.
Student's t divides by that scatter, so nearly all false alarms come from there: after Benjamini and
Hochberg's correction 2% of grids without any difference (4% where processes are bimodal) still had
a verdict whose whole interval lay beyond 2%. A smaller q would take true verdicts away: q < .01
loses half of the differences of 5%, because few blocks hardly ever reach p = .0001.

So a difference must also stand when its scatter is seen in the light of the others', and there it
is corrected for any dependence, because comparisons share references and a machine. docs/rigour.md
has what remains: false alarms in well below 1% of grids, with the power of the plain correction.
As the larger of two q counts, no comparison is called that the plain correction would not call,
whatever the scatter of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special, stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from orchestrator.paired.intervals import Estimates, Floats

_ENOUGH: Final = 3  # scatters, to say anything about how they scatter
_STEPS: Final = 50  # Newton's method converges from below in a dozen
_CLOSE: Final = 1e-8
_LARGE: Final = 1e7  # degrees of freedom that are as good as no end of them


def corrected(found: Estimates, families: Sequence[str], tested: NDArray[np.bool_]) -> Floats:
    """The q of each contrast within its family, over those that are tested; NaN elsewhere.

    The larger of Benjamini and Hochberg's correction of p, and Benjamini and Yekutieli's of the p
    that has the scatter of the whole family in it.
    """
    q = np.full(len(found.p), np.nan)
    names = np.array(families, dtype=object)
    for family in dict.fromkeys(families):
        members = tested & (names == family)
        if members.any():
            q[members] = stats.false_discovery_control(found.p[members], method="bh")
            moderated = _moderated(found, members)
            if moderated is not None:
                shared = stats.false_discovery_control(moderated, method="by")
                q[members] = np.maximum(q[members], shared)
    return q


def _moderated(found: Estimates, members: NDArray[np.bool_]) -> Floats | None:
    """Two-sided p from t with the variance drawn towards that of the family; None of too few.

    Variances are taken as drawn from a scaled inverse chi-square, whose scale and degrees of
    freedom are estimated from them: alike variances weigh as much as all of them together, unlike
    ones next to nothing. Smyth, "Linear models and empirical Bayes methods", Stat. Appl. Genet.
    Mol. Biol. 3 (2004), sections 3 and 6.2.
    """
    pairs = found.pairs[members]
    freedom = (pairs - 1).astype(float)
    variance = found.standard_error[members] ** 2 * pairs
    varied = variance > 0
    if varied.sum() < _ENOUGH:
        return None
    weight, typical = _prior(variance[varied], freedom[varied])
    drawn = (weight * typical + freedom * variance) / (weight + freedom)
    distance = np.abs(np.log(found.ratio[members])) / np.sqrt(drawn / pairs)
    # No more is known than all of them together know.
    known = np.minimum(weight + freedom, freedom.sum())
    moderated: Floats = 2 * stats.t.sf(distance, known)
    return moderated


def _prior(variance: Floats, freedom: Floats) -> tuple[float, float]:
    """How many degrees of freedom the family's variance is worth, and that variance."""
    half = freedom / 2
    logs = np.log(variance) - special.digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= 1 / _LARGE:
        return _LARGE, float(np.exp(logs.mean()))
    worth = _trigamma_inverse(excess)
    return 2 * worth, float(np.exp(logs.mean() + special.digamma(worth) - np.log(worth)))


def _trigamma_inverse(value: float) -> float:
    """The x whose trigamma is `value`, by Newton's method on 1 / trigamma, which is convex."""
    x = 0.5 + 1 / value
    for _ in range(_STEPS):
        trigamma = float(special.polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
        x += step
        if -step / x < _CLOSE:
            break
    return x
