"""The only door to other processes: tools that prepare, workers that measure, a companion.

Every child leads a session of its own, so that a Ctrl-C in the terminal reaches the host alone and
the host ends the whole tree in order: interrupt, terminate, kill.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal
from uuid import uuid4

from orchestrator import kernel
from orchestrator.model.record import Instant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from orchestrator.model.plan import Limits

LADDER_S = ((signal.SIGINT, 3.0), (signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0))
# How often a worker is looked at until its first call is over; while it measures, never.
WATCH_S = 0.2
TAIL_BYTES = 4000

# Becomes a tool that ends with the host, however that ends. Between fork and exec, as `preexec_fn`,
# this could hang: the host has threads. What cannot be started is told as its errno.
_FOLLOWER = """
import ctypes, os, sys
host, pipe, *words = sys.argv[1:]
os.set_inheritable(int(pipe), False)
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(host):
    os._exit(1)
try:
    os.execvp(words[0], words)
except OSError as error:
    os.write(int(pipe), b"%d" % error.errno)
    os._exit(1)
"""

# In the environment of every child, so that what it started is found even when it is orphaned.
MARK = "STACKRACE_JOB"

_live: dict[int, _Child] = {}
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
class _Child:
    process: subprocess.Popen[bytes]
    mark: str


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
            child = _start_tool(words, env=env, cwd=cwd, log=file)
        except OSError as error:
            raise ToolError(words, f"could not be started: {error.strerror}", "") from error
        try:
            out, _ = child.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ToolError(words, f"took more than {timeout_s:.0f} s", tail(log)) from error
        finally:
            _end(child)
        file.write(out)
    if child.process.returncode != 0:
        raise ToolError(words, f"failed with exit code {child.process.returncode}", tail(log))
    return out.decode("utf-8", "replace")


def run_worker(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    log: Path,
    limits: Limits,
    in_first_call: Callable[[], bool],
    cwd: Path,
    cores: Collection[int] = (),
) -> WorkerExit:
    """Run a worker under two limits: until `in_first_call()` turns false, and from then on.

    `cores`: those that it is bound to; none: as the host is. While the worker measures, the host
    blocks in one system call.
    """
    words = [os.fspath(word) for word in command]
    start, kills = now(), kernel.oom_kills()
    with log.open("ab") as file:
        try:
            child = _start(words, env=env, cwd=cwd, stdout=file, stderr=file, cores=cores)
        except OSError as error:
            problem = f"{words[0]} could not be started: {error.strerror}"
            return WorkerExit(start=start, end=now(), start_error=problem)
        try:
            exceeded = _watch(child, limits=limits, in_first_call=in_first_call)
            end = now()  # to look for what it left behind is no part of its life
        finally:
            _end(child)
    code = child.process.returncode
    return WorkerExit(
        start=start,
        end=end if exceeded is None else now(),
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        exceeded=exceeded,
        oom_kills=kernel.oom_kills() - kills,
    )


class Companion:
    """A small program of ours that answers a line with a line, and does not outlive the host.

    While nobody asks, it waits in a blocking read of its standard input, and costs nothing.
    """

    def __init__(self, code: str, *, cores: Collection[int] = ()) -> None:
        """Start `code` in this interpreter, isolated, on these cores or on any.

        Raises OSError when that cannot be.
        """
        words, pipe = [sys.executable, "-I", "-S", "-c", code], subprocess.PIPE
        self._child = _start_tool(
            words, env={}, cwd=None, log=subprocess.DEVNULL, stdin=pipe, cores=cores
        )

    def ask(self, line: bytes, *, timeout_s: float) -> bytes | None:
        """Its answer; None when it has none within that time, after which it has none ever."""
        ask, answers = self._child.process.stdin, self._child.process.stdout
        if ask is None or answers is None or ask.closed:
            return None
        poll = select.poll()
        poll.register(answers, select.POLLIN)
        try:
            ask.write(line + b"\n")
            ask.flush()
            answer: bytes = answers.readline() if poll.poll(timeout_s * 1000) else b""
        except OSError:
            answer = b""
        if not answer:
            self.close()
        return answer or None

    def close(self) -> None:
        """End it."""
        if self._child.process.stdin is not None:
            with suppress(OSError):  # it died with a question unread
                self._child.process.stdin.close()
        _end(self._child)


def stop_all() -> None:
    """End every child, and let no other one start: for a host that is being interrupted.

    Children are only signalled here; the threads that started them see them end and reap them.
    """
    _stopping.set()
    for number, patience_s in LADDER_S:
        with _live_lock:
            for child in _live.values():
                if child.process.returncode is None:
                    _signal(child, number)
        deadline = time.monotonic() + patience_s
        while _live and time.monotonic() < deadline:
            time.sleep(0.02)
        if not _live:
            return


def _start_tool(
    words: list[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    log: int | IO[bytes],
    stdin: int = subprocess.DEVNULL,
    cores: Collection[int] = (),
) -> _Child:
    """Start a tool that does not outlive the host; a worker sees to that itself."""
    said, say = os.pipe()
    with open(said, "rb") as problem:  # noqa: PTH123 - a descriptor
        try:
            child = _start(
                [sys.executable, "-I", "-S", "-c", _FOLLOWER, str(os.getpid()), str(say), *words],
                env=env,
                cwd=cwd,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=log,
                descriptors=(say,),
                cores=cores,
            )
        finally:
            os.close(say)
        try:
            number = problem.read()  # ends when the tool is there
        except BaseException:
            _end(child)
            raise
    if number:
        _end(child)
        raise OSError(int(number), os.strerror(int(number)))
    return child


def _start(
    words: list[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    stdin: int = subprocess.DEVNULL,
    descriptors: Sequence[int] = (),
    cores: Collection[int] = (),
) -> _Child:
    mark = uuid4().hex
    with _live_lock, kernel.bound(cores):
        if _stopping.is_set():
            raise InterruptedError(0, "stackrace is being stopped")
        child = _Child(
            process=subprocess.Popen(
                words,
                env={**env, MARK: mark},
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                pass_fds=descriptors,
            ),
            mark=mark,
        )
        _live[child.process.pid] = child
    return child


def _watch(
    child: _Child, *, limits: Limits, in_first_call: Callable[[], bool]
) -> Literal["first_call", "job"] | None:
    """Wait for the child, and return the limit that it exceeded, if any."""
    deadline = time.monotonic() + limits.first_call_s
    while in_first_call():
        left = deadline - time.monotonic()
        if left <= 0:
            return "first_call"
        if exited(child.process.pid, min(WATCH_S, left)):
            return None
    return None if exited(child.process.pid, limits.job_s) else "job"


def exited(pid: int, timeout_s: float) -> bool:
    """Block until a child exits (it stays unreaped) or the time is over."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:  # reaped already
        return True
    except (AttributeError, OSError):
        # Kernels before 5.3, some sandboxes, and Pythons that were built on such kernels.
        return _exited_by_asking(pid, timeout_s)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def _exited_by_asking(pid: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return True
        except ChildProcessError:  # reaped already
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(WATCH_S, left))


