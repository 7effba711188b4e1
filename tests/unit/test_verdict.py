"""Contrasts, their numbers, their states, and the reasons where there is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator.errors import UsageError
from orchestrator.merge import merge
from orchestrator.model.result import Iterations
from orchestrator.verdict import compare
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record

REFERENCE = "tf114/tf.keras/graph"
GRAPH = "tf20/tf.keras/graph"
EAGER = "tf20/tf.keras/eager"


def verdict(plan: Plan, records: Sequence[Record], **options: Any) -> Comparison:  # noqa: ANN401
    """Merge and compare one run, at a threshold of 2% unless said otherwise."""
    environments = [item.identifier for item in plan.environments]
    frame = merge([(plan, records)])
    return compare(frame, environments=environments, **({"threshold": 0.02} | options))


def pair(rounds: int = 6, **facts: Any) -> Plan:  # noqa: ANN401
    """Two arms of one case: tf114 and tf20, both tf.keras in graph mode."""
    return factories.plan(forms=[("tf.keras", "graph")], rounds=rounds, **facts)


def raced(ratios: Sequence[float], **options: Any) -> Contrast:  # noqa: ANN401
    """The only contrast of a run in which tf20 takes these multiples of tf114, round by round."""
    plan = pair(rounds=len(ratios))
    records = factories.measured(
        plan, factories.by_arm({REFERENCE: [0.01], GRAPH: [0.01 * ratio for ratio in ratios]})
    )
    (contrast,) = verdict(plan, records, **options).contrasts
    return contrast


def between(found: Comparison, kind: str, candidate: str, reference: str) -> Contrast:
    """The one contrast of these two arms."""
    (contrast,) = (
        item
        for item in found.contrasts
        if (item.kind, item.candidate.arm, item.reference.arm) == (kind, candidate, reference)
    )
    return contrast


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
    assert contrast.reason == "at most 14% slower or 5.6% faster"
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
    other = msgspec.structs.replace(factories.HOST, hostname="host1")
    records = factories.measured(plan, lambda _: 0.01)
    records[0] = msgspec.structs.replace(records[0], host=other)
    found = verdict(plan, records)
    assert found.contrasts[0].pairs == 5
    assert found.contrasts[0].notes == ("1 of 6 blocks dropped: not on one machine",)
    assert found.warnings == (
        "measured on 2 machines (host0, host1); only processes of one machine are paired",
    )


def test_benjamini_hochberg_within_a_family() -> None:
    """By hand: p = p1 <= p2 <= p3 gives q = min over later ones of p * 3 / rank."""
    cases = [factories.case(data=f"d{number}") for number in range(3)]
    plan = pair(cases=cases)
    noise = {"d0": 0.30, "d1": 0.05, "d2": 0.01}
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
    assert p["d2"] is not None
    assert p["d2"] < p["d1"] < p["d0"]
    assert q["d2"] == pytest.approx(p["d2"] * 3)
    assert q["d1"] == pytest.approx(min(p["d1"] * 3 / 2, p["d0"]))
    assert q["d0"] == pytest.approx(p["d0"])


def test_a_cell_that_cannot_run_has_a_reason_instead_of_a_number() -> None:
    """`unsupported` in every round: the contrast and the gap both say why."""
    plan = pair()
    why = "tf.placeholder() is not compatible with eager execution\nlog: ..."
    records = [
        factories.record(plan, job, outcome="unsupported", message=why, kind="matrix")
        if job.arm.environment == "tf20"
        else factories.record(plan, job)
        for job in plan.jobs
    ]
    found = verdict(plan, records)
    (contrast,) = found.contrasts
    reason = "tf.placeholder() is not compatible with eager execution"
    assert (contrast.ratio, contrast.state, contrast.pairs) == (None, None, 0)
    assert contrast.reason == f"{GRAPH} unsupported: {reason}"
    (gap,) = found.gaps
    assert (gap.arm, gap.outcome, gap.reason, gap.jobs) == (GRAPH, "unsupported", reason, 6)
    assert found.jobs == {"planned": 12, "missing": 0, "superseded": 0, "ok": 6, "unsupported": 6}


def test_a_cell_that_failed_in_two_ways_has_two_gaps() -> None:
    """Each cause is told once, with its number of jobs."""
    plan = pair()
    records = [
        factories.record(
            plan,
            job,
            outcome="crashed" if job.round > 2 else "timed_out",
            kind="signal" if job.round > 2 else "job_limit",
            message=f"broke in process {job.round}",
        )
        if job.arm.environment == "tf20"
        else factories.record(plan, job)
        for job in plan.jobs
    ]
    gaps = [(gap.outcome, gap.jobs) for gap in verdict(plan, records).gaps]
    assert gaps == [("timed_out", 2), ("crashed", 4)]


def test_blocks_with_a_failure_are_dropped_and_counted() -> None:
    """One of eight blocks lost its tf20: seven pairs, and a note."""
    plan = pair(rounds=8)
    records = [
        factories.record(plan, job, outcome="crashed")
        if (job.round, job.arm.environment) == (3, "tf20")
        else factories.record(plan, job)
        for job in plan.jobs
    ]
    found = verdict(plan, records)
    assert found.contrasts[0].pairs == 7
    assert found.contrasts[0].state == "same"
    assert found.contrasts[0].notes == (f"1 of 8 blocks dropped: {GRAPH} crashed",)
    assert found.gaps == ()


def test_a_run_without_records_has_reasons_everywhere() -> None:
    """Nothing measured is no error: every cell is a gap, every contrast has a reason."""
    plan = pair()
    found = verdict(plan, [])
    assert found.contrasts[0].reason == (
        f"{GRAPH} missing: no record: the run was interrupted, or is still going"
    )
    assert [gap.jobs for gap in found.gaps] == [6, 6]
    assert (found.detectable, found.spread, found.measuring_s) == (None, None, 0.0)
    assert found.jobs == {"planned": 12, "missing": 12, "superseded": 0}


def test_cells_that_never_meet_have_no_number() -> None:
    """Each arm worked in other rounds than the other."""
    plan = pair()
    records = [
        factories.record(plan, job, outcome="crashed")
        if (job.round % 2 == 0) == (job.arm.environment == "tf20")
        else factories.record(plan, job)
        for job in plan.jobs
    ]
    found = verdict(plan, records)
    assert found.contrasts[0].reason == "no block in which both have a number"
    assert found.gaps == ()


def test_few_iterations_are_noted() -> None:
    """Below ten timed iterations a process is indicative; the verdict stands."""
    plan = pair()
    short = factories.result([0.02] * 3, iterations=Iterations(asked=50, done=3))
    records = [factories.record(plan, job, result=short) for job in plan.jobs]
    assert verdict(plan, records).contrasts[0].notes == ("indicative: 3 iterations",)


def test_another_python_is_a_confounder() -> None:
    """The ratio then holds more than the versions."""
    plan = pair(environments=["tf114", factories.environment("tf20", python="3.8.18")])
    found = verdict(plan, factories.measured(plan, lambda _: 0.01))
    assert found.contrasts[0].notes == ("confounded: Python 3.8.18 against 3.7.16",)


def test_superseded_attempts_are_counted_but_not_used() -> None:
    """The block was done again: only the second attempt's times are in the ratio."""
    plan = pair()
    first, second = plan.blocks[0].jobs
    records = [
        factories.record(plan, first, values=[9.0]),
        factories.record(plan, second, outcome="environment_error"),
        factories.record(plan, first, attempt=2),
        factories.record(plan, second, attempt=2),
        *(factories.record(plan, job) for job in plan.jobs[2:]),
    ]
    found = verdict(plan, records)
    assert found.jobs["superseded"] == 2
    assert (found.contrasts[0].pairs, found.contrasts[0].ratio) == (6, 1.0)
    assert found.measuring_s == pytest.approx(14 * 3.0)


