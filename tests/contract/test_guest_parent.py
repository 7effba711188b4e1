"""A guest never outlives the process that asked for it."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import TYPE_CHECKING

import psutil

from orchestrator.model import codec
from tests.contract.conftest import ask

if TYPE_CHECKING:
    from pathlib import Path

# Starts its arguments, says their number, and waits.
_PARENT = """
import json, subprocess, sys
child = subprocess.Popen(sys.argv[2:])
print(child.pid, flush=True)
child.wait()
"""


def test_dies_with_its_parent(
    python: Path, archive: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    """When the parent is killed in the middle of a call, so is the guest."""
    asked, left, phases = tmp_path / "request.json", tmp_path / "result.json", tmp_path / "phases"
    asked.write_bytes(codec.encode(ask(phases, {"parent_pid": None})))
    parent = subprocess.Popen(
        [python, "-c", _PARENT, "--", python, "-s", archive, asked, left],
        env={**variables, "STUB_BEHAVIOUR": "hang"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    while not (phases.exists() and "first_call" in phases.read_text()):
        assert parent.poll() is None
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    child.wait(timeout=60)
    assert not child.is_running()
    assert not left.exists()


def test_refuses_a_stranger(
    python: Path, archive: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    """A guest whose parent is already another process ends at once, without a result."""
    asked, left, phases = tmp_path / "request.json", tmp_path / "result.json", tmp_path / "phases"
    asked.write_bytes(codec.encode(ask(phases, {"parent_pid": 1})))
    ended = subprocess.run(
        [python, "-s", archive, asked, left], env=variables, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert not left.exists()
    assert not phases.exists()


def test_dies_with_its_standard_input(
    python: Path, archive: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    """When the host that holds a container's standard input is gone, so is the guest."""
    asked, left, phases = tmp_path / "request.json", tmp_path / "result.json", tmp_path / "phases"
    fields = {"parent_pid": None, "host_on_stdin": True}
    asked.write_bytes(codec.encode(ask(phases, fields)))
    child = subprocess.Popen(
        [python, "-s", archive, asked, left],
        env={**variables, "STUB_BEHAVIOUR": "hang"},
        stdin=subprocess.PIPE,
    )
    while not (phases.exists() and "first_call" in phases.read_text()):
        assert child.poll() is None
        time.sleep(0.02)
    child.communicate(timeout=60)  # closes the pipe
    assert child.returncode == 1
    assert not left.exists()


def test_leaves_its_result_while_standard_input_is_open(
    python: Path, archive: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    """A guest that is done ends, however long the host holds its standard input."""
    asked, left, phases = tmp_path / "request.json", tmp_path / "result.json", tmp_path / "phases"
    fields = {"parent_pid": None, "host_on_stdin": True}
    asked.write_bytes(codec.encode(ask(phases, fields)))
    with subprocess.Popen(
        [python, "-s", archive, asked, left], env=variables, stdin=subprocess.PIPE
    ) as child:
        assert child.wait(timeout=60) == 0
    assert left.exists()
