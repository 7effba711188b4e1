"""The numbers of a contrast, its state, and the reason where there is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator.merge import merge
from orchestrator.verdict import compare
from tests import factories
from tests.judging import GRAPH, REFERENCE, pair, raced, verdict

if TYPE_CHECKING:
    from orchestrator.model.plan import Job


def test_the_interval_is_the_paired_t_interval_on_log_ratios() -> None:
    """Computed by hand: logs 0.1 .. 0.5, mean 0.3, s = 0.158114, t(.975, 4) = 2.776445."""
    contrast = raced([math.exp(value / 10) for value in (1, 2, 3, 4, 5)])
    error = 0.15811388300841897 / math.sqrt(5)
    assert contrast.pairs == 5
    assert contrast.ratio == pytest.approx(math.exp(0.3))
    assert contrast.low == pytest.approx(math.exp(0.3 - 2.7764451 * error))
    assert contrast.high == pytest.approx(math.exp(0.3 + 2.7764451 * error))
    assert contrast.p == pytest.approx(0.0132356, abs=1e-6)  # t = 4.242641, 4 degrees of freedom


def test_drift_between_blocks_does_not_widen_the_interval() -> None:
    """The machine becomes ten times slower: the pairs of each block do not notice."""
    plan = pair()
    drift = [0.01, 0.02, 0.03, 0.05, 0.08, 0.1]
    times = {REFERENCE: drift, GRAPH: [1.5 * value for value in drift]}
    (contrast,) = verdict(plan, factories.measured(plan, factories.by_arm(times))).contrasts
    assert contrast.low == pytest.approx(1.5)
    assert contrast.high == pytest.approx(1.5)
    assert contrast.state == "slower"


@pytest.mark.parametrize(
    ("ratio", "state"),
    [
        (1.03, "slower"),
        (1.0201, "slower"),
        (1.0199, "same"),
        (1.0, "same"),
        (1 / 1.0199, "same"),
        (1 / 1.0201, "faster"),
        (0.5, "faster"),
    ],
)
def test_the_threshold_decides_between_a_difference_and_none(ratio: float, state: str) -> None:
    """The band is symmetrical in the logarithm; an interval that is a point is inside or out."""
    contrast = raced([ratio] * 6)
    assert contrast.state == state
    assert contrast.reason is None


def test_no_variance_gives_numbers_and_no_nan() -> None:
    """Equal times in every block: the interval is the ratio itself."""
    contrast = raced([1.0] * 6)
    assert (contrast.ratio, contrast.low, contrast.high, contrast.p) == (1.0, 1.0, 1.0, 1.0)
    assert contrast.candidate.spread == 0.0


def test_an_interval_over_the_threshold_is_unclear_and_bounds_the_effect() -> None:
    """What can still be said is said, rounded outwards."""
    contrast = raced([0.95, 1.15, 0.97, 1.12, 0.96, 1.1])
    assert contrast.low is not None
    assert contrast.high is not None
    assert contrast.state == "unclear"
    assert contrast.reason == "at most 14% slower or 5.3% faster"
    assert contrast.high < 1.14
    assert 1 / contrast.low < 1.056


def test_an_interval_on_one_side_of_one_says_so() -> None:
    """Slower for sure, but perhaps by less than the threshold."""
    contrast = raced([1.01, 1.05, 1.02, 1.04, 1.03, 1.015])
    assert contrast.state == "unclear"
    assert contrast.reason == "at most 4.4% slower, not faster"


def test_an_effect_that_the_correction_takes_back_names_its_q() -> None:
    """The interval lies beyond the threshold; among nine contrasts without effect q does not."""
    cases = [factories.case(data=f"d{number}") for number in range(10)]
    plan = pair(cases=cases)
    noise = [0.9, 1.1, 0.95, 1.06, 0.92, 1.08]
    effect = [1.03, 1.4, 1.05, 1.35, 1.1, 1.3]

    def seconds(job: Job) -> float:
        if job.arm.environment == "tf114":
            return 0.01
        return 0.01 * (effect if "d0" in job.case else noise)[job.round - 1]

    found = verdict(plan, factories.measured(plan, seconds), kinds=["version"])
    contrast = found.contrasts[0]
    assert contrast.low is not None
    assert contrast.low > 1.02
    assert contrast.p is not None
    assert contrast.p < 0.05
    assert contrast.q == pytest.approx(10 * contrast.p)
    assert contrast.state == "unclear"
    assert contrast.reason == "at most 38% slower, not faster; q = 0.236 is not below 0.05"


def test_few_blocks_are_indicative() -> None:
    """Four blocks give an interval, but no verdict and no place in the correction."""
    contrast = raced([2.0, 2.1, 2.2, 2.0])
    assert contrast.reason == "indicative: 4 blocks, a verdict needs 5"
    assert (contrast.state, contrast.q) == (None, None)
    assert contrast.ratio == pytest.approx(2.0736, abs=1e-3)


def test_five_blocks_are_enough() -> None:
    """The least that gets a verdict."""
    assert raced([2.0, 2.1, 2.2, 2.0, 2.1]).state == "slower"


def test_one_block_gives_a_ratio_alone() -> None:
    """No interval can be had from one pair."""
    contrast = raced([2.0])
    assert contrast.ratio == pytest.approx(2.0)
    assert (contrast.low, contrast.high, contrast.p) == (None, None, None)
    assert contrast.reason == "indicative: 1 block, a verdict needs 5"
    assert contrast.candidate.spread is None


def test_wild_times_stay_finite() -> None:
    """Two pairs a thousand orders of magnitude apart overflow nothing."""
    contrast = raced([1e-250, 1e250])
    assert contrast.low is not None
    assert contrast.high is not None
    assert math.isfinite(contrast.low)
    assert math.isfinite(contrast.high)


def test_arms_that_were_not_interleaved_get_no_verdict() -> None:
    """All of tf114, then all of tf20: the drift between is in the ratio."""
    plan = pair()
    records = [
        factories.record(
            plan,
            job,
            values=[0.02 if job.arm.environment == "tf20" else 0.01],
            at=job.round * 4.0 + (1000 if job.arm.environment == "tf20" else 0),
        )
        for job in plan.jobs
    ]
    (contrast,) = verdict(plan, records).contrasts
    assert (contrast.state, contrast.q) == (None, None)
    assert contrast.reason is not None
    assert contrast.reason.startswith("not interleaved in time")
    assert contrast.ratio == pytest.approx(2.0)


def test_a_clock_that_jumps_does_not_hide_a_sequential_run() -> None:
    """The machine's own clock is asked as well as the calendar."""
    plan = pair()
    records = []
    for job in plan.jobs:
        at = job.round * 4.0 + (1000 if job.arm.environment == "tf20" else 0)
        record = factories.record(plan, job, at=at)
        wall = record.start.wall - (2000 if at > 1010 else 0)
        records.append(
            msgspec.structs.replace(record, start=msgspec.structs.replace(record.start, wall=wall))
        )
    (contrast,) = verdict(plan, records).contrasts
    assert (contrast.reason or "").startswith("not interleaved in time")


