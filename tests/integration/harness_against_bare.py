"""What the harness adds to a loop: its own, and the origin's bare one, turn and turn about.

Run with the Python of an environment, this project on PYTHONPATH, and the name of a file to write.
Both loops train the same model on the same batch in one process; which of the two begins changes
from pair to pair, and there are as many as a narrow interval takes. Leaves JSON: the median ratio
of seconds an iteration, harness by bare, with a 95% interval that assumes nothing of how they are
distributed (order statistics of the binomial; Conover, Practical Nonparametric Statistics, 3rd
ed., 3.2), and the cost of clock and store in seconds.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from math import sqrt
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

FEWEST, MOST = 50, 200
NARROW = 0.01  # from the ratio to either end
ITERATIONS = 20  # so that memory is read hardly more often than in a measurement
SHAPE = (8, 140, 30)

timing: Any = import_module("workloads.timing")


def bare(train: Callable[..., object], *batch: object) -> float:
    """Seconds an iteration of the origin's loop."""
    start = time()
    for _ in range(ITERATIONS):
        train(*batch)
    return (time() - start) / ITERATIONS


def harness(train: Callable[..., object], *batch: object) -> float:
    """Seconds an iteration, as a measurement has them."""
    keep = import_module("workloads.methods").loss_of
    timed = timing.repeat(lambda: train(*batch), at_most=ITERATIONS, keep=keep)
    return float(sum(timed.values_s) / ITERATIONS)


def main() -> None:
    """Alternate, and leave what came out."""
    backend = import_module("workloads.tensorflow_backend").load("tf.keras", "graph")
    backend.seed(import_module("workloads.protocol").Seeds())
    train = import_module("workloads.models").first(backend, SHAPE).train_on_batch
    random = np.random.RandomState(1)
    batch = random.randn(*SHAPE), random.randint(0, 2, (SHAPE[0], 1))
    loops, ratios = (bare, harness), []
    low = ratio = high = 0.0
    for pair in range(-2, MOST):
        order = loops if pair % 2 else loops[::-1]
        seconds = {loop: loop(train, *batch) for loop in order}
        if pair < 0:  # the first make the graph, and warm up
            continue
        ratios.append(seconds[harness] / seconds[bare])
        low, ratio, high = interval(ratios)
        if pair >= FEWEST and high - ratio < NARROW and ratio - low < NARROW:
            break
    told = {
        "pairs": len(ratios),
        "ratio": ratio,
        "low": low,
        "high": high,
        "overhead_s": timing.overhead_s(),
    }
    Path(sys.argv[1]).write_text(json.dumps(told), encoding="utf-8")


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Of the median: the lower end, itself, the upper end."""
    values, count = sorted(ratios), len(ratios)
    reach = 0.98 * sqrt(count)
    ends = (count / 2 - reach, count / 2, min(count - 1, count / 2 + reach))
    low, middle, high = (values[max(0, int(end))] for end in ends)
    return low, middle, high


main()
