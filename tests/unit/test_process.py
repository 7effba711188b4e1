"""Processes end as they should: on their own, at a limit, or with the whole tree."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from orchestrator import process
from orchestrator.model.plan import Limits

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = Limits(first_call_s=20.0, job_s=20.0)


def worker(
    code: str, folder: Path, *, limits: Limits = LIMITS, started: Path | None = None
) -> process.WorkerExit:
    """Run a Python snippet as a worker; its first call is over when `started` exists."""
    return process.run_worker(
        [sys.executable, "-c", code],
        env={},
        log=folder / "log",
        limits=limits,
        in_first_call=lambda: started is not None and not started.exists(),
        cwd=folder,
    )


def test_exit_code_is_kept(tmp_path: Path) -> None:
    """A worker that exits by itself reports its code and no signal."""
    ended = worker("import sys; sys.exit(7)", tmp_path)
    assert (7, None, None) == (ended.exit_code, ended.signal, ended.exceeded)


def test_signal_is_kept(tmp_path: Path) -> None:
    """A worker that a signal ended reports the signal's number and no exit code."""
    ended = worker("import os; os.kill(os.getpid(), 11)", tmp_path)
    assert (None, signal.SIGSEGV) == (ended.exit_code, ended.signal)


def test_missing_program_is_an_outcome(tmp_path: Path) -> None:
    """A worker that cannot be started is reported, not raised."""
    ended = process.run_worker(
        ["/nowhere/python"],
        env={},
        log=tmp_path / "log",
        limits=LIMITS,
        in_first_call=lambda: False,
        cwd=tmp_path,
    )
    assert ended.start_error == "/nowhere/python could not be started: No such file or directory"


def test_first_call_limit(tmp_path: Path) -> None:
    """A worker whose first call does not end in time is stopped for that limit."""
    limits = Limits(first_call_s=0.3, job_s=20.0)
    ended = worker(
        "import time; time.sleep(60)", tmp_path, limits=limits, started=tmp_path / "never"
    )
    assert ended.exceeded == "first_call"


def test_job_limit_starts_after_the_first_call(tmp_path: Path) -> None:
    """Once the first call is over, the other limit counts."""
    limits = Limits(first_call_s=20.0, job_s=0.3)
    code = "import time; open('started', 'w').close(); time.sleep(60)"
    ended = worker(code, tmp_path, limits=limits, started=tmp_path / "started")
    assert ended.exceeded == "job"


def test_grandchildren_are_ended_too(tmp_path: Path) -> None:
    """A stopped worker leaves nothing of its tree, even what left its process group."""
    code = (
        "import subprocess, sys, time, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "a = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "b = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " start_new_session=True)\n"
        "open('pids', 'w').write(f'{a.pid} {b.pid}')\n"
        "open('started', 'w').close()\n"
        "time.sleep(60)"
    )
    limits = Limits(first_call_s=20.0, job_s=0.5)
    worker(code, tmp_path, limits=limits, started=tmp_path / "started")
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    assert [] == _survivors(pids)


def test_leftovers_of_a_worker_that_exited_are_ended(tmp_path: Path) -> None:
    """A child that outlives a worker which exited by itself is ended as well."""
    code = (
        "import subprocess, sys\n"
        "a = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('pid', 'w').write(str(a.pid))"
    )
    worker(code, tmp_path)
    assert [] == _survivors([int((tmp_path / "pid").read_text())])


def test_orphans_in_a_session_of_their_own_are_ended(tmp_path: Path) -> None:
    """Even what was orphaned and left the group carries the worker's mark."""
    code = (
        "import subprocess, sys\n"
        "a = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " start_new_session=True)\n"
        "open('pid', 'w').write(str(a.pid))"
    )
    worker(code, tmp_path)
    assert [] == _survivors([int((tmp_path / "pid").read_text())])


@pytest.mark.parametrize("fault", ["absent", errno.ENOSYS, errno.EPERM])
def test_machines_without_pidfd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int | str
) -> None:
    """Old kernels, sandboxes and some Pythons have no pidfd: limits and exits work all the same."""

    def refuse(_pid: int) -> int:
        raise OSError(fault, "no pidfd here")

    if isinstance(fault, str):
        monkeypatch.delattr(os, "pidfd_open")
    else:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    assert worker("import sys; sys.exit(7)", tmp_path).exit_code == 7
    limits = Limits(first_call_s=20.0, job_s=0.3)
    code = "import time; time.sleep(60)"
    assert worker(code, tmp_path, limits=limits).exceeded == "job"


def test_output_goes_to_the_log(tmp_path: Path) -> None:
    """Both streams of a worker are in its log, whose tail can be read."""
    worker("import sys; print('out'); print('err', file=sys.stderr)", tmp_path)
    assert {"out", "err"} == set(process.tail(tmp_path / "log").split())


