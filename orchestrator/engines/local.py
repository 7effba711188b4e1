"""The local engine: one fresh process a job, one at a time, on this machine."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrator.model.request import Expected, Request
from orchestrator.store import storage_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.model.cell import Case
    from orchestrator.model.execution import Environment, Execution
    from orchestrator.model.plan import Job, Plan
    from orchestrator.store import RunFolder


FACTS = {"name": "local"}


def execute(
    job: Job,
    case: Case,
    *,
    plan: Plan,
    attempt: int,
    folder: RunFolder,
    environments: Mapping[str, Environment],
) -> Execution:
    """Run one job's process to its end, in a work folder that is removed afterwards."""
    # Absolute: the worker runs in its own folder.
    work = folder.work_path(job.key, attempt).absolute()
    with storage_errors(work):
        shutil.rmtree(work, ignore_errors=True)  # what a killed command left
        work.mkdir(parents=True)
    try:
        return environments[job.arm.environment].run(
            request(job, case, plan, phase_path=str(work / "phases")),
            work=work,
            log=folder.log_path(job.key, attempt).absolute(),
            limits=plan.limits,
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):
            work.parent.rmdir()


def request(job: Job, case: Case, plan: Plan, *, phase_path: str) -> Request:
    """What the guest is told."""
    planned = plan.environment(job.arm.environment)
    return Request(
        action="measure",
        environment=job.arm.environment,
        expected=Expected(tensorflow=planned.tensorflow, keras=planned.keras),
        api=job.arm.api,
        mode=job.arm.mode,
        model=case.model,
        data=case.data,
        batch_shape=case.batch_shape,
        batches=case.batches,
        input=case.input,
        method=case.method,
        device=case.device,
        knobs=case.knobs,
        parameters=case.parameters,
        iterations=case.iterations,
        warmup=case.warmup,
        budget_s=plan.limits.job_s,
        phase_path=phase_path,
    )
