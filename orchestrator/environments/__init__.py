"""Isolated environments: found or made, probed, and ready to run workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator import containers
from orchestrator.environments import cache, existing, images, venvs
from orchestrator.environments.existing import differences
from orchestrator.environments.venv import VenvEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from orchestrator.environments.container import ContainerEnvironment
    from orchestrator.environments.options import Options, Wanted
    from orchestrator.model.execution import Environment
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Backend, Variant

__all__ = ["describe", "differences", "prepare"]


def prepare(
    wanted: Sequence[Wanted],
    *,
    variant: Variant,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
) -> dict[str, Environment]:
    """Find or make every wanted environment, and return them by identifier, in order.

    `say` is told what takes time; it is called from several threads.
    """
    made: list[Environment] = [
        *_venvs(wanted, variant=variant, guest=guest, options=options, say=say),
        *_containers(wanted, variant=variant, guest=guest, options=options, say=say),
        *(
            existing.environment(
                item.row,
                item.source,
                guest=guest,
                gpus=options.gpus,
                cuda_caches=options.cache / cache.CUDA,
                cores=options.cores,
            )
            for item in wanted
            if item.backend == "existing"
        ),
    ]
    found = {environment.identifier: environment for environment in made}
    return {item.row.identifier: found[item.row.identifier] for item in wanted}


def describe(
    place: str,
    backend: Backend,
    *,
    identifier: str,
    guest: Path,
    options: Options,
    known: Iterable[Row],
    say: Callable[[str], None],
) -> Row:
    """What is in somebody's interpreter or image, as a row.

    `known`: rows whose knowledge of what is impossible holds for the same versions.
    """
    if backend == "existing":
        return existing.describe(
            place,
            identifier=identifier,
            guest=guest,
            log=options.cache / "logs" / f"{identifier}-existing.log",
            known=known,
        )
    return images.describe(
        place,
        identifier=identifier,
        engine=containers.connect(),
        guest=guest,
        options=options,
        known=known,
        say=say,
    )


def _venvs(
    wanted: Sequence[Wanted],
    *,
    variant: Variant,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
) -> list[VenvEnvironment]:
    rows = [item.row for item in wanted if item.backend == "venv"]
    jobs = venvs.obtain(rows, variant=variant, guest=guest, options=options, say=say)
    return [
        VenvEnvironment(
            identifier=identifier,
            lock_digest=job.lock.digest,
            python=job.interpreter.version,
            folder=job.slot.folder,
            guest=guest,
            variables=job.row.variables,
            gpus=options.gpus,
            cuda_cache=options.cache / cache.CUDA / job.slot.name,
            cores=options.cores,
        )
        for identifier, job in jobs.items()
    ]


def _containers(
    wanted: Sequence[Wanted],
    *,
    variant: Variant,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
) -> list[ContainerEnvironment]:
    items = [item for item in wanted if item.backend == "container"]
    if not items:
        return []
    engine = containers.connect()  # before anything is downloaded in vain
    rows = [item.row for item in items if not item.source]
    jobs = venvs.obtain(rows, variant=variant, guest=guest, options=options, say=say)
    made = images.prepare(jobs, items, engine=engine, guest=guest, options=options, say=say)
    return list(made.values())
