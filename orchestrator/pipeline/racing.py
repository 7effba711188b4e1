"""`stackrace run`: from a configuration to records, and to the report on them."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from orchestrator import (
    config,
    containers,
    grid,
    guest,
    host,
    interrupt,
    log,
    matrix,
    pairs,
    plan,
    process,
    record,
    run,
)
from orchestrator.engines import local
from orchestrator.environments import interpreters, locks
from orchestrator.errors import (
    EnvironmentFailedError,
    InterruptedRunError,
    StackraceError,
    UsageError,
)
from orchestrator.model import attempts, phrases
from orchestrator.pipeline import devices, health, preparing, reading
from orchestrator.report import words
from orchestrator.store import RunFolder, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from orchestrator.environments.options import Wanted
    from orchestrator.model.execution import Environment
    from orchestrator.model.grid import Grid, Selection
    from orchestrator.model.matrix import Row
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record


BUSY = 1.7  # load per core above which others are at work as well


@dataclass(frozen=True, kw_only=True)
class Hints:
    """How the user, who came through stackrace or through nox, can go on."""

    more_rounds: Callable[[int], str] | None  # None: a resumed run keeps its plan
    resume: Callable[[Path], str]


def race(settings: config.Config, hints: Hints) -> int:
    """Prepare, plan, measure, report. Returns the exit code."""
    host.check_cpu()
    _check_writable(settings.results)
    every = grid.load(settings.presets)
    preset = grid.preset(every, settings.preset)
    zipapp = guest.build(settings.cache / "guest")
    entered = preparing.wanted(settings, settings.environments, zipapp)
    rows = [item.row for item in entered]
    chosen = grid.fitted(preset, rows)
    choice = devices.choose(entered, settings)
    selection = grid.select(
        every,
        chosen,
        case_globs=settings.cases,
        arm_globs=settings.arms,
        rounds=settings.rounds,
        devices=choice.devices,
        existing=[form for form in grid.FORMS if any(row.has(*form) for row in rows)],
    )
    reference = plan.check_reference(rows, selection.forms, settings.reference)
    _announce(every, selection, rows, settings)
    _warn_of_pythons(entered)
    started = time.monotonic()
    prepared = preparing.build(
        [item for item in entered if not choice.hopeless(item.row.identifier)],
        settings,
        zipapp,
        variant=choice.variant,
        gpus=choice.uuids,
    )
    preparing_s = time.monotonic() - started
    planned = plan.make(
        selection,
        rows,
        [preparing.planned(item, prepared, choice) for item in entered],
        preset=settings.preset,
        threshold=settings.threshold,
        reference=reference,
        limits=settings.limits,
        guest_digest=zipapp.digest,
        seed=settings.seed,
        gpus=choice.uuids,
        against=choice.against,
    )
    with devices.held(choice.uuids, settings):
        folder = RunFolder.create(settings.results, planned)
        return _measure(folder, planned, prepared, hints, preparing_s=preparing_s)


def resume(path: Path, settings: config.Config, hints: Hints) -> int:
    """Measure what a run still lacks, by its own plan, and report. Returns the exit code."""
    host.check_cpu()
    folder = RunFolder.open(path)
    planned = folder.plan()
    zipapp = guest.build(settings.cache / "guest")
    if zipapp.digest != planned.guest_digest:
        raise UsageError(
            f"{path} was measured with another workload code "
            f"({planned.guest_digest[:12]}, here {zipapp.digest[:12]}).",
            why="stackrace was updated meanwhile; results of changed code are never compared.",
            fix="Finish it with the stackrace that started it, or start a new run.",
        )
    lacking = run.missing_blocks(planned, attempts.by_key(folder.records()))
    if not lacking:
        jobs = phrases.count(len(planned.jobs), "job")
        log.talk(f"Nothing is missing in {path}: it has {jobs}, and the records of all.")
        return _measure(folder, planned, {}, hints, preparing_s=0.0)
    started = time.monotonic()
    prepared = preparing.build(
        preparing.again(planned, settings, zipapp),
        settings,
        zipapp,
        variant=planned.environments[0].variant,
        gpus=planned.gpus,
    )
    _check_same_locks(planned, prepared)
    with devices.held(planned.gpus, settings):
        preparing_s = time.monotonic() - started
        return _measure(folder, planned, prepared, hints, preparing_s=preparing_s)


def lock(settings: config.Config) -> None:
    """Make the locks of these rows again, for every variant."""
    interpreters.check_configured(settings.interpreters, versions=matrix.pythons(matrix.load()))
    rows = matrix.select(matrix.load(), settings.environments)

    def interpreter(version: str) -> Path:
        return interpreters.find(
            version,
            configured=settings.interpreters,
            downloads_folder=settings.cache / "interpreters",
        ).path

    locks.compile_locks(rows, interpreter=interpreter, say=log.talk)


def _announce(
    every: Grid, selection: Selection, rows: Sequence[Row], settings: config.Config
) -> None:
    """Say what is going to happen, and how long it may take."""
    estimate = grid.estimate_s(every, selection, environments=len(rows), limits=settings.limits)
    grid.check_size(selection.jobs(len(rows)), estimate)
    log.talk(
        f"{', '.join(row.identifier for row in rows)}: "
        f"{phrases.count(selection.jobs(len(rows)), 'job')} in "
        f"{phrases.count(selection.rounds, 'interleaved round')}, about "
        f"{words.roughly(estimate)} of measuring."
    )
    for size, seconds in grid.too_long(every, selection, settings.limits).items():
        log.warn(
            f"{size} may be too slow on a CPU for {settings.limits.job_s:.0f} s a process; it "
            f"would need something like --max-job-seconds {round(seconds, -1):.0f}."
        )


def _warn_of_pythons(entered: Sequence[Wanted]) -> None:
    """Before anything is built: afterwards nobody builds it again on another Python."""
    given = {item.row.identifier for item in entered if item.source}
    told = pairs.advice([item.row for item in entered], matrix.load(), given=given)
    if told is not None:
        log.warn(told)


def _warn_of_load(loads: Sequence[float], cores: int, when: str) -> None:
    """A busy machine measures its other work too. One worker alone makes a load of `cores`."""
    if loads and median(loads) > BUSY * cores:
        log.warn(
            f"The machine {when} busy: load {median(loads):.1f} on {phrases.count(cores, 'core')}. "
            "Times vary more then, and intervals get wide; measure on a quiet machine."
        )


def _measure(
    folder: RunFolder,
    planned: Plan,
    prepared: Mapping[str, Environment],
    hints: Hints,
    *,
    preparing_s: float,
) -> int:
    machine = health.with_gpus(host.facts(), planned.gpus)
    away = _away(planned)
    loads: list[float] = []

    def measure(job: Job, *, attempt: int) -> Record:
        case = planned.case(job.case)
        if job.unsupported is not None:
            return record.known_beforehand(
                job, case, plan=planned, attempt=attempt, host=machine, at=process.now()
            )
        before = host.load()
        loads.append(before.load_1m)
        execution = local.execute(
            job,
            case,
            plan=planned,
            attempt=attempt,
            folder=folder,
            environments=prepared,
            say=log.talk,
        )
        return record.make(
            job,
            case,
            execution,
            plan=planned,
            attempt=attempt,
            host=machine,
            before=before,
            after=host.load(),
            engine=_facts(planned, job, away),
        )

    if away:
        log.warn(
            f"Docker Engine at {away} is on another machine: what records say of CPU, memory and "
            "load is this machine's, not that one's."
        )
    _warn_of_load([host.load().load_1m], machine.cores, "is")
    with folder.claimed(), _resumable(folder, planned, hints):
        records = attempts.by_key(folder.records())
        jobs = sum(len(block.jobs) for block in run.missing_blocks(planned, records))
        with log.progress("racing", jobs) as progress:
            run.work_through(planned, folder, records, measure, progress)
    _warn_of_load(loads, machine.cores, "was")
    return reading.conclude(folder, preparing_s=preparing_s, more_rounds=hints.more_rounds)


def _facts(planned: Plan, job: Job, away: str) -> dict[str, Any]:
    """Where and how a job is started, as its record keeps it: the machine of `away`, unnamed."""
    there = away and planned.environment(job.arm.environment).backend == "container"
    return {**local.FACTS, "elsewhere": True} if there else dict(local.FACTS)


def _away(planned: Plan) -> str:
    """Where the containers of a run are, when that is another machine; else empty."""
    used = any(item.backend == "container" for item in planned.environments)
    return containers.elsewhere() if used else ""


@contextmanager
def _resumable(folder: RunFolder, planned: Plan, hints: Hints) -> Iterator[None]:
    """Say, when the run is cut, what it has and how to go on; leave that in summary.json too."""
    try:
        yield
    except (interrupt.Stopped, StackraceError) as cut:
        done = len(planned.jobs) - reading.status(folder.path).missing
        what = f"Stopped ({cut})." if isinstance(cut, interrupt.Stopped) else cut.what
        error = InterruptedRunError(
            f"{what} {phrases.count(done, 'job')} of {len(planned.jobs)} are measured and kept.",
            fix=f"Go on with: {hints.resume(folder.path)}",
            exit_code=cut.exit_code,
        )
        with suppress(StackraceError):  # a full disk takes no summary
            reading.summarise(folder, exit_code=cut.exit_code)
        raise error from cut


def _check_same_locks(planned: Plan, prepared: Mapping[str, Environment]) -> None:
    for item in planned.environments:
        found = prepared.get(item.identifier)
        if found is None:
            continue
        if (found.lock_digest, found.python) != (item.lock_digest, item.python):
            raise EnvironmentFailedError(
                f"{item.identifier} is no longer what this run was planned with (lock "
                f"{item.lock_digest[:12]} and Python {item.python}; now {found.lock_digest[:12]} "
                f"and {found.python}).",
                fix="Finish the run with the stackrace that started it, or start a new one.",
            )


def _check_writable(results: Path) -> None:
    """Find out before anything is built, not after minutes."""
    with storage_errors(results):
        results.mkdir(parents=True, exist_ok=True)
        if not os.access(results, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