def test_what_is_compared_with_what() -> None:
    """Two environments, both apis, modes, inputs and methods: every kind, each pair once."""
    plan = factories.plan(
        cases=[
            factories.case(method, input=kind)
            for kind in ("numpy", "dataset")
            for method in ("train_on_batch", "fit")
        ],
        forms=[(api, mode) for api in ("tf.keras", "keras") for mode in ("graph", "eager")],
        rounds=1,
    )
    found = verdict(plan, factories.measured(plan, lambda _: 0.01))
    kinds = [contrast.kind for contrast in found.contrasts]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "as_installed": 4,
        "version": 16,
        "mode": 16,
        "api": 16,
        "input": 16,
        "method": 16,
    }
    assert kinds[:4] == ["as_installed"] * 4
    names = {
        (item.kind, item.candidate.arm, item.reference.arm)
        for item in found.contrasts
        if item.candidate.case == item.reference.case == "small-small/numpy/fit"
    }
    assert ("as_installed", EAGER, REFERENCE) in names
    assert ("version", "tf20/keras/eager", "tf114/keras/eager") in names
    assert ("mode", EAGER, GRAPH) in names
    assert ("api", "tf20/keras/graph", GRAPH) in names


def test_different_cases_are_paired_by_round() -> None:
    """Fit against train_on_batch of one arm: the ratio is taken within each round."""
    plan = pair(cases=[factories.case(), factories.case("fit")])
    speed = [0.01, 0.02, 0.03, 0.05, 0.08, 0.1]

    def seconds(job: Job) -> float:
        return speed[job.round - 1] * (3 if "fit" in job.case else 1)

    found = verdict(plan, factories.measured(plan, seconds), kinds=["method"])
    assert {item.reference.case for item in found.contrasts} == {"small-small/numpy/train_on_batch"}
    assert {item.candidate.case for item in found.contrasts} == {"small-small/numpy/fit"}
    assert [item.state for item in found.contrasts] == ["slower", "slower"]
    assert found.contrasts[0].high == pytest.approx(3.0)


