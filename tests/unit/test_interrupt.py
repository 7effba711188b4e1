"""Signals end a command in order, with the right code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from orchestrator import interrupt

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_raises_stopped(number: signal.Signals, code: int) -> None:
    """The first signal raises Stopped with 128 + its number."""
    with pytest.raises(interrupt.Stopped, match=number.name) as caught, interrupt.interruptible():
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert code == caught.value.exit_code


def test_further_signals_change_nothing() -> None:
    """While the command is ending, more signals do not break it."""
    with pytest.raises(interrupt.Stopped), interrupt.interruptible():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)


def test_signals_that_arrive_together_end_the_command_once() -> None:
    """Two signals at one moment, as a job system sends them, raise Stopped and nothing else."""
    both = {signal.SIGINT, signal.SIGTERM}
    with pytest.raises(interrupt.Stopped), interrupt.interruptible():
        signal.pthread_sigmask(signal.SIG_BLOCK, both)
        try:
            # Another thread may take them, and then the first raises here already.
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
        time.sleep(5)


def test_handlers_are_put_back() -> None:
    """Leaving restores what the caller had."""
    before = signal.getsignal(signal.SIGTERM)
    with interrupt.interruptible():
        assert before is not signal.getsignal(signal.SIGTERM)
    assert before is signal.getsignal(signal.SIGTERM)


def test_ignored_hangup_stays_ignored() -> None:
    """`nohup stackrace run` goes on when the terminal closes."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupt.interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_without_a_launcher_nothing_is_followed() -> None:
    """A command that a person started does not follow its parent."""
    interrupt.follow_parent({})
    interrupt.follow_parent({interrupt.PARENT_VARIABLE: "not a number"})
    interrupt.follow_parent({interrupt.PARENT_VARIABLE: "\u00b2"})
    assert os.getppid() > 0


def test_dead_launcher_stops_the_command() -> None:
    """A launcher that is gone already ends the command at once."""
    code = (
        "from orchestrator import interrupt\n"
        "try:\n"
        "    interrupt.follow_parent({interrupt.PARENT_VARIABLE: '1234567'})\n"
        "except interrupt.Stopped as stop:\n"
        "    raise SystemExit(stop.exit_code)\n"
    )
    assert 143 == subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_command_ends_with_its_launcher(tmp_path: Path) -> None:
    """When the launcher is killed, the command gets SIGTERM."""
    child = textwrap.dedent("""
        import pathlib, sys, time
        from orchestrator import interrupt
        with interrupt.interruptible():
            interrupt.follow_parent()
            try:
                pathlib.Path(sys.argv[1]).write_text(str(__import__("os").getpid()))
                time.sleep(60)
            except interrupt.Stopped:
                pathlib.Path(sys.argv[1] + ".stopped").touch()
    """)
    launcher = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}, sys.argv[1]],"
        f" env=dict(os.environ, {interrupt.PARENT_VARIABLE}=str(os.getpid()))).wait()\n"
    )
    pid_file = tmp_path / "pid"
    process = subprocess.Popen([sys.executable, "-c", launcher, str(pid_file)])
    _wait_for(pid_file)
    pid = int(pid_file.read_text())
    process.kill()
    process.wait()
    _wait_for(tmp_path / "pid.stopped")
    for _ in range(500):
        if not _runs(pid):
            break
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _wait_for(path: Path) -> None:
    for _ in range(1000):
        if path.exists() and (path.suffix or path.read_text()):
            return
        time.sleep(0.02)
    pytest.fail(f"{path} never appeared")
