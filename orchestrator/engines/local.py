"""The local engine: one fresh process a job, one at a time, on this machine."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrator.model.request import Expected, Request
from orchestrator.store import DISK_FULL, full_disk, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.model.cell import Case
    from orchestrator.model.execution import Environment, Execution
    from orchestrator.model.plan import Job, Plan
    from orchestrator.store import RunFolder


FACTS = {"name": "local"}
ROOM_BYTES = 1_000_000  # less than this is not enough for a request, a log and a result


def execute(
    job: Job,
    case: Case,
    *,
    plan: Plan,
    attempt: int,
    folder: RunFolder,
    environments: Mapping[str, Environment],
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
) -> Execution:
    """Run one job's process to its end, in a work folder that is removed afterwards.

    Raises StorageError when the disk was too full for what it had to write.
    """
    # Absolute: the worker runs in its own folder.
    work = folder.work_path(job.key, attempt).absolute()
    with storage_errors(work):
        shutil.rmtree(work, ignore_errors=True)  # what a killed command left
        work.mkdir(parents=True)
    try:
        execution = environments[job.arm.environment].run(
            request(job, case, plan, phase_path=str(work / "phases")),
            work=work,
            log=folder.log_path(job.key, attempt).absolute(),
            limits=plan.limits,
        )
        # Without room for its result a worker ends like one that crashed, which it did not.
        if execution.result is None and free_bytes(work) < ROOM_BYTES:
            raise full_disk(work)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise full_disk(work) from error
        raise
    else:
        return execution
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
        expected=Expected(
            tensorflow=planned.tensorflow,
            jax=planned.jax,
            torch=planned.torch,
            keras=planned.keras,
        ),
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