def test_workload_files_are_compared_with_the_first_one() -> None:
    """Two files of a user's own, in one environment."""
    plan = pair(environments=["tf114"], workloads=["a.py", "b.py"])
    times = factories.by_arm({f"{REFERENCE}/a.py": [0.01], f"{REFERENCE}/b.py": [0.02]})
    (contrast,) = verdict(plan, factories.measured(plan, times)).contrasts
    assert (contrast.kind, contrast.candidate.arm) == ("workload", f"{REFERENCE}/b.py")
    assert contrast.state == "slower"


def test_another_environment_can_be_the_reference() -> None:
    """The ratio turns round with it."""
    plan = pair()
    times = factories.by_arm({REFERENCE: [0.01], GRAPH: [0.02]})
    found = verdict(plan, factories.measured(plan, times), reference="tf20")
    assert found.reference == "tf20"
    assert between(found, "version", REFERENCE, GRAPH).state == "faster"


def test_an_arm_as_reference_meets_every_other_arm_once() -> None:
    """Kinds are named after the first thing in which the arms differ."""
    plan = factories.plan(rounds=1)
    found = verdict(plan, factories.measured(plan, lambda _: 0.01), reference=REFERENCE)
    assert {(item.kind, item.candidate.arm) for item in found.contrasts} == {
        ("as_installed", EAGER),
        ("version", GRAPH),
        ("mode", "tf114/tf.keras/eager"),
    }
    assert {REFERENCE} == {item.reference.arm for item in found.contrasts}


def test_an_unknown_reference_is_refused_with_the_nearest_name() -> None:
    """A mistyped environment is one line, not a stack trace."""
    with pytest.raises(UsageError, match=r"Did you mean tf114\?"):
        verdict(pair(), [], reference="tf14")


@pytest.mark.parametrize(
    ("ratio", "reference", "percent"),
    [(2.0, None, -100.0), (0.5, None, 100.0), (2.0, "tf20", -100.0), (0.8, None, 25.0)],
)
def test_the_percent_is_positive_when_the_newer_version_is_faster(
    ratio: float, reference: str | None, percent: float
) -> None:
    """(1 - longer / shorter) * 100 as a magnitude, whichever side is the reference."""
    assert raced([ratio] * 6, reference=reference).origin_percent == pytest.approx(percent)


def test_the_percent_is_positive_when_graph_is_faster_than_eager() -> None:
    """Graph against eager has its own sign."""
    plan = factories.plan(environments=["tf114"])
    times = factories.by_arm({REFERENCE: [0.01], "tf114/tf.keras/eager": [0.03]})
    (contrast,) = verdict(plan, factories.measured(plan, times)).contrasts
    assert (contrast.kind, contrast.state) == ("mode", "slower")
    assert contrast.origin_percent == pytest.approx(200.0)


def test_a_side_is_the_median_over_processes() -> None:
    """Seconds, processes and their coefficient of variation, by hand: 1, 2, 3, 4, 10."""
    plan = pair(rounds=5)
    times = {REFERENCE: [1.0, 2.0, 3.0, 4.0, 10.0], GRAPH: [1.0]}
    found = verdict(plan, factories.measured(plan, factories.by_arm(times)))
    side = found.contrasts[0].reference
    assert side.processes == 5
    assert side.seconds == pytest.approx(3.0)
    assert side.spread == pytest.approx(math.sqrt(12.5) / 4)
    assert found.spread == pytest.approx((0.0, math.sqrt(12.5) / 4))


def test_the_smallest_detectable_effect_adds_threshold_interval_and_power() -> None:
    """By hand: s = 0.158114 over 5 blocks, t(.975, 4) = 2.776445, t(.8, 4) = 0.940965."""
    plan = pair(rounds=5)
    times = {REFERENCE: [1.0], GRAPH: [math.exp(value / 10) for value in (1, 2, 3, 4, 5)]}
    found = verdict(plan, factories.measured(plan, factories.by_arm(times)))
    error = 0.15811388300841897 / math.sqrt(5)
    assert found.detectable == pytest.approx(1.02 * math.exp((2.776445 + 0.940965) * error) - 1)


def test_two_locks_of_one_environment_are_a_warning() -> None:
    """The runs can be merged, but the reader is told."""
    runs = []
    for run_id, lock in (("run1", "one"), ("run2", "two")):
        plan = pair(run_id=run_id, environments=[factories.environment("tf114", lock_digest=lock)])
        runs.append((plan, factories.measured(plan, lambda _: 0.01)))
    found = compare(merge(runs), environments=["tf114"], threshold=0.02)
    assert found.warnings == ("tf114 had 2 different locks in these runs",)


def test_the_summary_is_json_without_nan() -> None:
    """Numbers that do not exist are null."""
    plan = factories.plan(rounds=1)
    records = factories.measured(plan, lambda _: 0.01)[:-1]
    text = msgspec.json.encode(verdict(plan, records)).decode()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert '"low":null' in text