def _end(child: _Child) -> None:
    """Leave nothing of the child's tree running, and reap it.

    The group is signalled before the leader is reaped: until then its number cannot be reused.
    """
    process = child.process
    try:
        if process.returncode is None:
            for number, patience_s in LADDER_S:
                if exited(process.pid, 0):
                    break
                _signal(child, number)
                exited(process.pid, patience_s)
            _signal(child, signal.SIGKILL)
            process.wait()
    finally:
        if process.stdout is not None:
            process.stdout.close()
        with _live_lock:
            _live.pop(process.pid, None)


def _signal(child: _Child, number: int) -> None:
    """Signal the child's group, and what left the group but still carries the child's mark."""
    with suppress(ProcessLookupError):
        os.killpg(child.process.pid, number)
    for pid in _marked(child):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _marked(child: _Child) -> list[int]:
    """Processes that inherited the mark, orphans too; none where /proc does not show it.

    What the child started has a higher number than it, unless numbers began again at the bottom:
    to look at every process would take longer than all else between two jobs.
    """
    wanted, own = f"{MARK}={child.mark}".encode(), child.process.pid
    found = []
    with suppress(OSError):
        newest = int(Path("/proc/loadavg").read_bytes().split()[-1])
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):  # noqa: PTH208
            if pid >= own or newest < own:
                with suppress(OSError):
                    if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                        found.append(pid)
    return found
