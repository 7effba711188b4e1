"""The door to Docker: where it looks, and what it says when nobody answers."""

from __future__ import annotations

import gc
import socket
from typing import TYPE_CHECKING

import pytest

from orchestrator import containers
from orchestrator.containers import engine
from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Docker's SDK leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def problem(place: str) -> EnvironmentFailedError:
    """What connecting to nothing there says."""
    with pytest.raises(EnvironmentFailedError) as caught:
        containers.connect({"DOCKER_HOST": place})
    assert f"Docker Engine cannot be reached at {place}." == caught.value.what
    return caught.value


def test_not_installed_or_not_running(tmp_path: Path) -> None:
    """No socket: how to start Docker, and how to install it."""
    error = problem(f"unix://{tmp_path}/docker.sock")
    assert f"{tmp_path}/docker.sock does not exist" in error.why
    assert "systemctl start docker" in error.fix
    assert "--backend venv" in error.fix


def test_socket_that_nobody_listens_on(tmp_path: Path) -> None:
    """A socket that a dead daemon left."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    assert "nobody answers" in problem(f"unix://{path}").why


def test_remote_engine_that_is_not_there() -> None:
    """A DOCKER_HOST elsewhere: the setting is what to look at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "DOCKER_HOST" in problem(f"tcp://127.0.0.1:{port}").fix


def test_nonsense_for_an_address() -> None:
    """An address that is none ends plainly as well."""
    assert "DOCKER_HOST" in problem("nonsense://x").fix


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect what the SDK dropped here, not in another test."""
    yield
    gc.collect()


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("python", False),
        ("python:3.7-slim", True),
        ("host:5000/python", False),
        ("host:5000/python:3.7", True),
        ("python@sha256:0", True),
    ],
)
def test_references_with_a_tag(reference: str, *, expected: bool) -> None:
    """A port is no tag; without a tag every tag would be fetched."""
    assert expected == engine._has_tag(reference)
