"""A Docker daemon of a test's own, which it may stop and start again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator import containers

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.containers import DockerEngine


def program(name: str) -> str:
    """Where a program of Docker's is."""
    found = shutil.which(name)
    assert found is not None, f"there is no {name}"
    return found


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Daemon:
    """A dockerd with a folder of its own; beside it, another one may run."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    engines: list[DockerEngine] = field(default_factory=list)

    @property
    def socket(self) -> str:
        """Where it listens on this machine."""
        return f"unix://{self.folder}/docker.sock"

    @property
    def address(self) -> str:
        """Where it listens as a remote one would."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    program("dockerd"),
                    *("-H", self.socket, "-H", self.address, "--tls=false"),
                    *("--data-root", str(self.folder / "data")),
                    *("--exec-root", str(self.folder / "exec")),
                    *("--pidfile", str(self.folder / "pid")),
                    *("--bridge=none", "--iptables=false"),
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while not self._listens():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-1000:]
            time.sleep(0.1)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket.removeprefix("unix://")) == 0

    def engine(self) -> DockerEngine:
        """A connection through its socket; closed when the daemon is stopped for good."""
        return self.connect(self.socket)

    def connect(self, place: str) -> DockerEngine:
        """A connection through its socket or its address."""
        self.engines.append(containers.connect({**os.environ, "DOCKER_HOST": place}))
        return self.engines[-1]

    def load(self, image: str) -> None:
        """Copy an image of the other daemon into this one."""
        docker = program("docker")
        with subprocess.Popen([docker, "save", image], stdout=subprocess.PIPE) as saved:
            subprocess.run([docker, "-H", self.socket, "load"], stdin=saved.stdout, check=True)

    def stop(self) -> None:
        """End it, and its containers with it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)
            self.process = None

    def close(self) -> None:
        """End it, and every connection to it."""
        self.stop()
        for engine in self.engines:
            engine.close()
