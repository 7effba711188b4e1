"""Python interpreters: found on the machine where that is possible, downloaded where it is not.

Version requests are not left to uv: it stops at the first pyenv shim that does not run, and knows
no download older than 3.8. It is always handed an absolute path.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from orchestrator import store
from orchestrator.environments import downloads
from orchestrator.errors import EnvironmentFailedError, StackraceError, UsageError, nearest
from orchestrator.process import ToolError, run_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from orchestrator.environments.uv import Runner

# Old syntax only: this runs in whatever was found.
_SCRIPT = (
    "import json, platform, struct, sys; "
    "print(json.dumps({'version': platform.python_version(), 'build': sys.version, "
    "'machine': platform.machine(), 'bits': struct.calcsize('P') * 8, "
    "'implementation': platform.python_implementation()}))"
)
# ctypes and zlib are missing where a Python was built without the headers; numpy needs the one,
# wheels the other.
_MAKES_ENVIRONMENTS = "import ctypes, venv, zlib; "
_TIMEOUT_S = 60.0
KNOWN = "known"  # in the folder of downloads: what was found fit
_LIBRARIES = "LD_LIBRARY_PATH"
_ELF = b"\x7fELF"
_WITHOUT_DOWNLOAD = 3  # so many of the ways, the first ones, only look


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python that was run and found fit. `build` is its `sys.version`."""

    path: Path
    version: str
    build: str


class Way(NamedTuple):
    """One way to come by an interpreter; `candidates` yields paths, best first.

    It may raise UnavailableError with the reason why this way is closed.
    """

    name: str
    candidates: Callable[[], Iterator[Path]]


class _Facts(msgspec.Struct, frozen=True):
    version: str
    build: str
    machine: str
    bits: int
    implementation: str


def check_configured(configured: Iterable[str], *, versions: Collection[str]) -> None:
    """UsageError when a version is configured that none of `versions` is: it would be ignored."""
    for version in configured:
        if version not in versions:
            raise UsageError(
                f"[interpreters] names Python {version!r}, which no environment uses. "
                f"{nearest(version, versions)}".rstrip(),
                fix="Correct the [interpreters] table of stackrace.toml, or remove the line.",
            )


def find(
    version: str,
    *,
    configured: Mapping[str, Path],
    downloads_folder: Path,
    environ: Mapping[str, str] = os.environ,
    run: Runner = run_tool,
) -> Interpreter:
    """A fit CPython for a version such as `3.7`.

    `configured`: paths by version, from the user; one that is there must be fit.
    Raises EnvironmentFailedError that lists what was tried and every way to get one.
    """
    if version in configured:
        return _configured(version, configured[version], environ=environ, run=run)
    every = ways(version, downloads_folder, environ=environ, run=run)
    return first_fit(version, every, environ=environ, run=run, known=downloads_folder / KNOWN)


def installed(
    version: str,
    *,
    configured: Mapping[str, Path],
    downloads_folder: Path,
    environ: Mapping[str, str] = os.environ,
    run: Runner = run_tool,
) -> Interpreter | None:
    """As `find`, but without a download: None when there would have to be one."""
    if version in configured:
        return _configured(version, configured[version], environ=environ, run=run)
    here = ways(version, downloads_folder, environ=environ, run=run)
    fetched = downloads.portable_is_here(version, downloads_folder)
    kept = [*here[:_WITHOUT_DOWNLOAD], *(here[-1:] if fetched else ())]
    try:
        return first_fit(version, kept, environ=environ, run=run)
    except EnvironmentFailedError:
        return None


def ways(
    version: str, downloads_folder: Path, *, environ: Mapping[str, str], run: Runner
) -> list[Way]:
    """All ways, those without a download first."""
    return [
        Way("pyenv", lambda: _pyenv(version, environ)),
        Way("PATH", lambda: _on_path(version, environ)),
        Way("uv's own Pythons", lambda: downloads.uv_managed(version, run=run)),
        Way("uv's download", lambda: downloads.uv_download(version, run=run)),
        Way("portable build", lambda: downloads.portable(version, downloads_folder)),
    ]


def first_fit(
    version: str,
    ways: Sequence[Way],
    *,
    environ: Mapping[str, str] = os.environ,
    run: Runner = run_tool,
    known: Path | None = None,
) -> Interpreter:
    """The first candidate that runs and is what was asked for.

    `known`: a folder that remembers what was found fit.
    """
    tried: list[str] = []
    for way in ways:
        count = len(tried)
        try:
            for path in way.candidates():
                memory = None if known is None else _Memory.of(path, known, environ)
                if memory and (recalled := memory.recall()) and _is(recalled, version):
                    return recalled
                found = inspect(path, version, environ=environ, run=run)
                if isinstance(found, Interpreter):
                    if memory:
                        memory.keep(found)
                    return found
                tried.append(f"{way.name}: {path} {found}")
        except downloads.UnavailableError as error:
            tried.append(f"{way.name}: {error}")
        if len(tried) == count:
            tried.append(f"{way.name}: none")
    raise EnvironmentFailedError(
        f"There is no Python {version} on this machine that can be used.",
        why="Looked for in this order:\n" + "\n".join(f"- {line}" for line in tried),
        fix=_every_way(version),
    )


