"""What is compared with what, and the account of every job."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import msgspec
import pytest

from orchestrator.errors import UsageError
from orchestrator.merge import merge
from orchestrator.model.result import Iterations
from orchestrator.verdict import compare
from tests import factories
from tests.judging import EAGER, GRAPH, REFERENCE, between, pair, raced, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.model.comparison import Contrast
    from orchestrator.model.plan import Job, Plan

BOTH_METHODS = (factories.case(), factories.case("fit"))


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


def test_blocks_that_are_to_come_are_told_alike_for_all_arms() -> None:
    """A run that was cut lacks the same blocks everywhere: a report tells it once."""
    plan = factories.plan(rounds=8)
    records = [factories.record(plan, job) for job in plan.jobs if job.round < 8]
    found = verdict(plan, records)
    assert len(found.contrasts) > 2
    notes = {note for item in found.contrasts for note in item.notes if "dropped" in note}
    assert notes == {"1 of 8 blocks dropped: not measured"}


def test_a_success_without_a_time_is_no_other_machine() -> None:
    """The reason is the true one, whatever put such a record there."""
    plan = pair(rounds=8)
    records = [
        factories.record(plan, job, values=[0.0] * 3)
        if (job.round, job.arm.environment) == (3, "tf20")
        else factories.record(plan, job)
        for job in plan.jobs
    ]
    assert verdict(plan, records).contrasts[0].notes == (
        f"1 of 8 blocks dropped: {GRAPH} ok without a time",
    )


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


def test_two_rows_about_the_same_cells_are_one_comparison() -> None:
    """tf20 and tf21 both start eager: as installed and eager are corrected, and counted, once."""
    cases = [factories.case(data=f"d{number}") for number in range(3)]
    plan = factories.plan(environments=["tf20", "tf21"], cases=cases)
    noise = [0.9, 1.1, 0.95, 1.06, 0.92, 1.2]

    def seconds(job: Job) -> float:
        graph = 0.1 if job.arm.mode == "graph" else 0.0
        shift = graph + int(job.case[7]) * 0.03
        return 0.01 * (noise[job.round - 1] + shift if job.arm.environment == "tf21" else 1)

    found = verdict(plan, factories.measured(plan, seconds))
    version = [item for item in found.contrasts if item.kind == "version"]
    installed = [item for item in found.contrasts if item.kind == "as_installed"]
    assert (len(version), len(installed)) == (6, 3)
    assert found.tested() == {"version": 6, "mode": 6}
    by_cell = {item.candidate: item.q for item in version}
    assert [by_cell[item.candidate] for item in installed] == [item.q for item in installed]
    alone = verdict(plan, factories.measured(plan, seconds), kinds=["version"])
    assert found.contrasts[3:9] == alone.contrasts


def test_no_two_contrasts_of_an_arm_as_reference_are_the_same_cells() -> None:
    """Each pair is met under one name only, so that nothing has to be counted once."""
    plan = factories.plan(environments=["tf114", "tf20", "tf21"], cases=BOTH_METHODS)
    found = verdict(plan, factories.measured(plan, lambda _: 0.01), reference=EAGER)
    pairs = [frozenset({item.candidate, item.reference}) for item in found.contrasts]
    cells = [(item.family, item.candidate, item.reference) for item in found.contrasts]
    assert len(set(cells)) == len(cells) == found.tested().total()
    assert len(pairs) == 10 + 6


def executed(plan: Plan, how: Callable[[Job], Literal["session", "function"] | None]) -> Contrast:
    """The only contrast of a run whose jobs were executed so."""
    records = [
        factories.record(plan, job, result=factories.result([0.01], executed_as=how(job)))
        for job in plan.jobs
    ]
    (contrast,) = verdict(plan, records).contrasts
    return contrast


def test_arms_that_ran_in_different_ways_have_a_note() -> None:
    """One mode, but only one of them made a function of its step: that explains the difference."""
    found = executed(pair(), lambda job: "function" if job.arm.environment == "tf20" else "session")
    assert found.notes == ("ran as function / session",)


def test_a_way_that_is_expected_or_unknown_is_not_noted() -> None:
    """Graph against eager differs by definition; what was not observed is not claimed."""
    modes = factories.plan(environments=["tf114"])
    found = executed(modes, lambda job: "session" if job.arm.mode == "graph" else "function")
    assert (found.kind, found.notes) == ("mode", ())
    found = executed(pair(), lambda job: "session" if job.arm.environment == "tf114" else None)
    assert (found.kind, found.notes) == ("version", ())


def test_every_cell_has_its_time_even_where_nothing_is_compared() -> None:
    """One arm alone: no contrast, but its median over processes, as in a contrast."""
    plan = pair(environments=["tf114"], rounds=2)
    found = verdict(plan, factories.measured(plan, factories.by_arm({REFERENCE: [0.01, 0.03]})))
    assert found.contrasts == ()
    (cell,) = found.cells
    assert (cell.arm, cell.processes) == (REFERENCE, 2)
    assert cell.seconds == pytest.approx(0.02)


def test_copies_of_a_run_are_one_run() -> None:
    """The same folder named twice: its identifier, and its blocks, stand once."""
    plan = pair()
    records = factories.measured(plan, lambda _: 0.01)
    other = pair(run_id="run1")
    runs = [(plan, records), (other, factories.measured(other, lambda _: 0.01)), (plan, records)]
    found = compare(merge(runs), environments=["tf114", "tf20"], threshold=0.02)
    assert found.run_ids == ("run0", "run1")
    assert found.contrasts[0].pairs == 12


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


def test_the_summary_is_json_without_nan() -> None:
    """Numbers that do not exist are null."""
    plan = factories.plan(rounds=1)
    records = factories.measured(plan, lambda _: 0.01)[:-1]
    text = msgspec.json.encode(verdict(plan, records)).decode()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert '"low":null' in text


def test_backends_that_differ_are_confounded() -> None:
    """A container against a virtual environment is not a comparison of versions alone."""
    named = {"backend": "container", "source": "registry.example/nvidia/tensorflow:23.03-tf1-py3"}
    plan = factories.plan(
        environments=["tf114", factories.environment("tf20", **named)],
        forms=[("tf.keras", "graph")],
    )
    frame = merge([(plan, factories.measured(plan, lambda job: 0.01 + job.slot / 1000))])
    found = compare(frame, environments=["tf114", "tf20"], threshold=0.02)
    note = "confounded: container registry.example/nvidia/tensorflow:23.03-tf1-py3 against venv"
    assert all(note in contrast.notes for contrast in found.contrasts)


def test_frameworks_have_no_age() -> None:
    """JAX is neither newer nor older than TensorFlow; its own api is Keras, as installed."""
    jax = factories.environment("jax", tensorflow="", jax="0.10.2", keras="3.15.1")
    plan = factories.plan(
        environments=["tf20", msgspec.structs.replace(jax, native_mode="eager")],
        forms=[("tf.keras", "eager"), ("keras", "eager")],
    )
    frame = merge([(plan, factories.measured(plan, lambda job: 0.01 + job.slot / 1000))])
    assert {"tf20/tf.keras/eager", "jax/keras/eager"} == set(frame["arm"][frame["native"]])
    found = compare(frame, environments=["tf20", "jax"], threshold=0.02)
    assert all(contrast.origin_percent is None for contrast in found.contrasts)
