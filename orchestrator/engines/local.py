"""The local engine: one fresh process a job, one at a time, on this machine."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from orchestrator import gpus
from orchestrator.model.execution import silent
from orchestrator.model.request import Expected, Request
from orchestrator.store import DISK_FULL, full_disk, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.model.cell import Case
    from orchestrator.model.execution import Beat, Environment, Execution
    from orchestrator.model.plan import Job, Plan
    from orchestrator.store import RunFolder

FACTS = {"name": "local"}
ROOM_BYTES = 1_000_000  # less than this is not enough for a request, a log and a result
ROOM_FILES = 10  # nor are fewer free inodes than this
SAY_S = 60.0


class Volume(Protocol):
    """A file system, as statvfs shows it."""

    @property
    def f_files(self) -> int:
        """Inodes that there can be."""

    @property
    def f_favail(self) -> int:
        """Those that this user can still have."""

    @property
    def f_bavail(self) -> int:
        """Blocks that this user can still have."""

    @property
    def f_frsize(self) -> int:
        """Bytes of one block."""


def room(path: Path, *, statvfs: Callable[[Path], Volume] = os.statvfs) -> int:
    """Bytes that can still be written; none where the file system takes no more files."""
    found = statvfs(path)
    # File systems that make inodes as they need them, such as btrfs, say that they have none.
    if found.f_files and found.f_favail < ROOM_FILES:
        return 0
    return found.f_bavail * found.f_frsize


def execute(
    job: Job,
    case: Case,
    *,
    plan: Plan,
    attempt: int,
    folder: RunFolder,
    environments: Mapping[str, Environment],
    say: Callable[[str], None] = lambda _: None,
    free_bytes: Callable[[Path], int] = room,
    nvml: gpus.Nvml | None = None,
) -> Execution:
    """Run one job's process to its end, in a work folder that is removed afterwards.

    `say` is told, at most once a minute, how far a first call is that compiles for a GPU.
    Raises StorageError when the disk was too full for what it had to write, and
    EnvironmentFailedError when the environment, or a GPU of the run, is no longer there.
    """
    # Absolute: the worker runs in its own folder.
    work = folder.work_path(job.key, attempt).absolute()
    trace = work / "trace"
    with storage_errors(work):
        shutil.rmtree(work, ignore_errors=True)  # what a killed command left
        (trace if job.is_profile else work).mkdir(parents=True)

    def run() -> Execution:
        limits = plan.limits_of(job.arm.environment, case.device, profile=job.is_profile)
        return environments[job.arm.environment].run(
            request(
                job,
                case,
                plan,
                phase_path=str(work / "phases"),
                workload=_workload(job, plan, folder),
                trace_folder=str(trace) if job.is_profile else "",
            ),
            work=work,
            log=folder.log_path(job.key, attempt).absolute(),
            limits=limits,
            beat=silent
            if limits.first_call_s == plan.limits.first_call_s
            else compiling(job.arm.name, limits.first_call_s, say),
        )

    try:
        execution = watched(run, plan.gpus, nvml) if case.device == "gpu" else run()
        # Without room for its result a worker ends like one that crashed, which it did not.
        if execution.result is None and free_bytes(work) < ROOM_BYTES:
            raise full_disk(work)
        if job.is_profile:
            _keep_trace(trace, folder.trace_path(job.key, attempt))
    except OSError as error:
        if error.errno in DISK_FULL:
            raise full_disk(work) from error
        raise
    else:
        return execution
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _workload(job: Job, plan: Plan, folder: RunFolder) -> str:
    """Where the copy of the user's own model is that this job runs; empty for one of the guest."""
    own = plan.workload_of(job.arm)
    return str(folder.workload_path(own.name).absolute() / own.entry) if own else ""


def _keep_trace(trace: Path, place: Path) -> None:
    """Move what the framework's profiler left out of the work folder, if it left anything."""
    if not any(trace.iterdir()):
        return
    with storage_errors(place):
        shutil.rmtree(place, ignore_errors=True)  # of an attempt that a killed command made
        place.parent.mkdir(exist_ok=True)
        trace.rename(place)


def watched(
    run: Callable[[], Execution], uuids: tuple[str, ...], nvml: gpus.Nvml | None
) -> Execution:
    """Run a job on GPUs, and add what was seen of them meanwhile."""
    if not uuids:  # nobody said which: an interpreter of the user's chose for itself
        return run()
    with gpus.Watcher(uuids, nvml=nvml) as watcher:
        execution = run()
    seen = tuple(
        {
            "uuid": uuid,
            "before": msgspec.to_builtins(watcher.before[uuid]),
            "after": msgspec.to_builtins(watcher.after[uuid]),
            "throttle": list(watcher.throttle[uuid]),
        }
        for uuid in uuids
    )
    lost = f"The GPU {watcher.lost} stopped answering while the job ran." if watcher.lost else None
    return replace(
        execution,
        gpus=seen,
        gpu_bytes=watcher.gpu_bytes if execution.gpu_bytes is None else execution.gpu_bytes,
        lost=execution.lost or lost,
    )


def compiling(arm: str, limit_s: float, say: Callable[[str], None]) -> Beat:
    """A beat that says, at most once a minute, how long the first call has taken."""
    said = 0.0

    def beat(seconds: float) -> None:
        nonlocal said
        if seconds - said >= SAY_S:
            said = seconds
            say(
                f"{arm}: compiling for this GPU, {seconds / 60:.0f} min so far, limit "
                f"{limit_s / 60:.0f} min."
            )

    return beat


def request(
    job: Job,
    case: Case,
    plan: Plan,
    *,
    phase_path: str,
    workload: str = "",
    trace_folder: str = "",
) -> Request:
    """What the guest is told; paths are those of this machine."""
    planned = plan.environment(job.arm.environment)
    return Request(
        action="profile" if job.is_profile else "measure",
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
        workload=workload,
        trace_folder=trace_folder,
        parameters=case.parameters,
        iterations=case.iterations,
        warmup=case.warmup,
        budget_s=plan.limits.job_s,
        phase_path=phase_path,
    )
