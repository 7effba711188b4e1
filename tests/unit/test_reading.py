"""What recorded runs say, from their folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from orchestrator.errors import UsageError
from orchestrator.model.result import Outputs
from orchestrator.pipeline import reading
from orchestrator.store import RunFolder
from tests import factories


def test_what_is_not_shown_is_not_advised_for_that(tmp_path: Path) -> None:
    """A file that computes something else stays out of the advice, whatever kinds are asked for."""
    case = factories.case(knobs={"weights": "same"})
    plan = factories.plan(cases=[case], workloads=["old", "new"])
    folder = RunFolder.create(tmp_path, plan)
    for job in plan.jobs:
        new = job.arm.workload == "new"
        result = factories.result(
            [0.005 if new else 0.01], outputs_before=Outputs(values=(float(new),))
        )
        folder.write(factories.record(plan, job, result=result))
    found = reading.compare((folder.path,), kinds=["version"])
    assert {"version"} == {item.kind for item in found.comparison.contrasts}
    assert not found.findings.advice.any
    (choice,) = found.findings.advice.choices
    assert "compute something else" in (choice.reason or "")


def test_a_copy_without_its_profiles_hides_none(tmp_path: Path) -> None:
    """What one copy of a run lacks, the other has: nothing is missing, and no exit code says so."""
    plan = factories.with_profiles(factories.plan(rounds=1))
    timed = factories.measured(plan, lambda _: 0.01)
    profiled = [factories.record(plan, job) for job in plan.profiles]
    folders = [RunFolder.create(tmp_path / name, plan) for name in ("whole", "part")]
    for folder, records in zip(folders, ([*timed, *profiled], timed), strict=True):
        for record in records:
            folder.write(record)
    found = reading.compare([folder.path for folder in folders])
    assert [factories.PROFILE] * len(plan.profiles) == [
        item.profile for item in found.findings.profiles
    ]
    assert 0 == found.exit_code


def test_a_report_takes_the_place_of_no_other(tmp_path: Path) -> None:
    """Of several runs it belongs in none of their folders, and another run has its own."""
    plans = [factories.plan(run_id=name, rounds=5) for name in ("one", "two")]
    one, two = folders = [RunFolder.create(tmp_path, plan) for plan in plans]
    for folder, plan in zip(folders, plans, strict=True):
        for record in factories.measured(plan, lambda _: 0.01):
            folder.write(record)
    both = [folder.path for folder in folders]
    with pytest.raises(UsageError, match="A report on 2 runs belongs in none of their folders"):
        reading.report(both, formats=["md"], output=None)
    for target in both:
        with pytest.raises(UsageError, match="is the folder of a run"):
            reading.report(both, formats=["md"], output=target)
    with pytest.raises(UsageError, match="is the folder of a run"):
        reading.report([one.path], formats=["md"], output=two.path)
    found = reading.report(both, formats=["md"], output=tmp_path / "both")
    assert {tmp_path / "both" / name for name in ("report.md", "summary.json")} == set(found.files)
    for output in (None, one.path):
        reading.report([one.path], formats=["md"], output=output)
    assert not (two.path / "report.md").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_stdout_that_takes_nothing_costs_no_report(tmp_path: Path) -> None:
    """The files are there, and the message is of the output, not of the disk of the run."""
    plan = factories.plan(rounds=5)
    folder = RunFolder.create(tmp_path, plan)
    for record in factories.measured(plan, lambda _: 0.01):
        folder.write(record)
    code = (
        "import sys\nfrom pathlib import Path\nfrom orchestrator.pipeline import reading\n"
        "from orchestrator.store import RunFolder\nfrom orchestrator.errors import StackraceError\n"
        "try:\n"
        f"    reading.conclude(RunFolder.open(Path({str(folder.path)!r})), preparing_s=0.0, "
        "more_rounds=None)\n"
        "except StackraceError as error:\n    sys.exit(error.what)\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
    assert (1, "The output cannot be written: No space left on device.") == (
        done.returncode,
        done.stderr.strip().splitlines()[-1],
    )
    assert (folder.path / "report.md").exists()
    assert (folder.path / "summary.json").exists()


def test_a_report_says_where_workers_were_bound_to(tmp_path: Path) -> None:
    """They had fewer cores than the machine has, and another machine's key."""
    plan = factories.plan(rounds=5)
    for name, pin, told in (
        ("free", (), "2 cores, "),
        ("bound", (0, 1), "2 cores (workers on 0-1)"),
    ):
        pinned = msgspec.structs.replace(plan, pin=pin)
        folder = RunFolder.create(tmp_path / name, pinned)
        for record in factories.measured(pinned, lambda _: 0.01):
            folder.write(record)
        assert told in reading.compare([folder.path]).markdown
