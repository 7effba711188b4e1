"""How wide the intervals are, which of them ask for more rounds, and how many they will need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model.plan import ALPHA_BY_WIDTH
from orchestrator.paired import intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.paired.intervals import Floats

# Stopping at a width asks for the scatter to be small, which it is by chance where pairs are few.
# Ten pairs at least, and intervals of 96% (ALPHA_BY_WIDTH), keep false differences at 5%.
LEAST_PAIRS: Final = 10
# An interval nearly as wide as the widest is as wide: widths of ten pairs vary by a quarter.
ALIKE: Final = 0.8
_LONGEST: Final = 10_000  # rounds that are looked at


def half_widths(log_ratios: Floats, *, alpha: float = ALPHA_BY_WIDTH) -> Floats:
    """Half the interval of each log ratio, (..., rounds) -> (...); NaN below two pairs.

    `log_ratios`: candidate over reference, one a block; NaN where there is no pair.
    """
    flat = log_ratios.reshape(-1, log_ratios.shape[-1])
    found = intervals.estimate(flat, alpha=alpha)
    half = intervals.half_widths(found.standard_error, found.pairs, alpha=alpha)
    return half.reshape(log_ratios.shape[:-1])


def asking(
    log_ratios: Floats, *, precision: float | None = None, alpha: float = ALPHA_BY_WIDTH
) -> NDArray[np.bool_]:
    """Which contrasts ask for another round: (..., contrasts, rounds) -> (..., contrasts).

    Those with less than `LEAST_PAIRS` pairs; then, with a precision (a fraction), those whose
    interval reaches further than that from its ratio; without one, those about as wide as the
    widest of their run. Pairs and widths decide, and neither the sign of a ratio nor whether it is
    significant: a run that stops because a difference shows would invent one in 19 to 31% of
    comparisons of a version with itself.
    """
    half = half_widths(log_ratios, alpha=alpha)
    few = np.isfinite(log_ratios).sum(axis=-1) < LEAST_PAIRS
    if precision is not None:
        wide = half > np.log1p(precision)
    else:
        widest = np.where(few, 0.0, half).max(axis=-1, initial=0.0, keepdims=True)
        wide = half >= ALIKE * widest
    found: NDArray[np.bool_] = few | wide
    return found


def spread(log_ratios: Floats) -> float | None:
    """Standard deviation of the blocks' log ratios, pooled: (contrasts, rounds) -> one number.

    The root of the mean variance, weighted by degrees of freedom: a pilot has few a contrast, but
    many contrasts. None below two pairs of any contrast.
    """
    found = intervals.estimate(log_ratios, alpha=ALPHA_BY_WIDTH)
    freedom = np.maximum(found.pairs - 1, 0)
    if not freedom.any():
        return None
    variances = np.where(freedom > 0, found.standard_error**2 * found.pairs, 0.0)
    return float(np.sqrt((variances * freedom).sum() / freedom.sum()))


def detectable(
    spread: float, rounds: int, *, threshold: float, alpha: float = ALPHA_BY_WIDTH
) -> float | None:
    """The smallest ratio - 1 that so many rounds show in four runs of five; None below two."""
    if rounds < 2:  # noqa: PLR2004  no interval
        return None
    error, pairs = np.array([spread / np.sqrt(rounds)]), np.array([rounds])
    found = intervals.detectable(error, pairs, threshold=threshold, alpha=alpha)
    return float(found[0])


def rounds_for(spread: float, precision: float, *, alpha: float = ALPHA_BY_WIDTH) -> int:
    """How many rounds make an interval that narrow, where log ratios vary by `spread`."""
    rounds = np.arange(LEAST_PAIRS, _LONGEST + 1)
    half = intervals.half_widths(spread / np.sqrt(rounds), rounds, alpha=alpha)
    narrow = half <= np.log1p(precision)
    return int(rounds[narrow.argmax()]) if narrow.any() else _LONGEST
