"""A container engine in memory, which answers and refuses as Docker's does."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from orchestrator.model.container import (
    Abilities,
    Container,
    Found,
    Image,
    LostError,
    RefusedError,
    State,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

ABILITIES = Abilities(
    place="unix:///var/run/docker.sock",
    version="20.10.24",
    api="1.41",
    cgroup="1",
    storage="overlay2",
    root=None,
    runtimes=("runc",),
)


@dataclass
class Running:
    """A container of the fake: its files by path, and how it ends when it is waited for."""

    asked: Container
    files: dict[str, bytes] = field(default_factory=dict)
    started: bool = False
    state: State = field(default_factory=lambda: State(running=False))
    output: bytes = b""
    signals: list[int] = field(default_factory=list)
    stdin_open: bool = False


@dataclass
class Input:
    """The standard input of one."""

    container: Running

    def close(self) -> None:
        """End it."""
        self.container.stdin_open = False


def ends(state: State, *, files: Mapping[str, bytes] | None = None) -> Callable[[Running], None]:
    """A program that has ended in this way as soon as it is looked at."""

    def program(container: Running) -> None:
        container.files |= files or {}
        container.state = state

    return program


def well(container: Running) -> None:
    """A program that has ended well as soon as it is looked at."""
    container.state = State(running=False)


def never(container: Running) -> None:
    """A program that runs on, and heeds no signal but the last one."""
    killed = 9 in container.signals
    container.state = State(running=not killed, exit_code=137 if killed else 0)


@dataclass
class FakeEngine:
    """`program` is run when a container is waited for; `refuses` is asked before a start."""

    program: Callable[[Running], None] = well
    refuses: Callable[[Container], str | None] = lambda _: None
    found: Abilities = ABILITIES
    kept_images: dict[str, Image] = field(default_factory=dict)
    registry: dict[str, Image] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    kept_volumes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    contexts: list[dict[str, bytes]] = field(default_factory=list)
    arguments: list[Mapping[str, str]] = field(default_factory=list)
    made: list[Container] = field(default_factory=list)
    full: bool = False  # its disk takes no file
    keeps_volumes: bool = False  # as while a container is still being removed
    lost: int = 0  # so many calls from now on are not answered

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self) -> None:
        if self.lost > 0:
            self.lost -= 1
            raise LostError("connection refused")

    def _of(self, name: str) -> Running:
        self._answer()
        if name not in self.running:
            raise RefusedError(f"No such container: {name}", status=404)
        return self.running[name]

    def abilities(self) -> Abilities:
        """What it can do."""
        self._answer()
        return self.found

    def image(self, reference: str) -> Image | None:
        """By name, tag or id."""
        self._answer()
        for name, image in self.kept_images.items():
            if reference in {name, image.id, *image.tags}:
                return image
        return None

    def images(self) -> list[Image]:
        """Those with our mark."""
        self._answer()
        return [image for image in self.kept_images.values() if "stackrace" in image.labels]

    def pull(self, reference: str) -> Image:
        """From its registry."""
        self._answer()
        if reference not in self.registry:
            raise RefusedError(f"manifest for {reference} not found", status=404)
        self.kept_images[reference] = self.registry[reference]
        return self.registry[reference]

    def build(
        self, context: Iterable[bytes], *, arguments: Mapping[str, str], say: Callable[[str], None]
    ) -> str:
        """Keep what it was sent."""
        self._answer()
        with tarfile.open(fileobj=io.BytesIO(b"".join(context))) as archive:
            self.contexts.append(
                {
                    item.name: (file.read() if (file := _file(archive, item)) else b"")
                    for item in archive.getmembers()
                }
            )
        say("Step 1/1")
        self.arguments.append(arguments)
        identity = f"sha256:{len(self.contexts)}"
        self.kept_images[identity] = Image(
            id=identity,
            labels={
                "stackrace": "image",
                "stackrace.owner": arguments["OWNER"],
                "stackrace.python": arguments["PYTHON"],
                "stackrace.environment": arguments["ENVIRONMENT"],
            },
        )
        return identity

    def tag(self, image: str, name: str) -> None:
        """Name it."""
        self._answer()
        found = self.kept_images[image]
        self.kept_images[image] = Image(id=image, tags=(name,), labels=found.labels)

    def remove_image(self, image: str) -> None:
        """By id."""
        self._answer()
        self.kept_images.pop(image, None)

    def create(self, container: Container) -> None:
        """Refused without its image."""
        if self.image(container.image) is None:
            raise RefusedError(f"No such image: {container.image}", status=404)
        self.made.append(container)
        self.running[container.name] = Running(asked=container)

    def stdin(self, container: str) -> Input:
        """Open until it is closed."""
        self._of(container).stdin_open = True
        return Input(self.running[container])

    def start(self, container: str) -> None:
        """Creating may succeed where this does not; the container stays."""
        asked = self._of(container).asked
        problem = self.refuses(asked)
        if problem is not None:
            raise RefusedError(problem)
        self.running[container].started = True
        self.running[container].state = State(running=True)

    def wait(self, container: str, timeout_s: float) -> bool:
        """No time passes here."""
        assert timeout_s > 0
        found = self._of(container)
        self.program(found)
        return not found.state.running

    def state(self, container: str) -> State:
        """As its program left it."""
        return self._of(container).state

    def signal(self, container: str, number: int) -> None:
        """Kept."""
        self._of(container).signals.append(number)

    def put(self, container: str, folder: str, archive: bytes) -> None:
        """Into a volume only: the root cannot be written."""
        found = self._of(container)
        if self.full:
            raise RefusedError(f"write {folder}: no space left on device")
        assert folder in found.asked.volumes.values()
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            for item in opened.getmembers():
                file = _file(opened, item)
                found.files[f"{folder}/{item.name}"] = file.read() if file else b""

    def get(self, container: str, path: str) -> bytes | None:
        """One file."""
        return self._of(container).files.get(path)

    def tree(self, container: str, path: str) -> bytes | None:
        """What is below it, under its own last name."""
        parent = path.rpartition("/")[0] + "/"
        files = {
            name.removeprefix(parent): raw
            for name, raw in self._of(container).files.items()
            if name.startswith(f"{path}/")
        }
        if not files:
            return None
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as opened:
            for name, raw in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(raw)
                opened.addfile(info, io.BytesIO(raw))
        return archive.getvalue()

    def log(self, container: str) -> Iterator[bytes]:
        """Its output."""
        yield self._of(container).output

    def remove(self, container: str) -> None:
        """It, but not its named volumes."""
        self._answer()
        self.running.pop(container, None)

    def containers(self) -> list[Found]:
        """All."""
        self._answer()
        return [Found(id=name, labels=item.asked.labels) for name, item in self.running.items()]

    def make_volume(self, name: str, labels: Mapping[str, str]) -> None:
        """As it is, when it is there."""
        self._answer()
        self.kept_volumes.setdefault(name, labels)

    def volumes(self) -> list[Found]:
        """All."""
        self._answer()
        return [Found(id=name, labels=labels) for name, labels in self.kept_volumes.items()]

    def remove_volume(self, name: str) -> None:
        """Refused while a container has it."""
        self._answer()
        if self.keeps_volumes or any(name in item.asked.volumes for item in self.running.values()):
            raise RefusedError(f"volume {name} is in use", status=409)
        self.kept_volumes.pop(name, None)


def _file(archive: tarfile.TarFile, item: tarfile.TarInfo) -> IO[bytes] | None:
    return archive.extractfile(item) if item.isfile() else None
