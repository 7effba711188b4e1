"""What the processes of a cell show, and how many of them it takes to say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrator import quantities
from orchestrator.merge import merge
from orchestrator.model.quantities import Amount
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.quantities import Finding, Quantities
    from orchestrator.model.record import Record
    from orchestrator.model.result import Result

MB = 1_000_000
FLAT = (100 * MB, *(130 * MB,) * 21)
LEAKING = tuple(130 * MB + 50_000 * place for place in (0, *range(10, 201, 10), 200))


def process(seed: int = 0, *, slower: float = 0.0, **facts: Any) -> Result:  # noqa: ANN401
    """A process of 200 iterations of ten milliseconds with 1% noise, and what is to be shown."""
    noise = np.random.default_rng(seed).normal(0, 0.01, 200)
    values = 0.01 * np.exp(noise) * np.linspace(1, 1 + slower, 200)
    for place, size in facts.pop("spikes", {}).items():
        values[place] *= size
    defaults: dict[str, Any] = {"rss_bytes": FLAT, "warmup_s": (0.01,) * 10, "retraces": 0}
    return factories.result(values.tolist(), **(defaults | facts))


def of(results: Sequence[Result | None], **facts: Any) -> Quantities:  # noqa: ANN401
    """The quantities of one cell with these processes; None: one that failed."""
    plan = factories.plan(
        environments=["tf20"],
        forms=[("tf.keras", "eager")],
        rounds=len(results),
        cases=[factories.case(**facts)],
    )
    records: list[Record] = [
        factories.record(plan, job, outcome="failed")
        if result is None
        else factories.record(plan, job, result=result)
        for job, result in zip(plan.jobs, results, strict=True)
    ]
    return quantities.of(merge([(plan, records)]))


def only(found: Quantities) -> Finding:
    """The one finding."""
    assert 1 == len(found.findings)
    return found.findings[0]


def test_quantities_are_medians_over_processes() -> None:
    """With the least and the most of them; a process that failed has none."""
    slow = process(1, diagnostics={"peak_rss_bytes": 300})
    found = of([process(0, diagnostics={"peak_rss_bytes": 100}), slow, None])
    (cell,) = found.cells
    assert ("tf20/tf.keras/eager", 2) == (cell.arm, cell.processes)
    assert Amount(median=200, low=100, high=300, processes=2) == cell.peak_rss_bytes
    assert Amount(median=0.5, low=0.5, high=0.5, processes=2) == cell.first_call_s
    assert cell.steady_s is not None
    assert 0.01 == pytest.approx(cell.steady_s.median, rel=0.01)
    assert cell.p99_s is not None
    assert cell.max_s is not None
    assert cell.steady_s.median < cell.p99_s.median < cell.max_s.median
    assert cell.memory_slope_bytes is not None
    assert 0 == cell.memory_slope_bytes.median
    assert cell == found.of("tf20/tf.keras/eager", "small-small/numpy/train_on_batch")


def test_a_cell_in_which_nothing_ran_has_no_quantities() -> None:
    """It is there, without a number and without a finding."""
    found = of([None])
    assert (0, None, None) == (
        found.cells[0].processes,
        found.cells[0].steady_s,
        found.cells[0].import_s,
    )
    assert () == found.findings


def test_warm_up_is_left_out_of_the_steady_seconds() -> None:
    """Its length counts from the first iteration after the first call."""
    values = (0.03,) * 40 + (0.01,) * 160
    slow = factories.result(values, warmup_s=(0.03,) * 10)
    (cell,) = of([slow] * 3).cells
    assert Amount(median=50, low=50, high=50, processes=3) == cell.warmup_iterations
    assert cell.steady_s is not None
    assert 0.01 == cell.steady_s.median


def test_clean_processes_show_nothing() -> None:
    """Nothing is claimed of a cell without a fault."""
    assert () == of([process(seed) for seed in range(5)]).findings


def test_a_leak_is_found_with_its_bytes() -> None:
    """50 kB an iteration, in every process."""
    found = only(of([process(seed, rss_bytes=LEAKING) for seed in range(3)]))
    assert ("memory grows", 3, 3, False) == (
        found.kind,
        found.shown,
        found.processes,
        found.indicative,
    )
    assert 50_000 == pytest.approx(found.numbers["bytes"])


def test_what_gets_slower_is_found() -> None:
    """With what the last iteration takes more than the first."""
    found = of([process(seed, slower=0.3) for seed in range(3)])
    (slower,) = [item for item in found.findings if item.kind == "gets slower"]
    assert 0.3 == pytest.approx(slower.numbers["fraction"], abs=0.04)


def test_spikes_are_found_with_their_rhythm() -> None:
    """Every twentieth iteration takes three times as long."""
    spikes = dict.fromkeys(range(7, 200, 20), 3.0)
    found = only(of([process(seed, spikes=spikes) for seed in range(3)]))
    assert ("spikes", True) == (found.kind, found.periodic)
    assert 20 == found.numbers["period"]
    assert 3 == pytest.approx(found.numbers["size"], rel=0.1)


def test_many_spikes_without_a_rhythm_are_found() -> None:
    """A few are what any machine shows."""
    places = [3, 9, 40, 61, 77, 90, 134, 150, 158, 191]
    many = only(of([process(seed, spikes=dict.fromkeys(places, 3.0)) for seed in range(3)]))
    assert ("spikes", False) == (many.kind, many.periodic)
    few = of([process(seed, spikes={3: 3.0, 90: 3.0}) for seed in range(3)])
    assert () == few.findings


def test_batches_that_take_turns_are_no_spikes() -> None:
    """Every fourth is larger because it was asked to be."""
    spikes = dict.fromkeys(range(3, 200, 10), 3.0)
    turns = {"batch_size": "8,8,8,8,8,8,8,8,8,64"}
    assert () == of([process(seed, spikes=spikes) for seed in range(3)], knobs=turns).findings


def test_retraces_are_found() -> None:
    """How often a step was made into a graph again, in the timed iterations."""
    found = only(of([process(seed, retraces=4) for seed in range(3)]))
    assert ("retraces", {"retraces": 4.0}) == (found.kind, found.numbers)


def test_a_process_that_never_settles_is_found() -> None:
    """Its last level came in the last quarter: its median is that of all timed iterations."""
    values = (0.01,) * 170 + (0.02,) * 30
    found = of([factories.result(values, warmup_s=(0.01,) * 10)] * 3)
    assert "no steady state" in {item.kind for item in found.findings}
    assert None is found.cells[0].warmup_iterations


def test_a_finding_needs_a_majority() -> None:
    """Half of the processes is not enough."""
    half = [process(0, retraces=4), process(1, retraces=4), process(2), process(3)]
    assert () == of(half).findings
    assert (3, 4) == (
        only(of([*half[:3], process(4, retraces=4)])).shown,
        only(of([*half[:3], process(4, retraces=4)])).processes,
    )


@pytest.mark.parametrize("count", [1, 2])
def test_with_fewer_than_three_processes_a_finding_is_indicative(count: int) -> None:
    """It is told, with that word."""
    assert only(of([process(seed, retraces=4) for seed in range(count)])).indicative


def test_series_that_are_too_short_show_nothing() -> None:
    """Three iterations have no trend, no spikes and no steady state."""
    found = of([factories.result([0.01, 0.02, 0.03])] * 3)
    assert () == found.findings
    assert (None, None) == (found.cells[0].slope_s, found.cells[0].p99_s)


@pytest.mark.parametrize(("throttle", "told"), [(None, [("throttle unknown", 1, 3)]), ([], [])])
def test_a_gpu_that_does_not_tell_is_judged_by_its_slope(
    throttle: list[str] | None, told: list[tuple[str, int, int]]
) -> None:
    """One process that gets slower is enough to say that it may have throttled."""
    plan = factories.plan(
        environments=[factories.environment("tf20", variant="gpu")],
        forms=[("tf.keras", "eager")],
        rounds=3,
        cases=[factories.case(device="gpu")],
    )
    gpu = {"uuid": "GPU-1", "before": {"throttle": throttle}, "after": {}, "throttle": []}
    results = [process(0, slower=0.3), process(1), process(2)]
    records = [
        factories.record(plan, job, result=result, engine={"gpus": [gpu]})
        for job, result in zip(plan.jobs, results, strict=True)
    ]
    found = quantities.of(merge([(plan, records)])).findings
    assert told == [(item.kind, item.shown, item.processes) for item in found]
