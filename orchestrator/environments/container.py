"""A container image that runs one worker process at a time, each in a container of its own."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import msgspec

from orchestrator.environments import context, reaping
from orchestrator.environments.variables import CUDA_CACHE, allowed, gpu_variables, matching
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model import codec
from orchestrator.model.container import (
    MARK,
    Container,
    Gpus,
    LostError,
    RefusedError,
    State,
)
from orchestrator.model.container_options import ContainerOptions
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.process import LADDER_S, now, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.model.container import Engine
    from orchestrator.model.names import Backend, Device
    from orchestrator.model.plan import Limits
    from orchestrator.model.record import Instant
    from orchestrator.model.request import Request

USER = 1000
# The job's volume: what the host put there, and `out`, where the worker may write.
JOB = "/job"
OUT = f"{JOB}/out"
WORKLOAD = f"{JOB}/workload"
TRACE = f"{OUT}/trace"
CACHE = "/cache"
# To look into a container takes Docker a tenth of a second, and the job as much of its cores: done
# when a limit may have been exceeded or a beat is due, and then this often until the first call is
# over.
WATCH_S = 5.0
BEAT_S = 60.0
PATIENCE_S = 60.0
_AFTER_FIRST_CALL = "warmup"

# Of the host's own disk and devices: inside, these would name something else or nothing.
HOST_ONLY = matching(
    ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "SSL_CERT_*", "CUDA_VISIBLE_DEVICES", "CUDA_CACHE_*")
)

# Exit codes of the engine and of its init, not of the worker.
_NOT_STARTED = frozenset({125, 126, 127})
_SIGNALLED = range(129, 193)

NO_SPACE = "no space left on device"
NO_DRIVER = "could not select device driver"
TOOLKIT = """Install the NVIDIA container toolkit, and tell Docker of it:
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
    sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker
    docker run --rm --gpus all ubuntu nvidia-smi
