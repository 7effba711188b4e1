"""`stackrace run`: from a configuration to records, and to the report on them."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import TYPE_CHECKING

import msgspec

from orchestrator import (
    config,
    containers,
    grid,
    guest,
    host,
    kernel,
    log,
    matrix,
    pairs,
    plan,
    precision,
    workload,
)
from orchestrator.environments import interpreters, locks
from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.model import attempts, phrases
from orchestrator.pipeline import devices, machines, preparing, rounds
from orchestrator.pipeline.measuring import Hints, measure
from orchestrator.report import goals, words
from orchestrator.store import RunFolder, storage_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from orchestrator.environments.options import Wanted
    from orchestrator.model.execution import Environment
    from orchestrator.model.grid import Grid, Preset, Selection
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Backend, Device
    from orchestrator.model.plan import Plan
    from orchestrator.model.workload import Workload

__all__ = ["Hints", "lock", "race", "resume"]


def race(settings: config.Config, hints: Hints) -> int:
    """Prepare, plan, measure, report. Returns the exit code."""
    host.check_cpu()
    _check_writable(settings.results)
    every = grid.load(settings.presets)
    preset = grid.preset(every, settings.preset)
    workloads = workload.read(settings.workloads, without=settings.results)
    zipapp = guest.build(settings.cache / "guest")
    entered = preparing.wanted(settings, settings.environments, zipapp)
    _check_pin(settings.pin, {item.backend for item in entered})
    rows = [item.row for item in entered]
    chosen = grid.fitted(preset, rows)
    choice = devices.choose(entered, settings)
    selection = _select(every, chosen, rows, settings, devices=choice.devices, workloads=workloads)
    reference = plan.check_reference(rows, selection, settings.reference)
    selection, expected = _with_goal(every, selection, rows, settings)
    _warn_of_pythons(entered)
    machines.warn(
        rounds=expected,
        threshold=settings.threshold,
        goal=settings.goal,
        devices=choice.devices,
        uuids=choice.uuids,
        pin=settings.pin,
        selftest=settings.selftest,
    )
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
        workloads=[item.planned for item in workloads],
        profile=settings.profile,
        pin=settings.pin,
        selftest=settings.selftest,
        goal=settings.goal,
    )
    with devices.held(choice.uuids, settings):
        folder = RunFolder.create(settings.results, planned, workloads)
        return measure(folder, planned, prepared, hints, preparing_s=preparing_s)


def resume(path: Path, settings: config.Config, hints: Hints) -> int:
    """Measure what a run still lacks, by its own plan, and report. Returns the exit code."""
    host.check_cpu()
    folder = RunFolder.open(path)
    planned = folder.plan()
    _check_pin(planned.pin, {item.backend for item in planned.environments})
    settings = msgspec.structs.replace(settings, pin=planned.pin)
    zipapp = guest.build(settings.cache / "guest")
    if zipapp.digest != planned.guest_digest:
        raise UsageError(
            f"{path} was measured with another workload code "
            f"({planned.guest_digest[:12]}, here {zipapp.digest[:12]}).",
            why="stackrace was updated meanwhile; results of changed code are never compared.",
            fix="Finish it with the stackrace that started it, or start a new run.",
        )
    _check_workloads(folder, planned)
    records = attempts.by_key(folder.records())
    if not rounds.unfinished(planned, records):
        jobs = phrases.count(len(planned.jobs) + len(planned.profiles), "job")
        log.talk(f"Nothing is missing in {path}: it has {jobs}, and the records of all.")
        return measure(folder, planned, {}, hints, preparing_s=0.0)
    log.talk(rounds.progress(planned, records))
    machines.warn(
        rounds=rounds.expected(planned, records),
        threshold=planned.threshold,
        goal=planned.goal,
        devices=tuple({case.device: None for case in planned.cases}),
        uuids=planned.gpus,
        pin=planned.pin,
        selftest=planned.selftest,
    )
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
        return measure(folder, planned, prepared, hints, preparing_s=preparing_s)


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


def _select(
    every: Grid,
    preset: Preset,
    rows: Sequence[Row],
    settings: config.Config,
    *,
    devices: Sequence[Device],
    workloads: Sequence[Workload],
) -> Selection:
    """What the settings ask for of a preset, in the forms that one of these rows has."""
    return grid.select(
        every,
        preset,
        case_globs=settings.cases,
        arm_globs=settings.arms,
        rounds=settings.rounds,
        devices=devices,
        existing=[form for form in grid.FORMS if any(row.has(*form) for row in rows)],
        workloads=workloads,
        same_weights=settings.same_weights,
    )


def _with_goal(
    every: Grid, selection: Selection, rows: Sequence[Row], settings: config.Config
) -> tuple[Selection, int]:
    """Say what is going to happen; return what is planned first, and how many rounds to expect."""
    once = dataclasses.replace(selection, rounds=1)
    round_s = grid.estimate_s(every, once, environments=len(rows), limits=settings.limits)
    if settings.goal is not None:
        pilot = precision.pilot(settings.goal, round_s)
        selection = dataclasses.replace(selection, rounds=pilot)
    _announce(every, selection, rows, settings, round_s=round_s)
    if settings.goal is None:
        return selection, selection.rounds
    return selection, precision.expected(settings.goal, round_s)


def _announce(
    every: Grid,
    selection: Selection,
    rows: Sequence[Row],
    settings: config.Config,
    *,
    round_s: float,
) -> None:
    """Say what is going to happen, and how long it may take."""
    estimate = round_s * selection.rounds
    grid.check_size(selection.jobs(len(rows)), estimate)
    # How fast a user's own model is, nobody knows: iterations are cut to fit the limit of a job.
    about = "up to about" if settings.workloads else "about"
    profiles = len(selection.cases) * selection.arms(len(rows)) if settings.profile else 0
    then = f", then {phrases.count(profiles, 'profile')}" if profiles else ""
    log.talk(
        f"{', '.join(row.identifier for row in rows)}: "
        f"{phrases.count(selection.jobs(len(rows)), 'job')} in "
        f"{phrases.count(selection.rounds, 'interleaved round')}, {about} "
        f"{words.roughly(estimate)} of measuring{then}."
    )
    if settings.goal is not None:
        log.talk(goals.before(settings.goal, most=precision.most(settings.goal)))
        small = "" if settings.workloads else goals.too_small(settings.goal, round_s)
        if small:
            log.warn(small)
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


def _check_pin(pin: Sequence[int], backends: Collection[Backend]) -> None:
    """UsageError where workers cannot be bound to these cores."""
    if not pin:
        return
    kernel.check(pin)
    if "container" in backends and (away := containers.elsewhere()):
        raise UsageError(
            f"--pin names cores of this machine, and Docker Engine at {away} is on another.",
            fix="Name cores of that one with --cpus.",
        )


def _check_workloads(folder: RunFolder, planned: Plan) -> None:
    """UsageError when the copy of a user's own model is no longer what was measured so far."""
    for item in planned.workloads:
        path = folder.workload_path(item.name)
        if workload.digest(workload.files_below(path)) != item.digest:
            raise UsageError(
                f"{path} is no longer the workload that this run was started with.",
                why="It was edited, or wrote into its own folder; results of changed code are "
                "never compared.",
                fix="Undo that, or start a new run. What a workload writes belongs elsewhere, such "
                "as the current folder, which every job has to itself.",
            )


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
