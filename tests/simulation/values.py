"""Values of processes that never ran: noise like that of real machines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TIMES = 10 if os.environ.get("STACKRACE_SIMULATE") == "full" else 1
NOISE = 0.03
ITERATIONS = 210  # ten of them warm-up


def noisy(
    rho: float,
    *,
    series: int = 2000,
    iterations: int = ITERATIONS,
    seed: int = 1,
    spiky: bool = True,
    scatter: float = NOISE,
) -> NDArray[np.float64]:
    """(series, iterations): logarithms of times of one level, TIMES as many series as asked for.

    Each depends on the one before by `rho`; one in a hundred is a spike of 40%, more or less.
    """
    random = np.random.default_rng([seed, int(100 * rho), iterations])
    shape = (series * TIMES, iterations)
    found = random.normal(0, scatter, shape)
    for place in range(1, iterations):
        fresh = np.sqrt(1 - rho**2) * found[:, place]
        found[:, place] = rho * found[:, place - 1] + fresh
    if spiky:
        found += np.log1p((random.random(shape) < 0.01) * random.exponential(0.4, shape))
    return found - 5.0
