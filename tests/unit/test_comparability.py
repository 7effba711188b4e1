"""What may stand in one table with what: every field, its grade, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import merge
from orchestrator.errors import UsageError
from orchestrator.model import codec
from orchestrator.model.record import Load
from orchestrator.model.result import Iterations, Timing
from orchestrator.model.summary import SUMMARY_SCHEMA, Summary
from orchestrator.pipeline import reading
from orchestrator.store import RunFolder
from tests import factories
from tests.judging import pair, verdict

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Host, Record

    Run = tuple[Plan, list[Record]]

CASE = "small-small/numpy/train_on_batch"
GPU = {
    "uuid": "GPU-1",
    "index": 0,
    "name": "NVIDIA H200",
    "memory_bytes": 143_771 * 2**20,
    "power_limit_w": 700.0,
    "driver": "570.86.15",
}
HOST = msgspec.structs.replace(
    factories.HOST, gpus=(GPU,), governor="performance", turbo="on", facts={"threads": {}}
)


def run(run_id: str, *, host: Host = HOST, load: float = 1.0, **facts: Any) -> Run:  # noqa: ANN401
    """A small run on this host, with these facts in its plan."""
    plan = pair(run_id=run_id, **facts)
    before = Load(load_1m=load, available_bytes=1)
    records = [factories.record(plan, job, host=host, before=before) for job in plan.jobs]
    return plan, records


def other_host(**facts: Any) -> Run:  # noqa: ANN401
    """The second run, on a host that differs in these facts."""
    return run("run2", host=msgspec.structs.replace(HOST, **facts))


def other_gpu(**facts: Any) -> Run:  # noqa: ANN401
    """The second run, with a GPU that differs in these facts."""
    return other_host(gpus=({**GPU, **facts},))


def other_case(**facts: Any) -> Run:  # noqa: ANN401
    """The second run, whose case differs in these facts."""
    return run("run2", cases=[factories.case(**facts)])


def other_environment(**facts: Any) -> Run:  # noqa: ANN401
    """The second run, whose tf20 differs in these facts."""
    return run("run2", environments=["tf114", factories.environment("tf20", **facts)])


def other_record(**facts: Any) -> Run:  # noqa: ANN401
    """The second run, whose records differ in these facts."""
    plan, records = run("run2")
    return plan, [msgspec.structs.replace(record, **facts) for record in records]


GRADED = [
    (run("run2", guest_digest="guest-1"), "blocking", "guest_digest"),
    (other_record(guest_digest="guest-1"), "blocking", "guest_digest"),
    (other_case(batch_shape=(16, 140, 30)), "blocking", f"batch_shape of {CASE}"),
    (other_case(batches=16), "blocking", f"batches of {CASE}"),
    (other_case(iterations=100), "blocking", f"iterations of {CASE}"),
    (other_case(warmup=3), "blocking", f"warmup of {CASE}"),
    (other_case(parameters=7), "blocking", f"parameters of {CASE}"),
    (other_environment(keras="2.3.0"), "blocking", "versions of tf20"),
    (other_environment(tensorflow="2.0.1"), "blocking", "versions of tf20"),
    (other_environment(extra=["pandas"]), "blocking", "versions of tf20"),
    (other_environment(python="3.6.9"), "blocking", "versions of tf20"),
    (other_host(machine="m1"), "no_verdict", "machine"),
    (other_host(machine="m1", cpu="Another CPU"), "no_verdict", "CPU"),
    (other_host(machine="m1", cores=4), "no_verdict", "cores"),
    (other_host(machine="m1", memory_bytes=2**34), "no_verdict", "memory"),
    (other_gpu(name="NVIDIA H100"), "no_verdict", "GPU"),
    (other_gpu(name="NVIDIA H200 MIG 3g.71gb"), "no_verdict", "GPU"),
    (other_gpu(memory_bytes=2**36), "no_verdict", "GPU memory"),
    (other_gpu(power_limit_w=350.0), "no_verdict", "GPU power limit"),
    (other_gpu(driver="575.1"), "no_verdict", "GPU driver"),
    (other_host(kernel="6.2"), "warning", "kernel"),
    (other_host(governor="powersave"), "warning", "governor"),
    (other_host(turbo="off"), "warning", "turbo"),
    (other_host(facts={"threads": {"OMP_NUM_THREADS": "1"}}), "warning", "thread variables"),
    (other_host(facts={"threads": {}, "pin": [0]}), "warning", "pinned cores"),
    (run("run2", load=9.0), "warning", "load"),
    (other_environment(python="3.7.17"), "warning", "Python 3.7 of tf20"),
    (other_environment(lock_digest="another"), "warning", "lock of tf20"),
    (other_environment(backend="container"), "warning", "backend of tf20"),
    (other_environment(source="/opt/python"), "warning", "source of tf20"),
    (other_environment(image_digest="sha256:1"), "warning", "image of tf20"),
]


@pytest.mark.parametrize(
    ("other", "grade", "field"), GRADED, ids=[f"{item[2]}-{n}" for n, item in enumerate(GRADED)]
)
def test_every_field_has_its_grade(other: Run, grade: str, field: str) -> None:
    """One field that is changed is one difference, with both values and the runs that have them."""
    (found,) = merge.differences([run("run1"), other])
    assert (grade, field) == (found.grade, found.field)
    *_, last = found.values.values()
    assert (2, ("run2",)) == (len(found.values), last)


@pytest.mark.parametrize(
    "other",
    [
        other_host(node="node1"),
        other_gpu(uuid="GPU-2", index=1),
        run("run2", load=1.5),
        run("run2", seed=8, created="2027-01-01T00:00:00+00:00"),
    ],
    ids=["node", "uuid", "load", "plan"],
)
def test_what_says_nothing_about_times_is_not_told(other: Run) -> None:
    """Twins are one kind of machine, and a moment is none."""
    assert () == merge.differences([run("run1"), other])


def test_another_workload_blocks() -> None:
    """A file that was edited is another one."""
    one, two = (
        msgspec.structs.replace(
            pair(run_id=run_id),
            workloads=(msgspec.structs.replace(factories.workload("mine"), digest=digest),),
        )
        for run_id, digest in (("run1", "old"), ("run2", "new"))
    )
    (found,) = merge.differences([(one, []), (two, [])])
    assert ("blocking", "workload digest of mine") == (found.grade, found.field)


def test_a_refusal_names_every_field_with_both_values() -> None:
    """Not only the first: who mends one must not meet the next."""
    other = run(
        "run2",
        guest_digest="guest-1",
        cases=[factories.case(batches=16, warmup=3)],
    )
    with pytest.raises(UsageError) as caught:
        merge.merge([run("run1"), other])
    for told in (
        "guest_digest is guest-0 in run1, but guest-1 in run2",
        f"batches of {CASE} is 8 in run1, but 16 in run2",
        f"warmup of {CASE} is 10 in run1, but 3 in run2",
    ):
        assert told in caught.value.what


def test_cases_that_changed_alike_are_told_together() -> None:
    """Three are named, the others counted."""
    names = [f"d{number}" for number in range(5)]
    runs = [
        run(run_id, cases=[factories.case(data=name, batches=batches) for name in names])
        for run_id, batches in (("run1", 8), ("run2", 16))
    ]
    (found,) = merge.differences(runs)
    assert found.field.startswith("batches of small-d0/numpy/train_on_batch, small-d1/")
    assert found.field.endswith(" and 2 more")


def test_cases_on_the_gpu_differ_in_no_machine_from_those_beside_them() -> None:
    """Nor from those of a run on the CPU alone; their records tell of GPUs, by another key."""
    plan = pair(cases=[factories.case(device="cpu"), factories.case(device="gpu")])
    hosts = {
        "cpu": msgspec.structs.replace(HOST, gpus=()),
        "gpu": msgspec.structs.replace(HOST, machine="m0+gpu"),
    }
    both = [factories.record(plan, job, host=HOST) for job in plan.jobs]
    both = [msgspec.structs.replace(one, host=hosts[one.case.device]) for one in both]
    assert () == merge.differences([(plan, both), run("run2", host=hosts["cpu"])])
    (found,) = merge.differences([(plan, both), run("run2", host=hosts["gpu"])])
    assert ("no_verdict", "machine") == (found.grade, found.field)


def test_a_run_that_was_resumed_on_another_kernel_says_so() -> None:
    """One run may have had several machines, or one that changed."""
    plan, records = run("run1")
    updated = msgspec.structs.replace(HOST, kernel="6.2")
    records[-1] = msgspec.structs.replace(records[-1], host=updated)
    (found,) = merge.differences([(plan, records)])
    assert {"6.1": ("run1",), "6.2": ("run1",)} == found.values
    records[-1] = msgspec.structs.replace(
        records[-1], host=msgspec.structs.replace(updated, node="node1")
    )
    (found,) = merge.differences([(plan, records)])
    assert {"6.1": ("run1 on node0",), "6.2": ("run1 on node1",)} == found.values


def folder(path: Path, of: Run) -> Path:
    """A run folder with these records."""
    plan, records = of
    made = RunFolder.create(path, plan)
    for record in records:
        made.write(record)
    return made.path


def test_times_of_two_machines_are_not_pooled_and_their_ratios_are(tmp_path: Path) -> None:
    """Tables show no time, summary.json in what the machines differ, a note how pairs were made."""
    other = other_host(machine="m1", cpu="Another CPU", kernel="6.2", node="node1")
    paths = [folder(tmp_path, run("run1")), folder(tmp_path, other)]
    written = reading.report(paths, formats=("md",), output=tmp_path / "both")
    summary = codec.decode(
        (tmp_path / "both" / "summary.json").read_bytes(),
        Summary,
        source="summary.json",
        schema=SUMMARY_SCHEMA,
    )
    assert [("no_verdict", "CPU"), ("warning", "kernel")] == [
        (item.grade, item.field) for item in summary.differences
    ]
    (contrast,) = [item for item in summary.comparison.contrasts if item.kind == "version"]
    assert (12, 1.0, None) == (contrast.pairs, contrast.ratio, contrast.state)
    reason = "no verdict across 2 kinds of machine, whose ratios are 1x, 1x"
    assert reason == contrast.reason
    assert "from 2 kinds of machine, paired within each" in contrast.notes
    for side in summary.comparison.cells:
        assert (None, None, 12, 2) == (side.seconds, side.spread, side.processes, side.machines)
    for cell in summary.quantities.cells:
        assert (12, None, None) == (cell.processes, cell.import_s, cell.steady_s)
    report = (tmp_path / "both" / "report.md").read_text(encoding="utf-8")
    assert "10.0 ms" not in report
    assert "Machine: Another CPU (2 cores) and Test CPU (2 cores)" in report
    for text in (written.text.replace("\n", " "), report):
        assert "CPU is Test CPU in run1, Another CPU in run2" in text
        assert "kernel is 6.1 in run1, 6.2 in run2" in text
        assert "such times are not put together" in text


def test_twins_share_their_times(tmp_path: Path) -> None:
    """Another node of the same kind is the same machine, as far as times go."""
    paths = [folder(tmp_path, run("run1")), folder(tmp_path, other_host(node="node1"))]
    found = reading.compare(paths)
    for side in found.comparison.cells:
        assert 0.01 == pytest.approx(side.seconds)
        assert 1 == side.machines
    assert () == found.findings.differences


def timed(**facts: Any) -> Timing:  # noqa: ANN401
    """How values were taken."""
    defaults = {"source": "call", "clock": "perf_counter", "clock_resolution_s": 1e-9}
    return msgspec.convert({**defaults, "overhead_s": 1e-7, "batch": 1, **facts}, Timing)


def test_batches_are_noted_where_a_side_has_them() -> None:
    """Of both sides, or of one: both are seconds a call."""
    plan = pair()

    def notes(*, both: bool, values: int = 20) -> tuple[str, ...]:
        batches = {
            "timing": timed(source="batch", batch=10),
            "iterations": Iterations(asked=200, done=10 * values),
        }
        records = [
            factories.record(
                plan,
                job,
                result=factories.result(
                    [1e-6] * values,
                    **(batches if both or job.arm.environment == "tf20" else {}),
                ),
            )
            for job in plan.jobs
        ]
        (contrast,) = verdict(plan, records).contrasts
        return contrast.notes

    assert ("timed in batches of 10 calls",) == notes(both=True)
    expected = "timed differently: tf20 in batches of 10 calls, tf114 call by call; "
    assert (expected + "both are seconds a call",) == notes(both=False)
    assert "indicative: 6 values" in notes(both=True, values=6)


def test_processes_that_never_settled_are_counted_and_noted() -> None:
    """More than half of a side, and the ratio is not one of steady states: that is said."""
    plan = pair()

    def side(unsettled: int) -> tuple[int, tuple[str, ...]]:
        records = []
        for job in plan.jobs:
            moving = job.arm.environment == "tf20" and job.round <= unsettled
            values = [0.01] * 90 + [0.02 if moving else 0.01] * 10
            records.append(factories.record(plan, job, values=values))
        (contrast,) = verdict(plan, records).contrasts
        return contrast.candidate.unsettled, contrast.notes

    note = "no steady state in 4 of 6 processes of tf20: the ratio is that of the timed window"
    assert (4, (note,)) == side(4)
    assert (3, ()) == side(3)
