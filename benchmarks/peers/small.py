"""The origin's small model on one batch, as pyperf times it."""

import os
import sys

import pyperf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "asv"))


def step():
    """The same step as asv's, in a process that has warmed up; its import is not timed."""
    from benchmarks.small import Small

    small = Small()
    small.setup()
    return small.time_train_on_batch


if __name__ == "__main__":
    runner = pyperf.Runner()
    # The process that only starts the others must not load TensorFlow as well.
    runner.bench_func("train_on_batch", step() if runner.parse_args().worker else len)
