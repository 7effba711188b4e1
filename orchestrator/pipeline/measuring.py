"""From a plan to records: job by job, interruptible, and to the report on them."""

from __future__ import annotations

import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from orchestrator import containers, control, host, interrupt, kernel, log, process, record
from orchestrator.engines import local
from orchestrator.errors import InterruptedRunError, StackraceError
from orchestrator.model import attempts, phrases
from orchestrator.model.names import FAILED_OUTCOMES
from orchestrator.pipeline import health, reading, rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from orchestrator import gpus
    from orchestrator.model.execution import Environment
    from orchestrator.model.names import Device
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Host, Record
    from orchestrator.run import Measure
    from orchestrator.store import RunFolder

BUSY = 1.7  # load per core above which others are at work as well


@dataclass(frozen=True, kw_only=True)
class Hints:
    """How the user, who came through stackrace or through nox, can go on."""

    more_rounds: Callable[[int], str] | None  # None: a resumed run keeps its plan
    resume: Callable[[Path], str]
    as_json: bool = False  # what a selftest shows


def _warn_of_load(loads: Sequence[float], cores: int) -> None:
    """A busy machine measures its other work too. One worker alone makes a load of `cores`, which
    are those of the whole machine, as its load is.

    Who started on a busy one has been told.
    """
    if loads and loads[0] <= BUSY * cores < median(loads):
        log.warn(
            f"The machine became busy: load {median(loads):.1f} on {phrases.count(cores, 'core')}, "
            "which widens the intervals."
        )


def measure(
    folder: RunFolder,
    planned: Plan,
    prepared: Mapping[str, Environment],
    hints: Hints,
    *,
    preparing_s: float,
) -> int:
    """Measure what the run lacks, then report on it. Returns the exit code."""
    hosts = hosts_of(host.facts(pin=planned.pin), planned)
    away = _away(planned)
    loads: list[float] = []

    if away:
        log.warn(
            f"Docker Engine at {away} is on another machine: what records say of CPU, memory and "
            "load is this machine's, not that one's."
        )
    with (
        folder.claimed(),
        control.Clock(cores=planned.pin) as clock,
        kernel.kept_off(planned.pin),
        _resumable(folder, hints),
    ):
        # A command that held the run until now may have added rounds to it meanwhile.
        planned = folder.plan()
        records = attempts.by_key(folder.each_record(planned))
        one = _measurer(folder, planned, prepared, hosts, clock=clock, loads=loads, away=away)
        rounds.work_through(planned, folder, records, one)
    _warn_of_load(loads, host.cores())
    _warn_of_profiles(planned, records)
    return reading.conclude(
        folder,
        preparing_s=preparing_s,
        more_rounds=hints.more_rounds,
        as_json=hints.as_json,
    )


def _measurer(
    folder: RunFolder,
    planned: Plan,
    prepared: Mapping[str, Environment],
    hosts: Mapping[Device, Host],
    *,
    clock: control.Clock,
    loads: list[float],
    away: str,
) -> Measure:
    """What makes the record of a job. `loads` get that before each one that is started."""

    def one(job: Job, *, attempt: int) -> Record:
        case = planned.case(job.case)
        if job.unsupported is not None:
            return record.known_beforehand(
                job, case, plan=planned, attempt=attempt, host=hosts[case.device], at=process.now()
            )
        before = host.load()
        loads.append(before.load_1m)
        before_s = clock.seconds()
        execution = local.execute(
            job,
            case,
            plan=planned,
            attempt=attempt,
            folder=folder,
            environments=prepared,
            say=log.talk,
        )
        after_s = clock.seconds()
        return record.make(
            job,
            case,
            execution,
            plan=planned,
            attempt=attempt,
            host=hosts[case.device],
            before=before,
            after=host.load(),
            engine=_facts(planned, job, away),
            control=control.around(before_s, after_s),
        )

    return one


def hosts_of(machine: Host, planned: Plan, nvml: gpus.Nvml | None = None) -> dict[Device, Host]:
    """The machine as the records of each device keep it: only those of its GPUs tell of them.

    So a case on the CPU is on the same machine in a run that has GPU cases as well.
    """
    return {"cpu": machine, "gpu": health.with_gpus(machine, planned.gpus, nvml)}


def _warn_of_profiles(planned: Plan, records: attempts.ByKey) -> None:
    """Those that failed: no report shows a gap in the timings for them."""
    for job in planned.profiles:
        tried = records.get(job.key, {})
        last = tried[max(tried)] if tried else None
        if last is not None and last.outcome in FAILED_OUTCOMES:
            why = phrases.first_line(last.failure.message) if last.failure else ""
            log.warn(f"The profile of {job.arm.name} at {job.case} {last.outcome}: {why}")


def _facts(planned: Plan, job: Job, away: str) -> dict[str, Any]:
    """Where and how a job is started, as its record keeps it: the machine of `away`, unnamed."""
    there = away and planned.environment(job.arm.environment).backend == "container"
    return {**local.FACTS, "elsewhere": True} if there else dict(local.FACTS)


def _away(planned: Plan) -> str:
    """Where the containers of a run are, when that is another machine; else empty."""
    used = any(item.backend == "container" for item in planned.environments)
    return containers.elsewhere() if used else ""


@contextmanager
def _resumable(folder: RunFolder, hints: Hints) -> Iterator[None]:
    """Say, when the run is cut, what it has and how to go on; leave that in summary.json too."""
    try:
        yield
    except (interrupt.Stopped, StackraceError) as cut:
        found = reading.status(folder.path)
        done = found.planned - found.missing
        what = f"Stopped ({cut})." if isinstance(cut, interrupt.Stopped) else cut.what
        begun = f", and {found.begun} of blocks that are not complete" if found.begun else ""
        steps = [f"Go on with: {hints.resume(folder.path)}"]
        if isinstance(cut, StackraceError) and cut.fix:
            steps.insert(0, cut.fix)
        if done:
            command = shlex.join(["stackrace", "report", str(folder.path)])
            steps.append(f"See what there is so far: {command}")
        error = InterruptedRunError(
            f"{what} {phrases.count(done, 'job')} of {found.planned} are measured and kept{begun}.",
            fix="\n".join(steps),
            exit_code=cut.exit_code,
        )
        with suppress(StackraceError):  # a full disk takes no summary
            reading.summarise(folder, exit_code=cut.exit_code)
        raise error from cut
