"""What is computed for all processes at once is what a plain definition says of each."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from orchestrator import quantities, reproducibility
from orchestrator.merge import merge
from orchestrator.model.result import Iterations
from orchestrator.series import noise, steady
from tests import factories

if TYPE_CHECKING:
    import pandas as pd

seconds = some.lists(some.floats(1e-6, 1e3), min_size=1, max_size=30)
losses = some.lists(some.none() | some.sampled_from([0.5, 0.25, -1.0, 1e-9]), max_size=6)


def table(every: list[tuple[list[float], list[float | None]]]) -> pd.DataFrame:
    """A process a round of one cell, with these times and losses."""
    plan = factories.plan(environments=["tf114"], forms=[("tf.keras", "graph")], rounds=len(every))
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                values,
                losses=tuple(lost),
                warmup_s=(0.5,),
                iterations=Iterations(asked=len(values), done=len(values)),
            ),
        )
        for job, (values, lost) in zip(plan.jobs, every, strict=True)
    ]
    return merge([(plan, records)])


@settings(max_examples=25, deadline=None)
@given(every=some.lists(some.tuples(seconds, losses), min_size=1, max_size=5))
def test_medians_are_those_of_each_process(
    every: list[tuple[list[float], list[float | None]]],
) -> None:
    """Of the steady iterations, or of all; and a cell's are those of its processes."""
    frame = table(every)
    starts = [max(0, steady.find([[0.5, *values]])[0].start - 1) for values, _ in every]
    medians = [
        statistics.median(values[start:]) for (values, _), start in zip(every, starts, strict=True)
    ]
    assert medians == list(frame["median_s"])
    (cell,) = quantities.of(frame).cells
    amount = cell.steady_s
    assert amount is not None
    assert (statistics.median(medians), min(medians), max(medians), len(every)) == (
        msgspec.structs.astuple(amount)
    )


@settings(max_examples=25, deadline=None)
@given(every=some.lists(losses, min_size=2, max_size=5))
def test_losses_agree_where_no_two_differ(every: list[list[float | None]]) -> None:
    """Iteration by iteration, over those that all processes have."""
    frame = table([([0.01], lost) for lost in every])
    (found,) = reproducibility.of(frame).items
    kept = [lost for lost in every if lost]
    shared = list(zip(*kept, strict=False)) if len(kept) > 1 else []
    differing = [place for place, lost in enumerate(shared) if len(set(lost)) > 1]
    assert len(shared) == found.iterations
    # The first loss is that of the iteration after one of warm-up.
    assert (differing[0] + 2 if differing else None) == found.first_differing
    assert (None if not shared else bool(differing)) == (found.state and found.state != "equal")


@pytest.mark.parametrize("length", [1, 2, 7, 200])
def test_the_quick_median_is_numpys(length: int) -> None:
    """To the last bit: what it decides must not depend on which one was used."""
    values = np.random.default_rng(length).lognormal(size=(50, length))
    assert np.median(values, axis=1).tolist() == noise.median(values).tolist()
