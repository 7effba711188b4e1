"""What stackrace asks of a container engine, and what it is told: the engine itself stays a detail.

`orchestrator.containers` speaks to Docker; tests have an engine of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# On everything that stackrace makes: what lacks it is never touched.
MARK = "stackrace"


class RefusedError(Exception):
    """The engine answered, and the answer was no. `status` is HTTP's."""

    def __init__(self, message: str, *, status: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class LostError(Exception):
    """The engine does not answer (any more)."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine's server says about itself."""

    place: str  # its socket or address: unix:///var/run/docker.sock
    version: str  # 28.2.2
    api: str  # the newest that it speaks: 1.50
    cgroup: str  # 1 or 2
    storage: str  # its storage driver: overlay2
    root: str | None  # where it keeps images, when that is on this machine
    runtimes: tuple[str, ...] = ()  # `nvidia` is among them where that toolkit is configured
    cdi_folders: tuple[str, ...] = ()  # empty: it does not know CDI, or does not tell
    cdi_devices: tuple[str, ...] = ()  # nvidia.com/gpu=GPU-..., told by newer servers only
    memory_limits: bool = True
    swap_limits: bool = True
    machine: str = "x86_64"  # of the server, which may be another machine
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that the engine has."""

    id: str  # sha256:..., of its configuration
    digests: tuple[str, ...] = ()  # name@sha256:..., as registries know it
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    machine: str = "amd64"
    size_bytes: int = 0
    created: float = 0.0  # seconds since 1970


@dataclass(frozen=True, kw_only=True)
class Gpus:
    """The GPUs of a container. `cdi`: asked for as CDI devices, not of the NVIDIA runtime."""

    uuids: tuple[str, ...]
    cdi: bool = False


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container to create: no network, a read-only root, no rights. Volumes: name -> folder."""

    name: str
    image: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "1000:1000"
    stdin: bool = False
    gpus: Gpus | None = None
    memory_bytes: int | None = None
    cpus: str | None = None  # a CPU set: 0-3,8
    shm_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class State:
    """How a container is, or how it ended."""

    running: bool
    exit_code: int = 0
    oom_killed: bool = False
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A container or a volume that carries our mark."""

    id: str
    labels: Mapping[str, str]
    created: float = 0.0  # seconds since 1970, of a volume


class Stdin(Protocol):
    """The standard input of a container; it ends when this is closed, or this process dies."""

    def close(self) -> None:
        """End it."""


class Engine(Protocol):
    """A container engine. Every method but `close` may raise RefusedError and LostError."""

    def close(self) -> None:
        """Close the connections to it."""

    def abilities(self) -> Abilities:
        """What the server can do."""

    def image(self, reference: str) -> Image | None:
        """The image of that name, id or digest, when the engine has it."""

    def images(self) -> list[Image]:
        """Those that carry our mark, unfinished ones too."""

    def pull(self, reference: str) -> Image:
        """Fetch an image from its registry."""

    def build(
        self, context: Iterable[bytes], *, arguments: Mapping[str, str], say: Callable[[str], None]
    ) -> str:
        """Build an image without network from a tar stream; returns its id, it gets no name.

        `say` is told what the build prints.
        """

    def tag(self, image: str, name: str) -> None:
        """Give an image a name: `stackrace/tf114:0123456789ab`."""

    def remove_image(self, image: str) -> None:
        """Remove an image, and what it alone is made of. One that is gone is no error."""

    def create(self, container: Container) -> None:
        """Make a container, not running yet. Its name stands for it from here on."""

    def stdin(self, container: str) -> Stdin:
        """Hold the standard input of a container that was not started yet."""

    def start(self, container: str) -> None:
        """Start it."""

    def wait(self, container: str, timeout_s: float) -> bool:
        """Block until it has ended (true) or the time is over."""

    def state(self, container: str) -> State:
        """How it is."""

    def signal(self, container: str, number: int) -> None:
        """Send a signal to it. One that has ended is no error."""

    def put(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar archive into a folder of a volume of it."""

    def get(self, container: str, path: str) -> bytes | None:
        """The bytes of one file; None when there is none."""

    def tree(self, container: str, path: str) -> bytes | None:
        """A file or a folder with all below it, as a tar archive; None when there is none."""

    def log(self, container: str) -> Iterable[bytes]:
        """What it has written to stdout and stderr, in order."""

    def remove(self, container: str) -> None:
        """Remove it, running or not. One that is gone is no error."""

    def containers(self) -> list[Found]:
        """Those that carry our mark, ended ones too."""

    def make_volume(self, name: str, labels: Mapping[str, str]) -> None:
        """Make a volume, unless it is there."""

    def volumes(self) -> list[Found]:
        """Those that carry our mark."""

    def remove_volume(self, name: str) -> None:
        """Remove it. One that is gone is no error."""
