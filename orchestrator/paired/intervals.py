"""The statistics of one comparison: paired t intervals on log ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

POWER: Final = 0.8
# exp() of more is no number that JSON can hold; only two wildly different pairs reach it.
_LOG_LIMIT: Final = 700.0


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """One line a contrast. NaN: no pair at all, or, for all but `ratio`, one pair only."""

    pairs: NDArray[np.int64]
    ratio: Floats
    low: Floats
    high: Floats
    p: Floats
    standard_error: Floats  # of the mean log ratio


def estimate(log_ratios: Floats, *, alpha: float) -> Estimates:
    """Ratio, two-sided 1 - alpha interval and p of each row; NaN entries are no pairs.

    The process is the unit: a pair holds the medians of two processes of one block. Their log
    ratios are taken as independent and the interval is Student's, as in `scipy.stats.ttest_rel` on
    the logs. Without any variance the interval is a point, and p is 0, or 1 at a ratio of 1.
    """
    pairs, mean, error = means(log_ratios)
    half = half_widths(error, pairs, alpha=alpha)
    flat = error == 0
    distance = np.abs(mean) / np.where(flat, 1.0, error)
    freedom = np.maximum(pairs - 1, 1)
    p = np.where(flat, np.where(mean == 0, 1.0, 0.0), 2 * stats.t.sf(distance, freedom))

    def where(enough: NDArray[np.bool_], values: Floats) -> Floats:
        return np.where(enough, values, np.nan)

    return Estimates(
        pairs=pairs,
        ratio=where(pairs > 0, _exp(mean)),
        low=where(pairs > 1, _exp(mean - half)),
        high=where(pairs > 1, _exp(mean + half)),
        p=where(pairs > 1, p),
        standard_error=where(pairs > 1, error),
    )


class Means(NamedTuple):
    """Of each row; of one without pairs the mean is 0, of one with fewer than two the error is."""

    pairs: NDArray[np.int64]
    mean: Floats  # log ratio
    standard_error: Floats


def means(log_ratios: Floats) -> Means:
    """How many pairs each row has, their mean, and its standard error; NaN entries are no pairs."""
    valid = np.isfinite(log_ratios)
    pairs = valid.sum(axis=1)
    filled = np.where(valid, log_ratios, 0.0)
    mean = filled.sum(axis=1) / np.maximum(pairs, 1)
    squares = np.where(valid, (filled - mean[:, None]) ** 2, 0.0).sum(axis=1)
    error = np.sqrt(squares / np.maximum(pairs - 1, 1) / np.maximum(pairs, 1))
    return Means(pairs, mean, error)


def half_widths(standard_error: Floats, pairs: NDArray[np.int64], *, alpha: float) -> Floats:
    """Half of each two-sided 1 - alpha interval, of the log ratio: Student's."""
    reach = stats.t.ppf(1 - alpha / 2, np.maximum(pairs - 1, 1))
    return np.asarray(reach * standard_error, dtype=np.float64)


def detectable(
    standard_error: Floats, pairs: NDArray[np.int64], *, threshold: float, alpha: float
) -> Floats:
    """The smallest ratio - 1 that each interval would show in four runs of five.

    An effect is shown when the whole interval lies beyond the threshold. So the effect must exceed
    the threshold by the interval's half-width, and by as much again as the estimate falls short of
    the truth in one run of five: (1 + threshold) * exp((t(1 - alpha/2) + t(.8)) * error) - 1. The
    correction over the family is left out: it depends on the other contrasts.
    """
    freedom = np.maximum(pairs - 1, 1)
    reach = stats.t.ppf(1 - alpha / 2, freedom) + stats.t.ppf(POWER, freedom)
    return (1 + threshold) * _exp(reach * standard_error) - 1


def _exp(values: Floats) -> Floats:
    return np.exp(np.clip(values, -_LOG_LIMIT, _LOG_LIMIT))
