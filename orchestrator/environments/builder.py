"""Makes one environment: venv, packages, probe, and only then its name in the cache."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.environments.cache import Manifest
from orchestrator.environments.probe import probe
from orchestrator.environments.uv import uv
from orchestrator.environments.venv import VenvEnvironment
from orchestrator.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from orchestrator.environments.cache import Slot
    from orchestrator.environments.interpreters import Interpreter
    from orchestrator.environments.locks import Lock
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Variant

# For the downloads themselves, and so that the machine still works afterwards.
MARGIN_MB = 500
_MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Job:
    """One environment to find or to make, and all that decides how."""

    row: Row
    variant: Variant
    lock: Lock
    interpreter: Interpreter
    slot: Slot

    @property
    def name(self) -> str:
        """`tf114-cpu`."""
        return f"{self.row.lock_name}-{self.variant}"


def obtain(
    job: Job, *, guest: Path, say: Callable[[str], None], stopping: Callable[[], bool]
) -> None:
    """Make the environment, unless it is there, or another command makes it meanwhile."""

    def waiting() -> None:
        say(f"{job.name}: another command is preparing it, waiting.")

    if job.slot.manifest() is not None:
        return
    with job.slot.claimed(waiting=waiting, stopping=stopping):
        if job.slot.manifest() is None:
            say(f"{job.name}: preparing {job.row.title}, Python {job.interpreter.version}.")
            start = time.monotonic()
            _build(job, guest)
            say(f"{job.name}: ready after {time.monotonic() - start:.0f} s.")


def check_space(jobs: Iterable[Job], *, cache: Path, free_bytes: int) -> None:
    """Refuse to begin what cannot be finished: StorageError when the disk may not be enough.

    At worst everything is downloaded into uv's cache on the same disk, and copied from there.
    """
    needed = sum(2 * job.row.size_mb[job.variant] + MARGIN_MB for job in jobs)
    if free_bytes < needed * _MB:
        raise StorageError(
            f"The disk of {cache} has {free_bytes / _MB:.0f} MB free; preparing the environments "
            f"may take {needed} MB.",
            why="Each is unpacked in uv's cache, and copied from there where links are impossible.",
            fix="Free some space, or name a folder on another disk with STACKRACE_CACHE and "
            "UV_CACHE_DIR.",
        )


def _build(job: Job, guest: Path) -> None:
    log = job.slot.log
    with job.slot.building() as folder:
        log.unlink(missing_ok=True)
        where = folder.parent
        # The lock constrains the tools of source builds too (setuptools, wheel are in it).
        uv(
            ["venv", "--quiet", "--relocatable", "--python", job.interpreter.path, folder],
            log=log,
            cwd=where,
        )
        uv(
            [
                *("pip", "sync", "--require-hashes", "--compile-bytecode"),
                # Symbolic links would break when uv's cache is cleaned; uv copies where it must.
                *("--link-mode", "hardlink"),
                # Hashes make it safe to take a file from whichever index has it.
                *("--index-strategy", "unsafe-best-match"),
                *("--build-constraints", job.lock.path),
                *("--python", folder / "bin" / "python", job.lock.path),
            ],
            log=log,
            cwd=where,
        )
        link_libraries(job.row, folder)
        environment = VenvEnvironment(
            identifier=job.row.identifier,
            lock_digest=job.lock.digest,
            python=job.interpreter.version,
            folder=folder,
            guest=guest,
            variables=job.row.variables,
        )
        probe(environment, job.row, log=log)
        job.slot.finish(
            folder,
            Manifest(
                title=job.row.title,
                python=job.interpreter.version,
                build=job.interpreter.build,
                variant=job.variant,
                lock_digest=job.lock.digest,
                packages=job.lock.pins,
            ),
        )


def link_libraries(row: Row, folder: Path) -> None:
    """Give CUDA's libraries the names that an old TensorFlow looks for, where the wheels differ.

    Nothing is linked where the wheels did not come with the lock: on the CPU.
    """
    for wanted, there in (row.cuda.links if row.cuda else {}).items():
        for library in folder.glob(f"lib/python*/site-packages/nvidia/*/lib/{there}"):
            link = library.with_name(wanted)
            if not link.exists():
                link.symlink_to(there)
