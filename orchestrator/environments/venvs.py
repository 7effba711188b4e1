"""Virtual environments for rows: found in the cache or made, several at a time."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from orchestrator.environments import builder, cache, interpreters, locks
from orchestrator.environments.builder import Job
from orchestrator.errors import (
    EnvironmentFailedError,
    StackraceError,
    UsageError,
    worst_exit_code,
)
from orchestrator.process import stop_all
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from orchestrator.environments.interpreters import Interpreter
    from orchestrator.environments.options import Options
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Variant

Failures = dict[str, StackraceError]


def obtain(
    rows: Sequence[Row],
    *,
    variant: Variant,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
) -> dict[str, Job]:
    """Find or make the virtual environments of the rows, in parallel, by identifier.

    `say` is told what takes time; it is called from several threads.
    Raises one error that names every row that failed, with its cause: UsageError when a configured
    interpreter is to blame, else what the causes are (EnvironmentFailedError, StorageError).
    """
    cache.sweep(options.cache / "environments")
    jobs, failures = _jobs(rows, variant, options, say)
    # Copies of a row share one environment, and a cached one costs nothing.
    distinct = {job.slot.name: job for job in jobs.values()}
    for job in distinct.values():
        job.slot.use()
    missing = [job for job in distinct.values() if job.slot.manifest() is None]
    if missing and not failures:
        with storage_errors(options.cache, fix=NAME_CACHE):
            options.cache.mkdir(parents=True, exist_ok=True)
            free = options.free_bytes(options.cache)
        builder.check_space(missing, cache=options.cache, free_bytes=free)
        size_mb = sum(job.row.size_mb[job.variant] for job in missing)
        say(
            f"{', '.join(job.name for job in missing)}: about {size_mb / 1000:.1f} GB in "
            f"{options.cache}, which has {free / 1e9:.0f} GB free."
        )
        failures = _obtain(missing, guest=guest, say=say)
    if failures:
        raise _together(failures)
    return jobs


def _jobs(
    rows: Sequence[Row], variant: Variant, options: Options, say: Callable[[str], None]
) -> tuple[dict[str, Job], Failures]:
    jobs: dict[str, Job] = {}
    failures: Failures = {}
    found: dict[str, Interpreter | StackraceError] = {}
    for row in rows:
        if row.python not in found:
            found[row.python] = _interpreter(row.python, options)
        interpreter = found[row.python]
        if isinstance(interpreter, StackraceError):
            failures[row.identifier] = interpreter
            continue
        try:
            lock = locks.read(
                row,
                variant,
                locks=options.locks,
                own=options.cache / "locks",
                python=interpreter.path,
                say=say,
            )
        except (EnvironmentFailedError, UsageError) as error:
            failures[row.identifier] = error
            continue
        place = cache.slot(row, variant, lock=lock, interpreter=interpreter, cache=options.cache)
        jobs[row.identifier] = Job(
            row=row, variant=variant, lock=lock, interpreter=interpreter, slot=place
        )
    return jobs, failures


def _interpreter(version: str, options: Options) -> Interpreter | StackraceError:
    try:
        return interpreters.find(
            version,
            configured=options.interpreters,
            downloads_folder=options.cache / "interpreters",
        )
    except StackraceError as error:
        return error


def _obtain(jobs: Sequence[Job], *, guest: Path, say: Callable[[str], None]) -> Failures:
    stopping = threading.Event()

    def obtain(job: Job) -> StackraceError | None:
        try:
            builder.obtain(job, guest=guest, say=say, stopping=stopping.is_set)
        except StackraceError as error:
            return error
        return None

    workers = max(2, len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            ended = list(pool.map(obtain, jobs))
        except BaseException:
            # Interrupted: without this the pool would wait for downloads and builds to end.
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            stop_all()
            raise
    return {
        job.row.lock_name: error
        for job, error in zip(jobs, ended, strict=True)
        if error is not None
    }


def _together(failures: Failures) -> StackraceError:
    """One error for all rows; rows that failed for the same reason are named together."""
    worst = worst_exit_code(error.exit_code for error in failures.values())
    kind = next(type(error) for error in failures.values() if error.exit_code == worst)
    causes: dict[tuple[str, str, str], list[str]] = {}
    for name, error in failures.items():
        causes.setdefault((error.what, error.why, error.fix), []).append(name)
    if len(causes) == 1:
        ((what, why, fix), names) = causes.popitem()
        return kind(f"{', '.join(names)}: {what}", why=why, fix=fix)
    return kind(
        f"{len(failures)} environments could not be prepared: {', '.join(failures)}.",
        why="\n".join(
            f"{', '.join(names)}: {what}" + (f"\n{why}" if why else "")
            for (what, why, _), names in causes.items()
        ),
        fix="\n".join(dict.fromkeys(fix for _, _, fix in causes if fix)),
    )
