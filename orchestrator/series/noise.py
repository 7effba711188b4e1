"""How much series scatter, by themselves and in the long run, whatever else happens in them.

Every function takes (series, iterations), mostly of the logarithms of seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.ndimage import median_filter

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The median of |x| of a normal x of standard deviation 1: a scale that a few outliers do not move.
MAD: Final = 0.6745
# More dependence than this cannot be told from changes of level in a few hundred iterations.
MOST_DEPENDENT: Final = 0.65
_CLIPPED: Final = 3.0


def median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(series,): as `numpy.median`, in half the time; for numbers only."""
    ranked = np.sort(values, axis=-1)
    count = values.shape[-1]
    middle: NDArray[np.float64] = (ranked[..., (count - 1) // 2] + ranked[..., count // 2]) / 2
    return middle


def mad(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(series,): median absolute deviation from the median, as a standard deviation."""
    return median(np.abs(values - median(values)[:, None])) / MAD


def course(values: NDArray[np.float64], *, window: int) -> NDArray[np.float64]:
    """The running median: follows steps and slopes, and passes by single outliers.

    At its start a series goes on as it begins, so that a first slow iteration is followed too: it
    is a warm-up. At its end the series is reflected: a last slow iteration is an outlier.
    """
    half = window // 2
    padded = np.concatenate(
        [np.repeat(values[:, :1], half, axis=1), values, values[:, : -half - 1 : -1]], axis=1
    )
    # All in one row, which takes a fifth of the time: no window reaches beyond its own padding.
    filtered: NDArray[np.float64] = median_filter(padded.ravel(), size=window).reshape(padded.shape)
    return filtered[:, half:-half]


def clipped(log_s: NDArray[np.float64], *, window: int = 7) -> NDArray[np.float64]:
    """The series with its outliers pulled in to three deviations around its running median."""
    middle = course(log_s, window=window)
    width = _CLIPPED * mad(log_s - middle)[:, None]
    return np.clip(log_s, middle - width, middle + width)


def long_run_variance(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(series,): what n times the variance of a mean over n iterations tends to.

    Where each value depends on the one before by rho, it is the variance times
    (1 + rho) / (1 - rho): Andrews (1991), Econometrica 59, 817-858. Both are read off differences,
    which a change of level disturbs in one place only: those of neighbours have 2 (1 - rho) times
    the variance of the values, those of next neighbours 2 (1 - rho^2) times.
    """
    near = _mean_square(values[:, 1:] - values[:, :-1])
    far = _mean_square(values[:, 2:] - values[:, :-2])
    rho = np.clip(far / np.maximum(near, np.finfo(float).tiny) - 1, 0.0, MOST_DEPENDENT)
    found: NDArray[np.float64] = near / 2 * (1 + rho) / (1 - rho) ** 2
    return found


def _mean_square(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without the largest few, which are changes and not noise."""
    width = _CLIPPED * median(np.abs(differences))[:, None] / MAD
    found: NDArray[np.float64] = (np.clip(differences, -width, width) ** 2).mean(axis=1)
    return found
