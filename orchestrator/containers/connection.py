"""Where Docker Engine is, and what is missing when it does not answer."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import docker
import docker.errors
import requests

from orchestrator.containers.engine import DockerEngine
from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET = Path("/var/run/docker.sock")
_TIMEOUT_S = 60


def connect(environ: Mapping[str, str] = os.environ) -> DockerEngine:
    """The engine that DOCKER_HOST, or the current context, names.

    Raises EnvironmentFailedError that says what is missing: Docker, its daemon, or the right to
    talk to it.
    """
    place = _place(environ)
    options: dict[str, Any] = {"timeout": _TIMEOUT_S, "version": "auto"}
    try:
        _knock(place)
        client = docker.from_env(
            environment={**environ, "DOCKER_HOST": place},
            use_ssh_client=place.startswith("ssh://"),
            **options,
        )
    except (
        docker.errors.DockerException,
        requests.RequestException,
        OSError,
        ValueError,  # a port or an address that is none
    ) as error:
        raise _unreachable(place, str(error)) from error
    return DockerEngine(client.api, place)


def elsewhere(environ: Mapping[str, str] = os.environ) -> str:
    """Where the engine is, when that is another machine than this; else empty."""
    place = _place(environ)
    if place.startswith("unix://"):
        return ""
    try:
        name = urlsplit(place).hostname or ""
        here = name == "localhost" or ip_address(name).is_loopback
    except ValueError:  # a name, or nothing that could be reached
        here = False
    return "" if here else place


def _place(environ: Mapping[str, str]) -> str:
    """Where the user's own `docker` would look, except for TLS contexts."""
    named = environ.get("DOCKER_HOST", "")
    if named:
        return named
    with suppress(docker.errors.DockerException, OSError, ValueError):
        context: Any = docker.ContextAPI.get_current_context()
        if context is not None and context.Host:  # None: one that was removed
            return str(context.Host)
    return f"unix://{SOCKET}"


def _knock(place: str) -> None:
    """OSError when nobody listens: the SDK would leave its socket to the garbage collector."""
    if place.startswith("unix:///"):
        with socket.socket(socket.AF_UNIX) as here:
            here.settimeout(_TIMEOUT_S)
            here.connect(place.removeprefix("unix://"))


def _unreachable(place: str, problem: str) -> EnvironmentFailedError:
    path = Path(place.removeprefix("unix://"))
    if place.startswith("ssh://") and "paramiko" in problem:
        why = "Docker's SDK needs paramiko to reach an engine over ssh."
        fix = "Install it beside stackrace: pip install 'docker[ssh]'"
    elif not place.startswith("unix://"):
        why, fix = problem, "Check DOCKER_HOST, and that the daemon there listens."
    elif not path.exists():
        why = (
            f"{path} does not exist: Docker Engine is not installed, or its daemon is not running."
        )
        fix = (
            "Start it: sudo systemctl start docker\n"
            "Install it: https://docs.docker.com/engine/install/\n"
            "One elsewhere: set DOCKER_HOST. Or measure without containers: --backend venv"
        )
    elif not os.access(path, os.R_OK | os.W_OK):
        why = f"{path} is there, but this user may not use it."
        fix = "Join the group docker, and log in again: sudo usermod -aG docker $USER"
    else:
        why = f"{path} is there, but nobody answers: the daemon has stopped, or is starting."
        fix = "Start it: sudo systemctl start docker"
    return EnvironmentFailedError(f"Docker Engine cannot be reached at {place}.", why=why, fix=fix)
