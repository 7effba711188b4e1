"""Container images for rows, made of the very files of their virtual environments.

The host builds and probes the virtual environment; the image gets a copy of it. So both hold the
same bytes, and neither the network nor the user's credentials take part in a build.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from orchestrator.environments import bases, context, described, reaping
from orchestrator.environments.container import ContainerEnvironment
from orchestrator.environments.probe import LIMITS, answer, probe
from orchestrator.errors import EnvironmentFailedError, StorageError
from orchestrator.model.container import MARK, LostError, RefusedError
from orchestrator.model.matrix import Row
from orchestrator.model.phrases import first_line
from orchestrator.model.request import Request
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from orchestrator.environments.bases import Inside
    from orchestrator.environments.builder import Job
    from orchestrator.environments.context import Entry
    from orchestrator.environments.options import Options, Wanted
    from orchestrator.model.container import Engine, Image

# Raise it when images are made in another way: those that are there are then made again.
FORMAT = 1
_DIGITS = 12
_MB = 1_000_000
# In a wheel of stackrace, and in a clone of it.
_DOCKERFILES = (
    Path(__file__).parents[1] / "resources" / "docker",
    Path(__file__).parents[2] / "docker",
)
# The interpreter of the virtual environment is one of the host; tests of a Python are not needed.
_NOT_COPIED = re.compile(r"pyvenv\.cfg|bin/python[0-9.]*|stackrace\.json")
_NOT_NEEDED = re.compile(r"lib/python3\.\d+/test|share|include")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An image to find or to make."""

    job: Job
    base: str
    dockerfile: bytes

    @property
    def name(self) -> str:
        """`stackrace/tf114:0123456789ab`: all that decides what is in it makes the tag."""
        parts = [self.job.slot.name, self.base, self.dockerfile.decode(), FORMAT]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
        repository = re.sub(r"[^a-z0-9]+", "-", self.job.row.lock_name).strip("-")
        return f"{MARK}/{repository}:{digest}"


def prepare(
    jobs: Mapping[str, Job],
    wanted: Sequence[Wanted],
    *,
    engine: Engine,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
) -> dict[str, ContainerEnvironment]:
    """Find or make the image of every wanted environment, by identifier, in order.

    `jobs`: the virtual environments, ready, of those that do not bring an image of their own.
    Raises EnvironmentFailedError that says what Docker, or the network, is to be blamed for, and
    StorageError when an image would not fit on the disk.
    """
    maker = _Maker(engine=engine, guest=guest, options=options, say=say)
    with _answering():
        bases.check(engine)
        reaping.reap(engine)
        return {
            item.row.identifier: maker.as_it_is(item.row, item.source)
            if item.source
            else maker.of_row(item.row.identifier, jobs[item.row.identifier])
            for item in wanted
        }


def describe(
    reference: str,
    *,
    identifier: str,
    engine: Engine,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
    known: Iterable[Row] = (),
) -> Row:
    """What is in somebody's image, as a row: its Python is run, and trains one step.

    `known`: rows whose knowledge of what is impossible holds for the same versions.
    Raises EnvironmentFailedError when the image cannot be had, or has nothing to race in it.
    """
    blank = Row(
        identifier=identifier,
        keras="",
        python="",
        packages={},
        size_mb={},
        native_mode="graph",
        apis=(),
        modes=(),
    )
    log = options.cache / "logs" / f"image-{identifier}.log"
    with storage_errors(log, fix=NAME_CACHE):
        log.parent.mkdir(parents=True, exist_ok=True)
    maker = _Maker(engine=engine, guest=guest, options=options, say=say)
    with _answering(), tempfile.TemporaryDirectory(prefix="stackrace-describe-") as name:
        bases.check(engine)
        reaping.reap(engine)
        environment = maker.as_it_is(blank, reference)
        request = Request(action="describe", environment=identifier, phase_path="phases")
        found = answer(environment.run(request, work=Path(name), log=log, limits=LIMITS))
    if isinstance(found, str):
        raise _nothing(reference, found, log)
    if found.outcome != "ok":
        raise _nothing(reference, found.failure.message if found.failure else "", log)
    row = described.row(
        found, identifier=identifier, place=reference, python=environment.python, known=known
    )
    if row is None:
        raise _nothing(reference, described.NOTHING, log)
    return row


def _nothing(reference: str, problem: str, log: Path) -> EnvironmentFailedError:
    return EnvironmentFailedError(
        f"The image {reference} cannot be raced: {first_line(problem).rstrip('.')}.",
        why="It has no TensorFlow, or no Keras with JAX or PyTorch, that imports and trains a\n"
        "step as user 1000, without network, with its root read-only.",
        fix=f"Name another image. Log: {log}",
    )


