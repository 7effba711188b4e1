"""Docker Engine through its SDK: one thin class, which knows nothing of benchmarks."""

from __future__ import annotations

import io
import socket
import tarfile
from contextlib import contextmanager, suppress
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker.errors
import requests
import urllib3
from docker.types import DeviceRequest, LogConfig

from orchestrator.model.container import (
    MARK,
    Abilities,
    Container,
    Found,
    Image,
    LostError,
    RefusedError,
    State,
    Stdin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_CONNECT_S = 60  # for an engine elsewhere; how long is waited for an answer is another matter
_BUILD_TIMEOUT_S = 3600  # for a silence of this long: a context of some GB is sent and unpacked
_LOG = LogConfig(type=LogConfig.types.JSON, config={"max-size": "16m", "max-file": "1"})
# Of the job alone, and gone with it; XLA and Triton run what they compile there.
_TMPFS = {"/tmp": "rw,exec,nosuid,nodev,mode=1777"}  # noqa: S108


@contextmanager
def _answers() -> Iterator[None]:
    """Turn what the SDK and its HTTP client raise into the two things that can happen."""
    try:
        yield
    except docker.errors.APIError as error:
        message = str(error.explanation or error).strip()
        status = error.response.status_code if error.response is not None else 500
        raise RefusedError(message, status=status) from error
    except (
        docker.errors.DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as error:
        raise LostError(str(error)) from error


@contextmanager
def _unless_gone() -> Iterator[None]:
    """What is gone already needs no ending; neither does what another thread is removing."""
    try:
        with _answers():
            yield
    except RefusedError as error:
        if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
            raise


class DockerEngine:
    """Docker Engine, as `orchestrator.model.container.Engine` asks for it."""

    def __init__(self, api: Any, place: str) -> None:  # noqa: ANN401 (the SDK's own client)
        self._api = api
        self._place = place

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def abilities(self) -> Abilities:
        """What the server can do."""
        with _answers():
            info, version = self._api.info(), self._api.version()
        root = info.get("DockerRootDir", "")
        local = self._place.startswith("unix://") and bool(root) and Path(root).exists()
        return Abilities(
            place=self._place,
            version=version.get("Version", ""),
            api=version.get("ApiVersion", ""),
            cgroup=str(info.get("CgroupVersion") or "1"),
            storage=info.get("Driver", ""),
            root=root if local else None,
            runtimes=tuple(sorted(info.get("Runtimes") or ())),
            cdi_folders=tuple(info.get("CDISpecDirs") or ()),
            cdi_devices=tuple(
                item["ID"]
                for item in info.get("DiscoveredDevices") or ()
                if item.get("Source") == "cdi"
            ),
            memory_limits=bool(info.get("MemoryLimit")),
            swap_limits=bool(info.get("SwapLimit")),
            machine=info.get("Architecture", ""),
            warnings=tuple(info.get("Warnings") or ()),
        )

    def image(self, reference: str) -> Image | None:
        """The image of that name, id or digest, when the engine has it."""
        try:
            with _answers():
                found = self._api.inspect_image(reference)
        except RefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return Image(
            id=found["Id"],
            digests=tuple(found.get("RepoDigests") or ()),
            tags=tuple(found.get("RepoTags") or ()),
            labels=(found.get("Config") or {}).get("Labels") or {},
            machine=found.get("Architecture", ""),
            size_bytes=found.get("Size", 0),
            created=_seconds(found.get("Created", "")),
        )

    def images(self) -> list[Image]:
        """Those that carry our mark, unfinished ones too."""
        with _answers():
            listed = self._api.images(filters={"label": MARK})
        return [
            Image(
                id=item["Id"],
                tags=tuple(tag for tag in item.get("RepoTags") or () if tag != "<none>:<none>"),
                labels=item.get("Labels") or {},
                size_bytes=item.get("Size", 0),
                created=float(item.get("Created", 0)),
            )
            for item in listed
        ]

    def pull(self, reference: str) -> Image:
        """Fetch an image from its registry, with the user's own credentials for it."""
        with _answers():
            # Without a tag the SDK would fetch every tag that there is.
            named = reference if _has_tag(reference) else f"{reference}:latest"
            for line in self._api.pull(named, stream=True, decode=True, platform="linux/amd64"):
                if "error" in line:
                    raise RefusedError(line["error"])
        found = self.image(named)
        if found is None:
            raise RefusedError(f"{named} is not there after it was pulled", status=404)
        return found

    def build(
        self, context: Iterable[bytes], *, arguments: Mapping[str, str], say: Callable[[str], None]
    ) -> str:
        """Build an image without network from a tar stream; returns its id, it gets no name."""
        identity = ""
        with _answers():
            for line in self._api.build(
                fileobj=context,
                custom_context=True,
                buildargs=dict(arguments),
                network_mode="none",
                rm=True,
                forcerm=True,
                decode=True,
                timeout=_BUILD_TIMEOUT_S,
            ):
                if "error" in line:
                    raise RefusedError(line["error"].strip())
                if line.get("stream", "").strip():
                    say(line["stream"].strip())
                identity = line.get("aux", {}).get("ID", identity)
        if not identity:
            raise RefusedError("the build ended without an image")
        return identity

    def tag(self, image: str, name: str) -> None:
        """Give an image a name: `stackrace/tf114:0123456789ab`."""
        repository, _, tag = name.rpartition(":")
        with _answers():
            self._api.tag(image, repository, tag, force=True)

    def remove_image(self, image: str) -> None:
        """Remove an image, and what it alone is made of. One that is gone is no error."""
        try:
            with _answers():
                self._api.remove_image(image, force=True)
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def create(self, container: Container) -> None:
        """Make a container, not running yet. Its name stands for it from here on."""
        program, *arguments = container.command
        with _answers():
            self._api.create_container(
                container.image,
                name=container.name,
                entrypoint=[program],  # whatever the image would start
                command=arguments,
                environment=dict(container.variables),
                labels=dict(container.labels),
                user=container.user,
                working_dir=container.folder,
                stdin_open=container.stdin,
                healthcheck={"test": ["NONE"]},
                host_config=self._host_config(container),
            )

    def _host_config(self, container: Container) -> Any:  # noqa: ANN401 (the SDK's own dict)
        # Swap would turn a memory limit into slowness that looks like the model's.
        memory = {} if container.memory_bytes is None else {"memswap_limit": container.memory_bytes}
        return self._api.create_host_config(
            **memory,
            network_mode="none",
            read_only=True,
            tmpfs=_TMPFS,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            init=True,
            log_config=_LOG,
            binds=[f"{name}:{folder}:nocopy" for name, folder in container.volumes.items()],
            mem_limit=container.memory_bytes,
            cpuset_cpus=container.cpus,
            shm_size=container.shm_bytes,
            device_requests=_device_requests(container),
        )

    def stdin(self, container: str) -> Stdin:
        """Hold the standard input of a container that was not started yet."""
        with _answers():
            opened = self._api.attach_socket(container, params={"stdin": 1, "stream": 1})
        return _Stdin(opened)

    def start(self, container: str) -> None:
        """Start it."""
        with _answers():
            self._api.start(container)

    def wait(self, container: str, timeout_s: float) -> bool:
        """Block until it has ended (true) or the time is over."""
        try:
            with _answers():
                self._api.wait(container, timeout=(_CONNECT_S, timeout_s))
        except LostError as error:
            if _is_timeout(error.__cause__):
                return False
            raise
        return True

    def state(self, container: str) -> State:
        """How it is."""
        with _answers():
            found = self._api.inspect_container(container)["State"]
        return State(
            running=found["Running"],
            exit_code=found["ExitCode"],
            oom_killed=found["OOMKilled"],
            error=found["Error"],
        )

    def signal(self, container: str, number: int) -> None:
        """Send a signal to it. One that has ended is no error."""
        with _unless_gone():
            self._api.kill(container, signal=number)

    def put(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar archive into a folder of a volume of it."""
        with _answers():
            self._api.put_archive(container, folder, archive)

    def tree(self, container: str, path: str) -> bytes | None:
        """A file or a folder with all below it, as a tar archive; None when there is none."""
        try:
            with _answers():
                chunks, _ = self._api.get_archive(container, path)
                return b"".join(chunks)
        except RefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def get(self, container: str, path: str) -> bytes | None:
        """The bytes of one file; None when there is none."""
        raw = self.tree(container, path)
        if raw is None:
            return None
        try:
            with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
                member = archive.next()
                file = archive.extractfile(member) if member is not None else None
                return file.read() if file is not None else None
        except tarfile.TarError as error:  # cut short, as when the file grew meanwhile
            raise RefusedError(f"{path} came back damaged: {error}") from error

    def log(self, container: str) -> Iterable[bytes]:
        """What it has written to stdout and stderr, in order."""
        with _answers():
            yield from self._api.logs(container, stdout=True, stderr=True, stream=True)

    def remove(self, container: str) -> None:
        """Remove it, running or not. One that is gone is no error."""
        with _unless_gone():
            self._api.remove_container(container, v=True, force=True)

    def containers(self) -> list[Found]:
        """Those that carry our mark, ended ones too."""
        with _answers():
            listed = self._api.containers(all=True, filters={"label": MARK})
        return [Found(id=item["Id"], labels=item.get("Labels") or {}) for item in listed]

    def make_volume(self, name: str, labels: Mapping[str, str]) -> None:
        """Make a volume, unless it is there."""
        with _answers():
            self._api.create_volume(name, labels=dict(labels))

    def volumes(self) -> list[Found]:
        """Those that carry our mark."""
        with _answers():
            listed = self._api.volumes(filters={"label": MARK})
        return [
            Found(
                id=item["Name"],
                labels=item.get("Labels") or {},
                created=_seconds(item.get("CreatedAt") or ""),
            )
            for item in listed.get("Volumes") or ()
        ]

    def remove_volume(self, name: str) -> None:
        """Remove it. One that is gone is no error."""
        try:
            with _answers():
                self._api.remove_volume(name, force=True)
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise


class _Stdin:
    """The SDK hands out a socket, or a file over one, depending on how it is connected."""

    def __init__(self, opened: Any) -> None:  # noqa: ANN401
        self._opened = opened

    def close(self) -> None:
        """End it."""
        # A file over a socket that was closed before has none any more.
        inner = getattr(self._opened, "_sock", self._opened)
        if inner is not None:
            with suppress(OSError):
                inner.shutdown(socket.SHUT_RDWR)
        # The response first: it flushes what it wraps, and that must not be closed yet.
        for part in (getattr(self._opened, "_response", None), self._opened, inner):
            if part is not None:
                with suppress(OSError):
                    part.close()


def _device_requests(container: Container) -> list[DeviceRequest] | None:
    gpus = container.gpus
    if gpus is None:
        return None
    if gpus.cdi:
        names = [f"nvidia.com/gpu={uuid}" for uuid in gpus.uuids]
        return [DeviceRequest(driver="cdi", device_ids=names)]
    return [DeviceRequest(device_ids=list(gpus.uuids), capabilities=[["gpu"]])]


def _is_timeout(error: BaseException | None) -> bool:
    """Whether only our patience ended; requests wraps it in either of two ways."""
    if isinstance(error, requests.exceptions.ReadTimeout):
        return True
    return isinstance(error, requests.exceptions.ConnectionError) and any(
        isinstance(cause, urllib3.exceptions.ReadTimeoutError) for cause in error.args
    )


def _has_tag(reference: str) -> bool:
    return "@" in reference or ":" in reference.rpartition("/")[2]


def _seconds(moment: str) -> float:
    with suppress(ValueError):
        return datetime.fromisoformat(moment).timestamp()
    return 0.0