def test_tail_of_no_log_is_empty(tmp_path: Path) -> None:
    """A log that does not exist has no last lines."""
    assert process.tail(tmp_path / "none") == ""


def test_tail_survives_bytes_that_are_no_text(tmp_path: Path) -> None:
    """Whatever a worker printed, its tail is text."""
    (tmp_path / "log").write_bytes(b"\xff\xfe end\n")
    assert process.tail(tmp_path / "log").endswith("end")


def test_tool_output_is_returned_and_logged(tmp_path: Path) -> None:
    """A tool's stdout is returned; the command stands in its log."""
    log = tmp_path / "log"
    out = process.run_tool([sys.executable, "-c", "print(5)"], env={}, log=log, timeout_s=20)
    assert out == "5\n"
    assert log.read_text().startswith(f"+ {sys.executable} -c 'print(5)'\n")


def test_tool_failure_carries_the_last_lines(tmp_path: Path) -> None:
    """A failing tool raises with its exit code and what it said."""
    code = "import sys; print('no space', file=sys.stderr); sys.exit(3)"
    with pytest.raises(process.ToolError, match="failed with exit code 3") as caught:
        process.run_tool([sys.executable, "-c", code], env={}, log=tmp_path / "log", timeout_s=20)
    assert caught.value.tail.endswith("no space")


def test_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    """A tool that takes too long is stopped, and says so."""
    with pytest.raises(process.ToolError, match="took more than"):
        process.run_tool(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            env={},
            log=tmp_path / "log",
            timeout_s=0.3,
        )


def test_tool_that_is_missing(tmp_path: Path) -> None:
    """A tool that is not there is named."""
    with pytest.raises(process.ToolError, match="could not be started"):
        process.run_tool(["/nowhere/uv"], env={}, log=tmp_path / "log", timeout_s=5)


def test_a_tool_that_is_no_program(tmp_path: Path) -> None:
    """What cannot be executed is told with the system's reason."""
    (tmp_path / "tool").write_text("")
    with pytest.raises(process.ToolError, match="could not be started: Permission denied"):
        process.run_tool([tmp_path / "tool"], env={}, log=tmp_path / "log", timeout_s=5)


def test_a_tool_dies_with_a_killed_host(tmp_path: Path) -> None:
    """A host that is killed cannot end its tools; the kernel does."""
    tool = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    host = (
        "import sys\nfrom pathlib import Path\nfrom orchestrator import process\n"
        f"process.run_tool([sys.executable, '-c', {tool!r}, sys.argv[1]], env={{}},"
        " log=Path(sys.argv[1] + '.log'), timeout_s=60)\n"
    )
    pid_file = tmp_path / "pid"
    killed = subprocess.Popen([sys.executable, "-c", host, str(pid_file)])
    for _ in range(1000):
        if pid_file.exists() and pid_file.read_text():
            break
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    assert [] == _survivors([int(pid_file.read_text())])


def test_stop_all_ends_tools_of_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping ends what other threads wait for, and lets nothing new start."""
    monkeypatch.setattr(process, "_stopping", threading.Event())
    ended: list[str] = []

    def tool() -> None:
        try:
            process.run_tool(
                [sys.executable, "-c", "import time; time.sleep(60)"],
                env={},
                log=tmp_path / "log",
                timeout_s=60,
            )
        except process.ToolError as error:
            ended.append(error.problem)

    thread = threading.Thread(target=tool)
    thread.start()
    for _ in range(1000):
        if process._live:
            break
        time.sleep(0.01)
    process.stop_all()
    thread.join(timeout=30)
    assert len(ended) == 1
    with pytest.raises(process.ToolError):
        process.run_tool([sys.executable, "-c", ""], env={}, log=tmp_path / "log", timeout_s=5)


def test_worker_gets_only_its_own_variables(tmp_path: Path) -> None:
    """Nothing of the host's environment reaches a worker that was not handed to it."""
    process.run_worker(
        [sys.executable, "-c", "import os; print(sorted(os.environ))"],
        env={"ONLY": "this"},
        log=tmp_path / "log",
        limits=LIMITS,
        in_first_call=lambda: False,
        cwd=tmp_path,
    )
    assert "HOME" in os.environ
    printed = process.tail(tmp_path / "log")
    assert "ONLY" in printed
    assert "HOME" not in printed


def _survivors(pids: list[int]) -> list[int]:
    """Those that still run when a signal had all the time to arrive."""
    left = pids
    for _ in range(500):
        left = [pid for pid in left if _runs(pid)]
        if not left:
            break
        time.sleep(0.01)
    return left


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