`stackrace doctor` shows what Docker and the driver offer. Without a GPU: --device cpu"""


@dataclass(frozen=True, kw_only=True)
class ContainerEnvironment:
    """A prepared image. `interpreter` is a path inside it, `guest` the zipapp to run."""

    identifier: str
    lock_digest: str
    python: str
    image: str  # its id: a tag could be moved
    image_digest: str
    interpreter: str
    guest: Path
    engine: Engine
    variables: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    settings: ContainerOptions = field(default_factory=ContainerOptions)
    patience_s: float = PATIENCE_S  # for an engine that went away

    @property
    def backend(self) -> Backend:
        """How it is isolated."""
        return "container"

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """Run one worker process in a container of its own, its output in `log`.

        Nothing of it is left afterwards. Raises EnvironmentFailedError when the image is gone, the
        engine stays away, or it cannot hand out the GPUs.
        """
        name = f"{MARK}-{uuid4().hex}"
        start = now()
        try:
            execution = self._run(name, request, log=log, limits=limits, beat=beat, start=start)
        except LostError as error:
            self._await_engine(name, error)
            execution = Execution(
                start=start,
                end=now(),
                result=None,
                log_tail=tail(log),
                lost=f"Docker Engine went away while the job ran: {error}",
            )
        except RefusedError as error:  # somebody removed the container, or its disk is full
            if NO_SPACE in error.message.lower():
                raise EnvironmentFailedError(
                    "The disk on which Docker keeps its volumes is full.",
                    why=error.message,
                    fix="Free some space (`stackrace clean`, `docker system df`), and go on with "
                    "--resume.",
                ) from error
            execution = Execution(
                start=start,
                end=now(),
                result=None,
                log_tail=tail(log),
                lost=f"Docker Engine refused what the job needed: {error.message}",
            )
        if execution.result is not None:
            (work / "result.json").write_bytes(execution.result)
        return execution

    def _run(
        self,
        name: str,
        request: Request,
        *,
        log: Path,
        limits: Limits,
        beat: Beat,
        start: Instant,
    ) -> Execution:
        with self._started(name, request) as problem:
            if problem is not None:
                return Execution(start=start, end=now(), result=None, start_error=problem)
            exceeded = _watch(self.engine, name, limits=limits, beat=beat)
            if exceeded is not None:
                _end(self.engine, name)
            end = now()
            state = self.engine.state(name)
            with log.open("ab") as file:
                file.writelines(self.engine.log(name))
            if request.trace_folder:
                self._bring_trace(name, Path(request.trace_folder))
            result = self.engine.get(name, f"{OUT}/result.json")
            well = result is not None and exceeded is None and state.exit_code == 0
            entered = [] if well else _phases(self.engine, name)
            return Execution(
                start=start,
                end=end,
                result=result,
                exceeded=exceeded,
                last_phase=entered[-1] if entered else None,
                log_tail=tail(log),
                **_meaning(state, log),
            )

    @contextmanager
    def _started(self, name: str, request: Request) -> Iterator[str | None]:
        """A started container, or why it could not be started; removed with its volume."""
        labels = {MARK: "job", reaping.OWNER: reaping.owner()}
        stdin = None
        try:
            self.engine.make_volume(name, labels)
            problems: list[str] = []
            for gpus in self._ways(request.device):
                self._create(name, request, labels=labels, gpus=gpus)
                stdin = self.engine.stdin(name)
                problem = self._start(name, gpus)
                if problem is None:
                    problems.clear()
                    break
                problems.append(problem)
                stdin.close()
                self.engine.remove(name)
            if problems and request.device == "gpu":
                raise _no_gpu(problems)
            yield problems[0] if problems else None
        finally:
            if stdin is not None:
                stdin.close()
            # Looked for again when the engine is back; what is refused now, by the next command.
            with suppress(LostError, RefusedError):
                self._remove(name)

    def _ways(self, device: Device) -> tuple[Gpus | None, ...]:
        """How to ask for the GPUs, in order; older engines know no CDI."""
        if device == "cpu":
            return (None,)
        return (Gpus(uuids=self.gpus), Gpus(uuids=self.gpus, cdi=True))

    def _create(
        self, name: str, request: Request, *, labels: Mapping[str, str], gpus: Gpus | None
    ) -> None:
        volumes = {name: JOB}
        variables = {**worker_variables(os.environ, device=request.device), **self.variables}
        if gpus is not None:
            cache = self._cuda_cache()
            volumes[cache] = CACHE
            # Which GPUs these are, the engine sees to.
            variables |= gpu_variables({}, gpus=(), cache=Path(CACHE))
            variables[CUDA_CACHE] = f"{CACHE}/cuda"
        asked = _inside(request)
        container = Container(
            name=name,
            image=self.image,
            # -s and not -I, which would ignore PYTHONHASHSEED.
            command=(
                *(self.interpreter, "-s", f"{JOB}/guest.pyz"),
                *(f"{JOB}/request.json", f"{OUT}/result.json"),
            ),
            variables=variables,
            labels=labels,
            volumes=volumes,
            folder=OUT,
            user=f"{USER}:{USER}",
            stdin=True,
            gpus=gpus,
            memory_bytes=self.settings.memory_bytes,
            cpus=self.settings.cpus,
            shm_bytes=self.settings.shm_bytes,
        )
        try:
            self.engine.create(container)
        except RefusedError as error:
            raise EnvironmentFailedError(
                f"{self.identifier}: no container can be made of its image: {error.message}.",
                why="The image was removed, or Docker does not allow what the options ask for.",
                fix="`stackrace prepare` makes a missing image again.",
            ) from error
        files = {"guest.pyz": self.guest.read_bytes(), "request.json": codec.encode(asked)}
        self.engine.put(name, JOB, context.archive(files, owned={"out": USER, "out/home": USER}))
        if request.workload:
            folder = context.tree("workload", Path(request.workload).parent)
            self.engine.put(name, JOB, b"".join(context.stream(folder)))
        if gpus is not None:
            self.engine.put(name, CACHE, context.archive({}, owned={"cuda": USER}))

    def _start(self, name: str, gpus: Gpus | None) -> str | None:
        """Start it; why that failed, or None."""
        try:
            self.engine.start(name)
        except RefusedError as error:
            if gpus is not None and not _is_about_gpus(error.message):
                raise EnvironmentFailedError(
                    f"{self.identifier}: its container does not start: {error.message}."
                ) from error
            return error.message
        return None

    def _bring_trace(self, name: str, folder: Path) -> None:
        """Copy what a profile left of the framework's own trace to where the host looks for it."""
        with suppress(RefusedError):  # without it the profile is as good
            raw = self.engine.tree(name, TRACE)
            if raw is not None:
                context.unpack(raw, folder)

    def _cuda_cache(self) -> str:
        """The volume of what is compiled for these GPUs and this image; made when absent."""
        identity = "|".join([self.image, *self.gpus])
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        name = f"{MARK}-cuda-{digest}"
        labels = {
            MARK: "cuda",
            reaping.KEEP: "1",
            reaping.IMAGE: self.image,
            reaping.ENVIRONMENT: self.identifier,
        }
        self.engine.make_volume(name, labels)
        return name

    def _remove(self, name: str) -> None:
        self.engine.remove(name)
        self.engine.remove_volume(name)

    def _await_engine(self, name: str, error: LostError) -> None:
        """Remove what the job left as soon as the engine is back."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                self._remove(name)
            except (LostError, RefusedError):  # refused: it is still starting
                if time.monotonic() >= deadline:
                    raise EnvironmentFailedError(
                        "Docker Engine went away while a job ran, and did not come back.",
                        why=str(error),
                        fix="Start it (sudo systemctl start docker), and go on with --resume: what "
                        "was measured is kept.",
                    ) from error
                time.sleep(min(1.0, self.patience_s))
            else:
                return


def _inside(request: Request) -> Request:
    """The request with paths as they are in the container."""
    return msgspec.structs.replace(
        request,
        phase_path=f"{OUT}/phases",
        workload=f"{WORKLOAD}/{Path(request.workload).name}" if request.workload else "",
        trace_folder=TRACE if request.trace_folder else "",
        parent_pid=None,
        host_on_stdin=True,
    )


def worker_variables(user: Mapping[str, str], *, device: Device) -> dict[str, str]:
    """What a worker in a container gets of the user's variables, and what instead of them."""
    kept = {name: value for name, value in allowed(user).items() if not HOST_ONLY.match(name)}
    kept |= {
        "HOME": f"{OUT}/home",
        "KERAS_HOME": f"{OUT}/home/.keras",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "USER": MARK,  # the user has no account there, and some libraries ask for its name
    }
    if device == "cpu":
        kept |= {"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "void"}
    return kept


def _watch(
    engine: Engine, container: str, *, limits: Limits, beat: Beat
) -> Literal["first_call", "job"] | None:
    """Wait for its end, and return the limit that it exceeded, if any.

    Most jobs end before any limit can have been reached, and nobody looks at them. Of one that has
    not, only a look tells under which it is: so a worker that hangs while it measures may be given
    up to twice its time.
    """
    begun = time.monotonic()
    alone_s = min(limits.first_call_s, limits.job_s)
    if engine.wait(container, alone_s if beat is silent else min(alone_s, BEAT_S)):
        return None
    while _AFTER_FIRST_CALL not in _phases(engine, container):
        lasted = time.monotonic() - begun
        beat(lasted)
        left = limits.first_call_s - lasted
        if left <= 0:
            return "first_call"
        if engine.wait(container, min(WATCH_S, left)):
            return None
    return None if engine.wait(container, limits.job_s) else "job"


def _end(engine: Engine, container: str) -> None:
    for number, patience_s in LADDER_S:
        engine.signal(container, number)
        if engine.wait(container, patience_s):
            return


def _phases(engine: Engine, container: str) -> list[str]:
    raw = None
    with suppress(RefusedError):  # damaged: it grew while it was read, and is read again
        raw = engine.get(container, f"{OUT}/phases")
    return [] if raw is None else raw.decode("utf-8", "replace").split()


def _meaning(state: State, log: Path) -> dict[str, Any]:
    """Exit code, signal, or that it never started, as an Execution has them."""
    code = state.exit_code
    if code in _NOT_STARTED:
        return {"start_error": state.error or tail(log) or f"exit code {code}"}
    oom = {"oom_kills": 1} if state.oom_killed else {}
    if code in _SIGNALLED:
        return {"signal": code - 128, **oom}
    return {"exit_code": code, **oom}


def _is_about_gpus(message: str) -> bool:
    words = message.lower()
    return any(word in words for word in (NO_DRIVER, "nvidia", "cdi"))


def _no_gpu(problems: list[str]) -> EnvironmentFailedError:
    return EnvironmentFailedError(
        "Docker cannot hand a GPU to a container.",
        why="\n".join(dict.fromkeys(problems)),
        fix=TOOLKIT,
    )
