"""What recorded runs say, from their folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.model.result import Outputs, Profile
from orchestrator.pipeline import reading
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path


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
    profile = Profile(
        run_s=1.0, iterations=9, build=0.0, data=0.0, training=99.0, other=1.0, unattributed=0.0
    )
    timed = factories.measured(plan, lambda _: 0.01)
    profiled = [
        factories.record(plan, job, result=factories.result([], profile=profile))
        for job in plan.profiles
    ]
    folders = [RunFolder.create(tmp_path / name, plan) for name in ("whole", "part")]
    for folder, records in zip(folders, ([*timed, *profiled], timed), strict=True):
        for record in records:
            folder.write(record)
    found = reading.compare([folder.path for folder in folders])
    assert [profile] * len(plan.profiles) == [item.profile for item in found.findings.profiles]
    assert 0 == found.exit_code
