"""The control: the same work before and after every job, and who is told when it changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import psutil
import pytest

from orchestrator import control, process
from orchestrator.merge import merge
from orchestrator.model.record import Control, Instant
from orchestrator.series.noise import mad
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

ECHO = "import sys\nfor line in sys.stdin: print(line.strip() + '!', flush=True)"


def children() -> set[int]:
    """The processes that this one has."""
    return {child.pid for child in psutil.Process().children()}


def test_the_clock_answers_again_and_again_and_leaves_nobody() -> None:
    """Every question has a positive answer; afterwards its process is gone."""
    before = children()
    with control.Clock() as clock:
        answers = []
        for _ in range(3):
            answers.append(clock.seconds())
            time.sleep(control.FRESH_S)
        assert 1 == len(children() - before)
    assert 1 < len(set(answers))
    assert all(answer is not None and answer > 0 for answer in answers)
    assert before == children()


def test_between_two_jobs_it_is_read_once() -> None:
    """The reading after one is that before the next: twice the work would tell no more."""
    asked = "import sys\nfor number, _ in enumerate(sys.stdin): print(number, flush=True)"
    with control.Clock(asked) as clock:
        assert [0.0, 0.0] == [clock.seconds(), clock.seconds()]
        time.sleep(control.FRESH_S)
        assert 1.0 == clock.seconds()


def test_a_reading_of_two_jobs_counts_once() -> None:
    """Counted twice it would make one stray reading look like a level."""
    plan = factories.plan(rounds=20)
    rng = np.random.default_rng(3)
    readings = 0.002 * np.exp(0.01 * rng.normal(size=len(plan.jobs) + 1))
    records = [
        msgspec.structs.replace(
            record,
            control=Control(before_s=readings[place], after_s=readings[place + 1]),
            start=Instant(wall=place, monotonic=place),
            end=Instant(wall=place + 0.5, monotonic=place + 0.5),
        )
        for place, record in enumerate(factories.measured(plan, lambda _: 0.01))
    ]
    found = control.spread(merge([(plan, records)]))
    assert found == pytest.approx(float(mad(np.log(readings)[None, :])[0]))


def test_between_two_questions_the_clock_sleeps() -> None:
    """It uses no processor time while a job measures."""
    before = children()
    with control.Clock() as clock:
        clock.seconds()
        (pid,) = children() - before
        used = psutil.Process(pid).cpu_times()
        assert process.exited(pid, 0.3) is False
        assert used == psutil.Process(pid).cpu_times()
        assert psutil.STATUS_SLEEPING == psutil.Process(pid).status()


def test_a_clock_that_died_says_nothing() -> None:
    """A run goes on without a control: the record has none."""
    before = children()
    with control.Clock() as clock:
        (pid,) = children() - before
        os.kill(pid, signal.SIGKILL)
        assert process.exited(pid, 5)
        assert [None, None] == [clock.seconds(), clock.seconds()]
    assert None is control.around(0.002, None)
    assert Control(before_s=0.002, after_s=0.003) == control.around(0.002, 0.003)


def test_a_companion_that_stops_answering_is_ended() -> None:
    """A late answer could be taken for that of the next question."""
    companion = process.Companion("import time; time.sleep(60)")
    before = children()
    assert None is companion.ask(b"one", timeout_s=0.2)
    assert 1 == len(before - children())
    assert None is companion.ask(b"two", timeout_s=0.2)


def test_a_companion_ends_with_the_host(tmp_path: Path) -> None:
    """Whatever kills the host, no companion is left."""
    code = (
        "import os, sys; sys.path.insert(0, os.getcwd())\n"
        "from orchestrator.process import Companion\n"
        f"companion = Companion({ECHO!r})\n"
        "assert companion.ask(b'here', timeout_s=20) == b'here!\\n'\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(companion._child.process.pid))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    host = subprocess.run([sys.executable, "-c", code], check=False)
    assert -signal.SIGKILL == host.returncode
    pid = int((tmp_path / "pid").read_text(encoding="ascii"))
    assert process.exited(pid, 5)
