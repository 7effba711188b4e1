"""The only door to other processes: tools that prepare, and workers that measure.

Every child leads a session of its own, so that a Ctrl-C in the terminal reaches the host alone and
the host ends the whole tree in order: interrupt, terminate, kill.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import psutil

from orchestrator.model.record import Instant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.model.plan import Limits

LADDER_S = ((signal.SIGINT, 3.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0))
# How often a worker is looked at until its first call is over; while it measures, never.
WATCH_S = 0.2
TAIL_BYTES = 4000

_live: dict[int, subprocess.Popen[bytes]] = {}
_live_lock = threading.Lock()
_stopping = threading.Event()


class ToolError(Exception):
    """A tool ended with a failure, could not be started, or took too long."""

    def __init__(self, command: Sequence[str], problem: str, tail: str) -> None:
        super().__init__(f"{Path(command[0]).name} {problem}")
        self.command = shlex.join(command)
        self.problem = problem
        self.tail = tail


@dataclass(frozen=True, kw_only=True)
class WorkerExit:
    """How a worker ended. Exactly one of exit_code, signal and start_error is set."""

    start: Instant
    end: Instant
    exit_code: int | None = None
    signal: int | None = None
    start_error: str | None = None
    exceeded: Literal["first_call", "job"] | None = None
    oom_kills: int = 0


def now() -> Instant:
    """This moment, on both clocks."""
    return Instant(wall=time.time(), monotonic=time.monotonic())


def tail(log: Path) -> str:
    """The last lines of a log, as text whatever is in it; empty when there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def run_tool(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    log: Path,
    timeout_s: float,
    cwd: Path | None = None,
) -> str:
    """Run a tool to its end and return its stdout. Its stderr is appended to `log`.

    Raises ToolError, with the log's last lines, for anything but success.
    """
    words = [os.fspath(word) for word in command]
    with log.open("ab") as file:
        file.write(f"+ {shlex.join(words)}\n".encode())
        file.flush()
        try:
            child = _start(words, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=file)
        except OSError as error:
            raise ToolError(words, f"could not be started: {error.strerror}", "") from error
        try:
            out, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ToolError(words, f"took more than {timeout_s:.0f} s", tail(log)) from error
        finally:
            _end(child)
        file.write(out)
    if child.returncode != 0:
        raise ToolError(words, f"failed with exit code {child.returncode}", tail(log))
    return out.decode("utf-8", "replace")


def run_worker(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    log: Path,
    limits: Limits,
    in_first_call: Callable[[], bool],
    cwd: Path,
) -> WorkerExit:
    """Run a worker under two limits: until `in_first_call()` turns false, and from then on.

    While the worker measures, the host blocks in one system call.
    """
    words = [os.fspath(word) for word in command]
    start, kills = now(), _oom_kills()
    with log.open("ab") as file:
        try:
            child = _start(words, env=env, cwd=cwd, stdout=file, stderr=file)
        except OSError as error:
            problem = f"{words[0]} could not be started: {error.strerror}"
            return WorkerExit(start=start, end=now(), start_error=problem)
        exceeded: Literal["first_call", "job"] | None = None
        try:
            exceeded = _watch(child, limits=limits, in_first_call=in_first_call)
        finally:
            _end(child)
    code = child.returncode
    return WorkerExit(
        start=start,
        end=now(),
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        exceeded=exceeded,
        oom_kills=_oom_kills() - kills,
    )


def stop_all() -> None:
    """End every child, and let no other one start: for a host that is being interrupted.

    Children are only signalled here; the threads that started them see them end and reap them.
    """
    _stopping.set()
    for number, patience_s in LADDER_S:
        with _live_lock:
            for child in _live.values():
                if child.returncode is None:
                    _signal(child.pid, _descendants(child.pid), number)
        deadline = time.monotonic() + patience_s
        while _live and time.monotonic() < deadline:
            time.sleep(0.02)
        if not _live:
            return


def _start(
    words: list[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
) -> subprocess.Popen[bytes]:
    with _live_lock:
        if _stopping.is_set():
            raise InterruptedError(0, "stackrace is being stopped")
        child = subprocess.Popen(
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        _live[child.pid] = child
    return child


def _watch(
    child: subprocess.Popen[bytes], *, limits: Limits, in_first_call: Callable[[], bool]
) -> Literal["first_call", "job"] | None:
    """Wait for the child, and return the limit that it exceeded, if any."""
    deadline = time.monotonic() + limits.first_call_s
    while in_first_call():
        left = deadline - time.monotonic()
        if left <= 0:
            return "first_call"
        if _exited(child, min(WATCH_S, left)):
            return None
    return None if _exited(child, limits.job_s) else "job"


def _exited(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Block until the child exits (it stays unreaped) or the time is over."""
    try:
        descriptor = os.pidfd_open(child.pid)
    except ProcessLookupError:  # reaped already
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Leave nothing of the child's tree running, and reap it.

    The group is signalled before the leader is reaped: until then its number cannot be reused.
    """
    try:
        if child.returncode is None:
            tree = _descendants(child.pid)
            for number, patience_s in LADDER_S:
                if _exited(child, 0):
                    break
                _signal(child.pid, tree, number)
                _exited(child, patience_s)
            _signal(child.pid, tree, signal.SIGKILL)
            child.wait()
    finally:
        if child.stdout is not None:
            child.stdout.close()
        with _live_lock:
            _live.pop(child.pid, None)


def _descendants(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


def _signal(group: int, tree: list[psutil.Process], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
    for process in tree:  # those that left the group
        with suppress(psutil.Error):
            process.send_signal(number)


def _oom_kills() -> int:
    """Processes killed for memory since the machine started; 0 where the kernel does not say."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