def test_blocks_of_two_runs_are_paired_within_each() -> None:
    """Three rounds of a fast machine's day and three of a slow one make six blocks."""
    runs = []
    for run_id, speed in (("run1", 0.01), ("run2", 0.05)):
        plan = pair(rounds=3, run_id=run_id)
        times = factories.by_arm({REFERENCE: [speed], GRAPH: [speed * 1.2]})
        runs.append((plan, factories.measured(plan, times)))
    found = compare(merge(runs), environments=["tf114", "tf20"], threshold=0.02)
    assert found.run_ids == ("run1", "run2")
    (contrast,) = found.contrasts
    assert (contrast.pairs, contrast.state) == (6, "slower")
    assert contrast.high == pytest.approx(1.2)


def test_processes_of_two_machines_make_no_pair() -> None:
    """A block that was torn over two hosts is dropped, and the note says why."""
    plan = pair()
    other = msgspec.structs.replace(factories.HOST, node="node1")
    records = factories.measured(plan, lambda _: 0.01)
    records[0] = msgspec.structs.replace(records[0], host=other)
    found = verdict(plan, records)
    assert found.contrasts[0].pairs == 5
    assert found.contrasts[0].notes == ("1 of 6 blocks dropped: not on one machine",)
    assert found.warnings == (
        "measured on 2 machines (node0, node1); only processes of one machine are paired",
    )


def test_a_case_on_the_gpu_is_paired_with_that_on_the_cpu_of_its_machine() -> None:
    """Its machine's key covers the GPU as well; another key on one device is another machine."""
    plan = factories.plan(
        environments=["tf20"],
        forms=[("tf.keras", "eager")],
        cases=[factories.case(device="cpu"), factories.case(device="gpu")],
    )
    host = msgspec.structs.replace(factories.HOST, machine="m0+gpu")
    records = [
        msgspec.structs.replace(one, host=host) if one.case.device == "gpu" else one
        for one in factories.measured(plan, lambda _: 0.01)
    ]
    found = compare(merge([(plan, records)]), environments=["tf20"], threshold=0.02)
    assert [("device", 6)] == [(item.kind, item.pairs) for item in found.contrasts]
    assert () == found.warnings
    two = pair()
    moved = factories.measured(two, lambda _: 0.01)
    moved[0] = msgspec.structs.replace(moved[0], host=host)
    assert 5 == verdict(two, moved).contrasts[0].pairs
    assert 1 == len(verdict(two, moved).warnings)


def test_benjamini_hochberg_within_a_family() -> None:
    """By hand: p1 <= p2 give q = min over later ones of p * 2 / rank."""
    cases = [factories.case(data=f"d{number}") for number in range(2)]
    plan = pair(cases=cases)
    noise = {"d0": 0.05, "d1": 0.01}
    signs = [1, -1, 1, -1, 1, 1]

    def seconds(job: Job) -> float:
        if job.arm.environment == "tf114":
            return 0.01
        scale = next(value for name, value in noise.items() if name in job.case)
        return 0.01 * math.exp(0.04 + scale * signs[job.round - 1])

    found = verdict(plan, factories.measured(plan, seconds))
    p = {item.candidate.case[6:8]: item.p for item in found.contrasts}
    q = {item.candidate.case[6:8]: item.q for item in found.contrasts}
    assert {"version"} == {item.family for item in found.contrasts}
    assert p["d0"] is not None
    assert p["d1"] is not None
    assert p["d1"] < p["d0"]
    assert q["d1"] == pytest.approx(min(p["d1"] * 2, p["d0"]))
    assert q["d0"] == pytest.approx(p["d0"])
