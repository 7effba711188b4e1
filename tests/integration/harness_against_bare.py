"""What the harness adds to a loop: its own, and the origin's bare one, turn and turn about.

Run with the Python of an environment, this project on PYTHONPATH, and the name of a file to write.
Both loops train the same model on the same batch in one process; which of the two begins changes
from pair to pair. Leaves JSON: the median ratio of seconds an iteration, harness by bare, with a 95%
interval that assumes nothing of their distribution (order statistics of the binomial; Conover,
Practical Nonparametric Statistics, 3rd ed., 3.2), and the cost of clock and store in seconds.
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

PAIRS = 1000
ITERATIONS = 5
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
    for pair in range(PAIRS + 2):
        order = loops if pair % 2 else loops[::-1]
        seconds = {loop: loop(train, *batch) for loop in order}
        ratios.append(seconds[harness] / seconds[bare])
    ratios = sorted(ratios[2:])  # the first two made the graph and warmed up
    reach = 0.98 * sqrt(PAIRS)
    told = {
        "pairs": PAIRS,
        "ratio": ratios[PAIRS // 2],
        "low": ratios[int(PAIRS / 2 - reach)],
        "high": ratios[int(PAIRS / 2 + reach)],
        "overhead_s": timing.overhead_s(),
    }
    Path(sys.argv[1]).write_text(json.dumps(told), encoding="utf-8")


main()
