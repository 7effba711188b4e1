"""What an image is made from: its base, and the Python that runs inside.

The Python is the very version of the virtual environment wherever that can be had, because another
one explains a difference as well as another TensorFlow does.
"""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from orchestrator.environments import downloads, interpreters, reaping
from orchestrator.environments.interpreters import Interpreter
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.container import MARK, Container, RefusedError
from orchestrator.process import ToolError, run_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.environments.options import Options
    from orchestrator.environments.uv import Runner
    from orchestrator.model.container import Engine, Image
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Variant

# Where the Dockerfiles put them.
INSIDE = "/opt/stackrace"
_TIMEOUT_S = 60.0
_MACHINES = frozenset({"x86_64", "amd64"})
_NO_WHEELS = "The TensorFlow releases that stackrace compares have no wheels but for x86-64."

# Old syntax only, as in `interpreters`.
_ASK_INSIDE = (
    "import json, os, platform, sys; "
    "print(json.dumps({'version': platform.python_version(), "
    "'path': os.path.realpath(sys.executable), 'program': sys.executable, "
    "'implementation': platform.python_implementation()}))"
)
_ASK_OUTSIDE = (
    "import json, sys, sysconfig; v = sysconfig.get_config_vars(); "
    "print(json.dumps({'prefix': getattr(sys, 'base_prefix', sys.prefix), "
    "'standalone': bool(v.get('PYTHON_BUILD_STANDALONE')) "
    "or '--prefix=/install' in str(v.get('CONFIG_ARGS'))}))"
)
# How uv names the folder of one, and stackrace (`downloads.portable`) its own.
_PORTABLE_FOLDER = re.compile(r"cpython-3\.\d+(\.\d+.*-linux-.*)?")


@dataclass(frozen=True, kw_only=True)
class Inside:
    """The Python of an image: `path` in it, and the folder to copy there where that is ours."""

    path: str  # of the binary itself
    version: str
    program: str = ""  # as its image starts it: perhaps that of a virtual environment
    folder: Path | None = None


class _Found(msgspec.Struct, frozen=True):
    version: str
    path: str
    program: str
    implementation: str


class _Build(msgspec.Struct, frozen=True):
    prefix: str
    standalone: bool


def check(engine: Engine) -> None:
    """EnvironmentFailedError when the engine's machine cannot run these images."""
    found = engine.abilities()
    if found.machine not in _MACHINES:
        raise EnvironmentFailedError(
            f"Docker Engine at {found.place} runs on {found.machine}.",
            why=_NO_WHEELS,
            fix="Name an engine on such a machine with DOCKER_HOST.",
        )


def reference(row: Row, variant: Variant, options: Options) -> str:
    """The base image of a row: the user's, else the row's, else the slim one of its Python."""
    named = options.containers.bases.get(row.lock_name)
    if named:
        return named
    if variant == "gpu":
        if row.cuda is None:
            raise EnvironmentFailedError(f"{row.identifier} has no GPU build.")
        return row.cuda.base_image
    return row.base_image or f"python:{row.python}-slim"


def obtain(engine: Engine, reference: str, *, say: Callable[[str], None], fix: str = "") -> Image:
    """The image of that name; fetched when the engine has none."""
    found = engine.image(reference)
    if found is None:
        say(f"{reference}: pulling.")
        try:
            found = engine.pull(reference)
        except RefusedError as error:
            raise EnvironmentFailedError(
                f"The image {reference} cannot be had: {error.message.rstrip('.')}.",
                why="Docker has no such image, and fetching it failed: its registry cannot be "
                "reached, wants credentials\n(docker login), or has no such name or tag.",
                fix=fix or f"Try `docker pull {reference}`.",
            ) from error
    if found.machine not in _MACHINES:
        raise EnvironmentFailedError(
            f"The image {reference} is for {found.machine}.",
            why=_NO_WHEELS,
            fix=f"docker pull --platform linux/amd64 {reference}",
        )
    return found


def choose(
    engine: Engine,
    base: Image,
    interpreter: Interpreter,
    *,
    wanted: str,
    options: Options,
    run: Runner = run_tool,
) -> Inside | None:
    """The Python for an image, `wanted` being a version such as 3.7; None where there is none.

    The first of these with the very version of `interpreter`, which made the virtual environment:
    itself where it is a portable build, the base's own, a portable build from elsewhere. Else the
    first with the same minor version.
    """
    near: list[Inside] = []
    own = portable(interpreter, run=run)
    found = within(engine, base, [f"python{wanted}", "python3", "python"])
    ready = [item for item in (own, found) if item is not None]
    for candidate in itertools.chain(ready, _downloaded(wanted, options, run)):
        if candidate.version == interpreter.version:
            return candidate
        if _minor(candidate.version) == _minor(wanted):
            near.append(candidate)
    return near[0] if near else None


def _downloaded(wanted: str, options: Options, run: Runner) -> Iterator[Inside]:
    """Portable builds from elsewhere; those that are on this machine first."""
    ways: tuple[Callable[[], Iterator[Path]], ...] = (
        lambda: downloads.uv_managed(wanted, run=run),
        lambda: downloads.uv_download(wanted, run=run),
        lambda: downloads.portable(wanted, options.cache / "interpreters"),
    )
    for way in ways:
        with suppress(downloads.UnavailableError):
            for path in way():
                other = interpreters.inspect(path, wanted, run=run)
                if isinstance(other, Interpreter) and (moved := portable(other, run=run)):
                    yield moved


def portable(interpreter: Interpreter, *, run: Runner = run_tool) -> Inside | None:
    """How an interpreter goes into an image; None unless it is a build that runs anywhere.

    Those are python-build-standalone's, which uv and pbs-installer fetch: they bring their own
    libraries, and find themselves wherever they stand.
    """
    with tempfile.TemporaryDirectory(prefix="stackrace-python-") as name:
        try:
            out = run(
                [interpreter.path, "-I", "-c", _ASK_OUTSIDE],
                env={"PATH": os.defpath},
                log=Path(name) / "log",
                timeout_s=_TIMEOUT_S,
            )
            build = msgspec.json.decode(out, type=_Build)
        except (ToolError, msgspec.MsgspecError):
            return None
    folder = Path(build.prefix).resolve()
    if not build.standalone and _PORTABLE_FOLDER.fullmatch(folder.name) is None:
        return None
    program = f"bin/python{_minor(interpreter.version)}"
    if not (folder / program).exists():
        return None
    return Inside(path=f"{INSIDE}/python/{program}", version=interpreter.version, folder=folder)


def within(engine: Engine, image: Image, names: list[str]) -> Inside | None:
    """The first of these programs that is a CPython in an image; looked up without network."""
    for program in names:
        found = _ask(engine, image, program)
        if found is not None and found.implementation == "CPython":
            return Inside(path=found.path, version=found.version, program=found.program)
    return None


def _ask(engine: Engine, image: Image, program: str) -> _Found | None:
    name = f"{MARK}-{uuid4().hex}"
    try:
        engine.create(
            Container(
                name=name,
                image=image.id,
                command=(program, "-I", "-c", _ASK_INSIDE),
                labels={MARK: "look", reaping.OWNER: reaping.owner()},
            )
        )
        engine.start(name)
        if not engine.wait(name, _TIMEOUT_S):
            return None
        # The image's own entry point is not run, but libraries may talk as well.
        for line in b"".join(engine.log(name)).decode("utf-8", "replace").splitlines():
            if line.startswith("{"):
                return msgspec.json.decode(line, type=_Found)
    except (RefusedError, msgspec.MsgspecError):  # no such program
        return None
    finally:
        engine.remove(name)
    return None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
