"""The cache of environments: where the one for a lock and an interpreter is, and if it is whole.

An environment is built under a temporary name beside its own, and renamed when it is finished and
probed. So a folder with the right name is whole, whatever interrupted its build.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from uuid import uuid4

import filelock
import msgspec

from orchestrator.environments.durable import give_name
from orchestrator.errors import InputError
from orchestrator.model import codec
from orchestrator.model.names import Variant
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from orchestrator.environments.interpreters import Interpreter
    from orchestrator.environments.locks import Lock
    from orchestrator.model.matrix import Row

MANIFEST_SCHEMA: Final = "stackrace.environment/1"
# Raise it when environments are made in another way: cached ones are then made again.
FORMAT = 1
CUDA = "cuda"  # the folder of what is compiled for GPUs, by environment
_DIGITS = 12
_WAIT_S = 0.5

# Open as long as this process lives: the kernel then lets go of their locks.
_uses: list[int] = []  # file descriptors


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a finished environment about itself."""

    schema: Literal["stackrace.environment/1"] = MANIFEST_SCHEMA
    title: str
    python: str
    build: str
    variant: Variant
    lock_digest: str
    packages: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Slot:
    """The place of one environment in the cache."""

    name: str
    environments: Path
    logs: Path

    @property
    def folder(self) -> Path:
        """The finished environment, when there is one."""
        return self.environments / self.name

    @property
    def log(self) -> Path:
        """What the last build printed."""
        return self.logs / f"{self.name}.log"

    def manifest(self) -> Manifest | None:
        """The finished environment's manifest; None when it must be made (again).

        Nothing is started: the manifest is read, and its interpreter must still be there.
        """
        with suppress(OSError):  # a cache that this user may not look into
            if (self.folder / "bin" / "python").exists():
                return self.made()
        return None

    def made(self) -> Manifest | None:
        """The manifest of what was finished here once, whether it still works or not."""
        path = _manifest_path(self.folder)
        try:
            return codec.decode(path.read_bytes(), Manifest, source=path, schema=MANIFEST_SCHEMA)
        except (OSError, InputError):
            return None

    @contextmanager
    def claimed(
        self, *, waiting: Callable[[], None], stopping: Callable[[], bool]
    ) -> Iterator[None]:
        """Hold the slot against other commands, and clear away what dead ones left.

        `waiting` is called once when another command holds it; the wait ends with InterruptedError
        as soon as `stopping()`.
        """
        with storage_errors(self.environments, fix=NAME_CACHE):
            self.environments.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(self.environments / f".{self.name}.lock")
            _acquire(lock, waiting=waiting, stopping=stopping)
        try:
            for stale in self.environments.glob(f".{self.name}.*.tmp"):
                shutil.rmtree(stale, ignore_errors=True)
            yield
        finally:
            lock.release()

    def use(self) -> None:
        """Say, until this process ends, that it uses the environment: nobody removes it then."""
        with suppress(OSError):  # a cache that cannot be written is not cleaned either
            self.environments.mkdir(parents=True, exist_ok=True)
            # Not closed: the kernel lets go of it when the process ends, however it ends.
            mark = os.open(self.use_mark, os.O_CREAT | os.O_WRONLY, 0o644)
            _uses.append(mark)
            fcntl.flock(mark, fcntl.LOCK_SH)
            os.utime(self.use_mark)

    @property
    def use_mark(self) -> Path:
        """Locked by those that use the environment; its time is that of the last use."""
        return self.environments / f".{self.name}.use"

    @contextmanager
    def unused(self) -> Iterator[bool]:
        """Hold the environment against builds and uses; false when somebody is at either."""
        lock = filelock.FileLock(self.environments / f".{self.name}.lock")
        with ExitStack() as stack:
            try:
                stack.enter_context(lock.acquire(timeout=0))
                mark = stack.enter_context(self.use_mark.open("ab"))
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (filelock.Timeout, BlockingIOError):
                yield False
            else:
                yield True

    @contextmanager
    def building(self) -> Iterator[Path]:
        """A temporary folder, gone afterwards unless `finish` was called with it."""
        temporary = self.environments / f".{self.name}.{uuid4().hex}.tmp"
        try:
            with storage_errors(self.environments, fix=NAME_CACHE):
                yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def finish(self, temporary: Path, manifest: Manifest) -> None:
        """Give a probed environment its name; a broken one that has it is removed."""
        _manifest_path(temporary).write_bytes(codec.encode(manifest))
        shutil.rmtree(self.folder, ignore_errors=True)
        give_name(temporary, self.folder)


def slot(row: Row, variant: Variant, *, lock: Lock, interpreter: Interpreter, cache: Path) -> Slot:
    """Where the environment of a row belongs: lock, interpreter and format make the name."""
    parts = [lock.text, interpreter.version, interpreter.build, FORMAT]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
    return Slot(
        name=f"{row.lock_name}-{variant}-{digest}",
        environments=cache / "environments",
        logs=cache / "logs",
    )


def sweep(environments: Path) -> None:
    """Clear away what builds left whose commands are dead: their slots' locks can be had."""
    for stale in environments.glob(".*.tmp"):
        name = stale.name[1:].removesuffix(".tmp").rpartition(".")[0]
        lock = filelock.FileLock(environments / f".{name}.lock")
        with suppress(filelock.Timeout, OSError), lock.acquire(timeout=0):
            shutil.rmtree(stale, ignore_errors=True)


def _manifest_path(folder: Path) -> Path:
    return folder / "stackrace.json"


def _acquire(
    lock: filelock.BaseFileLock, *, waiting: Callable[[], None], stopping: Callable[[], bool]
) -> None:
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        waiting()
    while not lock.is_locked:
        if stopping():
            raise InterruptedError("stackrace is being stopped")
        try:
            lock.acquire(timeout=_WAIT_S)
        except filelock.Timeout:
            continue
