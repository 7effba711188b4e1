"""One run on a GPU at a time: a lock between runs, and a look for everybody else."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import psutil

from orchestrator.errors import EnvironmentFailedError
from orchestrator.store import storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from orchestrator.model.gpu import Gpu

# Of the machine and not of a user: TMPDIR may differ between two who share a GPU.
FOLDER = Path("/tmp/stackrace-gpus")  # noqa: S108 - every user opens locks here, nobody reads them
# The driver keeps some memory itself, and so does a desktop.
HELD_BYTES = 2**30
_MIB = 2**20


@contextmanager
def lock(
    uuids: Iterable[str],
    *,
    wait_s: float = 0.0,
    say: Callable[[str], None] = lambda _: None,
    folder: Path = FOLDER,
) -> Iterator[None]:
    """Hold GPUs against every other run on this machine, whoever started it.

    Raises EnvironmentFailedError when one is still held by another run after `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    with storage_errors(folder, fix="Ask its owner for the right to write there."):
        _make(folder)
    with ExitStack() as held:
        for uuid in sorted(uuids):  # always in the same order: two runs never wait for each other
            path = folder / f"{uuid.replace('/', '_')}.lock"
            _take(path, uuid, deadline=deadline, wait_s=wait_s, say=say, held=held)
        yield


def refuse_busy(gpus: Iterable[Gpu]) -> None:
    """EnvironmentFailedError when somebody else computes, or holds memory, on one of the GPUs."""
    for gpu in gpus:
        reason = busy(gpu)
        if reason is not None:
            raise EnvironmentFailedError(
                f"GPU {gpu.index} ({gpu.name}) is not free: {reason}.",
                why="Times on a shared GPU say nothing about the model.",
                fix="Wait until it has ended, end it, or take another GPU with --gpus. Another\n"
                "stackrace run is waited for with --wait-lock SECONDS.",
            )


def busy(gpu: Gpu) -> str | None:
    """Who is on this GPU, in words; None when it is free."""
    if gpu.processes:
        return ", ".join(
            f"process {process.pid} ({Path(process.name).name or process.name}"
            + ("" if process.bytes_used is None else f", {process.bytes_used // _MIB} MiB")
            + ")"
            for process in gpu.processes
        )
    used = gpu.memory_bytes - gpu.free_bytes
    if used > HELD_BYTES:
        return (
            f"{used // _MIB} MiB of its memory are held by a process that cannot be seen from here"
        )
    return None


def _make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with suppress(PermissionError):  # somebody else made it
        folder.chmod(0o1777)  # as /tmp itself: everybody may add locks, nobody remove another's


def _take(
    path: Path,
    uuid: str,
    *,
    deadline: float,
    wait_s: float,
    say: Callable[[str], None],
    held: ExitStack,
) -> None:
    taken = filelock.FileLock(path, mode=0o666)
    try:
        with storage_errors(path, fix="Ask its owner for the right to write there."):
            try:
                taken.acquire(timeout=0)
            except filelock.Timeout:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                say(f"GPU {uuid} is held by {_holder(path)}; waiting up to {left:.0f} s.")
                taken.acquire(timeout=left)
    except filelock.Timeout as error:
        raise EnvironmentFailedError(
            f"Another run holds the GPU {uuid}: {_holder(path)}.",
            why=f"Waited {wait_s:.0f} s for it." if wait_s else "",
            fix="Wait for it with --wait-lock SECONDS, or take another GPU with --gpus.",
        ) from error
    held.callback(taken.release)


def _holder(path: Path) -> str:
    """The process that holds a lock, as the kernel lists it."""
    with suppress(OSError, ValueError, psutil.Error):
        number = path.stat().st_ino
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5].endswith(f":{number}"):
                pid = int(words[4])
                who = psutil.Process(pid)
                return f"process {pid} of {who.username()} ({' '.join(who.cmdline())[:80]})"
    return "a process that cannot be seen from here"