@contextmanager
def _answering() -> Iterator[None]:
    """Turn what an engine may answer at any time into a message."""
    try:
        yield
    except LostError as error:
        raise EnvironmentFailedError(
            "Docker Engine went away while images were prepared.",
            why=str(error),
            fix="Start it (sudo systemctl start docker), and run the same command again.",
        ) from error
    except RefusedError as error:
        raise EnvironmentFailedError(f"Docker Engine refuses: {error.message}.") from error


def ours(engine: Engine) -> list[Image]:
    """The images that stackrace made, by label; somebody else's are never among them."""
    return [image for image in engine.images() if image.labels.get(MARK) == "image"]


def remove(engine: Engine, images: Sequence[Image]) -> None:
    """Remove images of ours, and the CUDA caches that go with them."""
    gone = {image.id for image in images}
    for image in images:
        engine.remove_image(image.id)
    for volume in engine.volumes():
        if reaping.KEEP in volume.labels and volume.labels.get(reaping.IMAGE) in gone:
            engine.remove_volume(volume.id)


def dockerfile(variant: str) -> bytes:
    """The Dockerfile of a kind: cpu or gpu."""
    name = f"{variant}.Dockerfile"
    path = next(folder / name for folder in _DOCKERFILES if (folder / name).exists())
    return path.read_bytes()


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """What all images of one command share."""

    engine: Engine
    guest: Path
    options: Options
    say: Callable[[str], None]

    def as_it_is(self, row: Row, reference: str) -> ContainerEnvironment:
        """Somebody's image, in which nothing is installed."""
        image = bases.obtain(self.engine, reference, say=self.say)
        python = bases.within(self.engine, image, ["python3", "python"])
        if python is None:
            raise EnvironmentFailedError(
                f"No Python runs in the image {reference}.",
                why="Neither python3 nor python is a CPython on its PATH.",
                fix="Name an image that TensorFlow runs in with python3.",
            )
        return ContainerEnvironment(
            identifier=row.identifier,
            lock_digest=image.id.removeprefix("sha256:"),
            python=python.version,
            image=image.id,
            image_digest=_digest(image),
            interpreter=python.program,
            guest=self.guest,
            engine=self.engine,
            variables=row.variables,
            gpus=self.options.gpus,
            settings=self.options.containers,
        )

    def of_row(self, identifier: str, job: Job) -> ContainerEnvironment:
        """The image of a row, found by its name or made."""
        plan = Plan(
            job=job,
            base=bases.reference(job.row, job.variant, self.options),
            dockerfile=dockerfile(job.variant),
        )
        image = self.engine.image(plan.name)
        if image is None:
            with self._claimed(plan):  # another command may be making it: then it is found
                image = self.engine.image(plan.name) or self._make(plan)
        return self._environment(identifier, job, image)

    @contextmanager
    def _claimed(self, plan: Plan) -> Iterator[None]:
        """Hold the name of an image against other commands that would make it as well."""
        folder = self.options.cache / "images"
        lock = filelock.FileLock(folder / f".{plan.name.replace('/', '-')}.lock")
        with storage_errors(folder, fix=NAME_CACHE):
            folder.mkdir(parents=True, exist_ok=True)
            plan.job.slot.logs.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                self.say(f"{plan.job.name}: another command is making its image, waiting.")
                lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _environment(self, identifier: str, job: Job, image: Image) -> ContainerEnvironment:
        return ContainerEnvironment(
            identifier=identifier,
            lock_digest=job.lock.digest,
            python=image.labels.get(f"{MARK}.python", ""),
            image=image.id,
            image_digest=image.id,
            interpreter=f"{bases.INSIDE}/env/bin/python",
            guest=self.guest,
            engine=self.engine,
            variables=job.row.variables,
            gpus=self.options.gpus,
            settings=self.options.containers,
        )

    def _make(self, plan: Plan) -> Image:
        """Build, probe in a container, and only then give the image its name."""
        job = plan.job
        base = bases.obtain(
            self.engine,
            plan.base,
            say=self.say,
            fix="Name another base in stackrace.toml:\n"
            f'    [container.bases]\n    {job.row.lock_name} = "REGISTRY/IMAGE@sha256:..."',
        )
        self.say(f"{job.name}: making the image {plan.name} from {plan.base}.")
        start = time.monotonic()
        python = bases.choose(
            self.engine, base, job.interpreter, wanted=job.row.python, options=self.options
        )
        if python is None:
            raise _no_python(plan)
        built = self._build(plan, base, python)
        try:
            environment = self._environment(job.row.identifier, job, built)
            probe(environment, job.row, log=job.slot.log)
            self.engine.tag(built.id, plan.name)
        except BaseException:
            self.engine.remove_image(built.id)
            raise
        self.say(f"{job.name}: {plan.name} is ready after {time.monotonic() - start:.0f} s.")
        return built

    def _build(self, plan: Plan, base: Image, python: Inside) -> Image:
        entries = list(_entries(plan.job, python, plan.dockerfile))
        _check_space(self.engine, entries, plan, self.options)
        log = plan.job.slot.log
        with log.open("a", encoding="utf-8") as file:
            try:
                built = self.engine.image(
                    self.engine.build(
                        context.stream(iter(entries)),
                        arguments=_arguments(plan, base, python),
                        say=lambda line: file.writelines([line, "\n"]),
                    )
                )
            except RefusedError as error:
                raise EnvironmentFailedError(
                    f"The image of {plan.job.name} could not be built: {error.message}.",
                    fix=f"Log: {log}",
                ) from error
        if built is None:
            raise EnvironmentFailedError(f"The image of {plan.job.name} was removed at once.")
        return built