def inspect(
    path: Path,
    version: str,
    *,
    environ: Mapping[str, str] = os.environ,
    run: Runner = run_tool,
) -> Interpreter | str:
    """The interpreter at `path`, or what is wrong with it, to be read after its path."""
    found = examine(path, environ=environ, run=run, script=_MAKES_ENVIRONMENTS)
    if isinstance(found, Interpreter) and not _is(found, version):
        return f"is Python {found.version}"
    return found


def _is(found: Interpreter, version: str) -> bool:
    return found.version.split(".")[:2] == version.split(".")[:2]


class _Remembered(msgspec.Struct, frozen=True):
    """A fit interpreter, and what it was known by."""

    mark: str
    version: str
    build: str


@dataclass(frozen=True, kw_only=True)
class _Memory:
    """What a Python said of itself once, for as long as its file stays the same.

    To ask it takes 50 ms, of every command that finds its environments prepared.
    """

    path: Path
    file: Path
    mark: str

    @classmethod
    def of(cls, path: Path, folder: Path, environ: Mapping[str, str]) -> _Memory | None:
        """The memory of this one; None for a script, which may start another one tomorrow."""
        try:
            with path.open("rb") as program:
                if program.read(len(_ELF)) != _ELF:
                    return None
            stat = path.stat()
        except OSError:
            return None
        mark = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino} {environ.get(_LIBRARIES, '')}"
        name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
        return cls(path=path.absolute(), file=folder / f"{name}.json", mark=mark)

    def recall(self) -> Interpreter | None:
        """What it said, when that still holds."""
        try:
            found = msgspec.json.decode(self.file.read_bytes(), type=_Remembered)
        except (OSError, msgspec.MsgspecError):
            return None
        if found.mark != self.mark:
            return None
        return Interpreter(path=self.path, version=found.version, build=found.build)

    def keep(self, found: Interpreter) -> None:
        """Remember it; where that cannot be written, it is asked again."""
        told = _Remembered(mark=self.mark, version=found.version, build=found.build)
        with suppress(OSError, StackraceError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            store.write_report(self.file, msgspec.json.encode(told))


def examine(
    path: Path,
    *,
    environ: Mapping[str, str] = os.environ,
    run: Runner = run_tool,
    script: str = "",
) -> Interpreter | str:
    """The interpreter at `path`, whatever its version, or what is wrong with it.

    `script`: what it must be able to do besides.
    """
    # Workers get it too: a Python of an HPC module finds its own libpython only there.
    libraries = {name: value for name, value in environ.items() if name == _LIBRARIES}
    with tempfile.TemporaryDirectory(prefix="stackrace-python-") as name:
        log = Path(name) / "log"
        try:
            out = run(
                [path, "-I", "-B", "-c", script + _SCRIPT],
                env={"PATH": os.defpath, **libraries},
                log=log,
                timeout_s=_TIMEOUT_S,
            )
        except ToolError as error:
            said = error.tail.splitlines()[1:2]  # the line after the command
            if said == ["Unknown option: -I"]:
                return "is older than Python 3.4"
            return f"does not run: {error.problem}" + "".join(f" ({line})" for line in said)
    try:
        facts = msgspec.json.decode(out, type=_Facts)
    except msgspec.MsgspecError:
        return "is not a Python: it printed something else"
    if facts.implementation != "CPython":
        return f"is {facts.implementation}; TensorFlow needs CPython"
    if (facts.machine, facts.bits) != ("x86_64", 64):
        return f"is a {facts.bits}-bit {facts.machine} build; TensorFlow's wheels are for x86-64"
    return Interpreter(path=path.absolute(), version=facts.version, build=facts.build)


def _configured(
    version: str, path: Path, *, environ: Mapping[str, str], run: Runner
) -> Interpreter:
    found = inspect(path, version, environ=environ, run=run)
    if isinstance(found, Interpreter):
        return found
    raise UsageError(
        f"The Python {version} that is configured cannot be used: {path} {found}.",
        fix="Correct the [interpreters] table of stackrace.toml, or remove the line.",
    )


def _pyenv(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """The real binaries, newest patch first; the shims only work for the active version."""
    home = environ.get("HOME")
    root = environ.get("PYENV_ROOT") or (f"{home}/.pyenv" if home else None)
    if root is None:
        return
    found = [
        (int(match[1]), folder)
        for folder in Path(root, "versions").glob(f"{version}.*")
        if (match := re.fullmatch(rf"{re.escape(version)}\.(\d+)", folder.name))
    ]
    for _, folder in sorted(found, reverse=True):
        yield folder / "bin" / "python"


def _on_path(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which(f"python{version}", path=folder) if folder else None
        if path:
            yield Path(path)


def _every_way(version: str) -> str:
    return f"""Any of these gets one:
- pyenv:  pyenv install {version}
- conda:  conda create -n python-{version} python={version}
- a portable build of python-build-standalone, unpacked anywhere
- one that you have already
What is not found by itself is named in stackrace.toml:
    [interpreters]
    "{version}" = "/path/to/bin/python{version}\""""
