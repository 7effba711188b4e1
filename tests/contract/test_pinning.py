"""Workers that are bound to cores: what they see inside is what was asked for outside."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator import kernel, process
from orchestrator.environments.existing import ExistingEnvironment
from orchestrator.environments.venv import VenvEnvironment
from orchestrator.errors import UsageError
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request
from orchestrator.process import Companion

if TYPE_CHECKING:
    from orchestrator.model.execution import Environment

HERE = kernel.allowed()
LIMITS = Limits(first_call_s=60.0, job_s=60.0)
# A guest that says where it, a thread and a child of it may be, before it imports anything.
GUEST = """
import os
first = sorted(os.sched_getaffinity(0))
import json, subprocess, sys, threading
found = {"first": first}
thread = threading.Thread(target=lambda: found.update(thread=sorted(os.sched_getaffinity(0))))
thread.start(); thread.join()
code = "import os; print(sorted(os.sched_getaffinity(0)))"
found["child"] = json.loads(subprocess.check_output([sys.executable, "-c", code]))
json.dump(found, open(sys.argv[2], "w"))
"""


def environments(folder: Path, cores: tuple[int, ...]) -> list[Environment]:
    """This interpreter in the backends that bind by affinity."""
    guest = folder / "guest.py"
    guest.write_text(GUEST, encoding="utf-8")
    binaries = folder / "env" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    shared: dict[str, Any] = {
        "identifier": "tf114",
        "lock_digest": "0",
        "python": "3.11",
        "guest": guest,
        "cores": cores,
    }
    return [
        VenvEnvironment(folder=folder / "env", **shared),
        ExistingEnvironment(path=Path(sys.executable), **shared),
    ]


def seen(environment: Environment, folder: Path) -> dict[str, list[int]]:
    """What the guest said."""
    work = folder / environment.backend
    work.mkdir()
    request = Request(
        action="measure",
        environment="tf114",
        expected=Expected(tensorflow="1.14.0", keras="2.2.5"),
        phase_path=str(work / "phases"),
    )
    execution = environment.run(request, work=work, log=folder / "log", limits=LIMITS)
    assert execution.result is not None, execution.log_tail
    found: dict[str, list[int]] = json.loads(execution.result)
    return found


@pytest.mark.parametrize("cores", [HERE[:1], HERE[-1:], HERE])
def test_workers_are_where_they_were_asked_to_be(tmp_path: Path, cores: tuple[int, ...]) -> None:
    """From their first instruction on, with all their threads and children, in both backends."""
    before = kernel.allowed()
    for environment in environments(tmp_path, cores):
        found = seen(environment, tmp_path)
        assert {"first": [*cores], "thread": [*cores], "child": [*cores]} == found
    assert before == kernel.allowed()


def test_without_cores_workers_go_where_the_host_may(tmp_path: Path) -> None:
    """Nothing is bound that nobody asked for."""
    for environment in environments(tmp_path, ()):
        assert [*HERE] == seen(environment, tmp_path)["first"]


def test_cores_that_are_gone_fail_the_start(tmp_path: Path) -> None:
    """A worker never runs on other cores than those of the plan."""
    gone = max(HERE) + 1
    ended = process.run_worker(
        [sys.executable, "-c", ""],
        env={},
        log=tmp_path / "log",
        limits=LIMITS,
        in_first_call=lambda: False,
        cwd=tmp_path,
        cores=(*HERE, gone),
    )
    assert ended.start_error is not None
    assert "could not be started" in ended.start_error
    assert HERE == kernel.allowed()


def test_the_companion_is_bound_as_workers_are() -> None:
    """The control's work is done on the cores whose speed it stands for."""
    companion = Companion(
        "import os\nfor _ in iter(input, None): print(sorted(os.sched_getaffinity(0)), flush=True)",
        cores=HERE[-1:],
    )
    try:
        answer = companion.ask(b"", timeout_s=20)
    finally:
        companion.close()
    assert answer is not None
    assert [HERE[-1]] == json.loads(answer)


def test_the_host_keeps_off_the_cores_of_its_workers() -> None:
    """Every thread of it, those too that start meanwhile; afterwards all are back."""
    seen: list[tuple[int, ...]] = []
    with kernel.kept_off(HERE[:1]):
        thread = threading.Thread(target=lambda: seen.append(kernel.allowed()))
        thread.start()
        thread.join()
    expected = HERE[1:] or HERE  # on a single core there is nowhere to go
    assert [expected] == seen
    assert HERE == kernel.allowed()


def test_a_host_without_other_cores_stays(tmp_path: Path) -> None:
    """Where workers have all cores, the host is on them as well, and workers start."""
    with kernel.kept_off(HERE):
        assert HERE == kernel.allowed()
        for environment in environments(tmp_path, HERE[:1]):
            assert [HERE[0]] == seen(environment, tmp_path)["first"]


def test_workers_of_a_host_that_keeps_off_have_their_cores(tmp_path: Path) -> None:
    """What the host leaves alone, its workers still get."""
    with kernel.kept_off(HERE[:1]):
        for environment in environments(tmp_path, HERE[:1]):
            assert [HERE[0]] == seen(environment, tmp_path)["first"]


def test_cores_that_are_not_here_are_named() -> None:
    """The message says which are missing, and which there are."""
    gone = max(HERE) + 1
    with pytest.raises(UsageError, match=f"Core {gone} cannot be had here") as caught:
        kernel.check((HERE[0], gone))
    assert kernel.text(HERE) in caught.value.fix
    kernel.check(HERE)
    assert "0-3,8" == kernel.text([8, 0, 1, 2, 3, 3])
    assert os.sched_getaffinity(0) == set(HERE)