def _digest(image: Image) -> str:
    """What names an image everywhere, where a registry has it; else here."""
    return image.digests[0] if image.digests else image.id


def _arguments(plan: Plan, base: Image, python: Inside) -> dict[str, str]:
    job = plan.job
    arguments = {
        "BASE_IMAGE": plan.base,
        "OWNER": reaping.owner(),
        "ENVIRONMENT": job.row.lock_name,
        "LOCK": job.lock.digest,
        "BASE": _digest(base),
        "PYTHON": python.version,
        "FORMAT": str(FORMAT),
    }
    if job.variant == "gpu":
        arguments["LIBRARY_PATH"] = ":".join(_libraries(job.slot.folder))
    return arguments


def _libraries(folder: Path) -> list[str]:
    """Where the CUDA wheels of an environment have their libraries, as paths in the image."""
    return [
        f"{bases.INSIDE}/env/{path.relative_to(folder).as_posix()}"
        for path in sorted(folder.glob("lib/python3*/site-packages/nvidia/*/lib"))
    ]


def _entries(job: Job, python: Inside, dockerfile: bytes) -> Iterator[Entry]:
    yield context.Entry(name="Dockerfile", raw=dockerfile)
    if python.folder is None:
        yield context.Entry(name="python", folder=True)
    else:
        yield from context.tree("python", python.folder, without=_matches(_NOT_NEEDED))
    yield from context.tree("env", job.slot.folder, without=_matches(_NOT_COPIED))
    home = os.path.dirname(python.path)  # noqa: PTH120 (a path of the image, not of this machine)
    settings = f"home = {home}\ninclude-system-site-packages = false\n"
    yield context.Entry(name="env/pyvenv.cfg", raw=settings.encode())
    yield context.Entry(name="env/bin/python", link=python.path)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda path: pattern.fullmatch(path) is not None


def _check_space(engine: Engine, entries: Sequence[Entry], plan: Plan, options: Options) -> None:
    """StorageError when the image would not fit: the context is kept beside what is made of it."""
    root = engine.abilities().root
    if root is None:
        return
    needed = 2 * sum(entry.size for entry in entries)
    free = options.free_bytes(Path(root))
    if free < needed:
        raise StorageError(
            f"The disk of {root}, where Docker keeps images, has {free / _MB:.0f} MB free; making "
            f"{plan.name} may take {needed / _MB:.0f} MB.",
            why="What is sent to Docker is kept there until the image is made of it.",
            fix="Free some space: `stackrace clean`, `docker system df`.",
        )


def _no_python(plan: Plan) -> EnvironmentFailedError:
    row = plan.job.row
    return EnvironmentFailedError(
        f"{row.identifier}: there is no Python {row.python} for its image.",
        why=f"{plan.base} has none, the host's {plan.job.interpreter.path} runs only where it "
        "is,\nand a portable build could not be had.",
        fix="Any of these helps:\n"
        f"- a base with Python {plan.job.interpreter.version}, named in stackrace.toml:\n"
        f'    [container.bases]\n    {row.lock_name} = "python:{row.python}-slim"\n'
        "- a portable interpreter (python-build-standalone) under [interpreters], also for venv",
    )
