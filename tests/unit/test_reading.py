"""What recorded runs say, from their folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.model.result import Outputs
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
