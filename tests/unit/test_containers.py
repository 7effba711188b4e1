"""The door to Docker: where it looks, and what it says when nobody answers."""

from __future__ import annotations

import gc
import socket
import tarfile
from typing import TYPE_CHECKING

import pytest

from orchestrator import containers
from orchestrator.containers import engine
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.container import RefusedError

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


@pytest.mark.parametrize("place", ["tcp://host:port", "tcp://[::1"])
def test_addresses_that_cannot_be_read(place: str) -> None:
    """What is no port, or no IPv6 address, is a wrong DOCKER_HOST and not a fault of stackrace."""
    assert "DOCKER_HOST" in problem(place).fix


def test_context_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Docker's configuration may name a context that is gone: then its own socket is meant."""
    (tmp_path / "config.json").write_text('{"currentContext": "gone"}', encoding="utf-8")
    monkeypatch.setattr("docker.utils.config.home_dir", lambda: str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert "" == containers.elsewhere({})


@pytest.mark.parametrize(
    ("place", "away"),
    [
        ("unix:///var/run/docker.sock", False),
        ("tcp://127.0.0.1:2375", False),
        ("tcp://[::1]:2375", False),
        ("tcp://localhost:2375", False),
        ("tcp://192.0.2.7:2376", True),
        ("tcp://gpu-host.example:2376", True),
        ("ssh://somebody@gpu-host.example", True),
        ("tcp://[::1", True),
    ],
)
def test_engines_elsewhere(place: str, *, away: bool) -> None:
    """Whatever does not end on this machine is another one."""
    assert (place if away else "") == containers.elsewhere({"DOCKER_HOST": place})


class Api:
    """The SDK's client: what it was asked for, and an archive that was cut short."""

    def __init__(self) -> None:
        self.timeouts: list[object] = []

    def wait(self, container: str, timeout: object) -> None:
        """Has ended."""
        assert "job" == container
        self.timeouts.append(timeout)

    def get_archive(self, container: str, path: str) -> tuple[list[bytes], dict[str, str]]:
        """Not whole."""
        assert ("job", "/job/out/phases") == (container, path)
        info = tarfile.TarInfo("phases")
        info.size = 1000
        return [info.tobuf(), b"import\n"], {}


def test_patience_is_not_for_connecting() -> None:
    """A short look at a job must not take a slow network for an engine that went away."""
    api = Api()
    assert containers.DockerEngine(api, "tcp://192.0.2.7:2376").wait("job", 0.01)
    assert [(60, 0.01)] == api.timeouts


def test_archive_that_was_cut_short() -> None:
    """A file that grew while it was read is refused, and no fault of stackrace."""
    with pytest.raises(RefusedError, match="phases came back damaged"):
        containers.DockerEngine(Api(), "unix:///x").get("job", "/job/out/phases")
