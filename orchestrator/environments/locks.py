"""Locks: every package of an environment by version and hash, made once and kept."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from uuid import uuid4

from orchestrator.environments.uv import conflict, uv
from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.model.names import Variant
from orchestrator.process import run_tool
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from orchestrator.environments.uv import Runner
    from orchestrator.model.matrix import Row

LOCKS = Path(__file__).parents[1] / "resources" / "locks"
VARIANTS: tuple[Variant, ...] = get_args(Variant)

_DIGITS = 8
_PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Lock:
    """One lock file. `digest` is the SHA-256 of its text, in hexadecimal."""

    path: Path
    text: str

    @property
    def digest(self) -> str:
        """What records name the lock by."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def pins(self) -> dict[str, str]:
        """Package -> version."""
        return dict(_PIN.findall(self.text))


def lock_path(row: Row, variant: Variant, *, locks: Path = LOCKS) -> Path:
    """Where the lock of a row stands; a copy of a row has none of its own."""
    return locks / f"{row.lock_name}-{variant}.txt"


def own_path(row: Row, variant: Variant, *, own: Path) -> Path:
    """Where the lock of a row that is not the matrix's stands, in the user's own folder.

    What it was resolved from is part of the name: a row that was changed gets another lock, and a
    run that was made with the old one finds that.
    """
    asked = [row.packages[variant], row.constraints, row.python]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:_DIGITS]
    return own / f"{row.lock_name}-{variant}-{digest}.txt"


def read(
    row: Row,
    variant: Variant,
    *,
    locks: Path = LOCKS,
    own: Path | None = None,
    python: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
    run: Runner = run_tool,
) -> Lock:
    """The lock of a row: the one that ships with stackrace, else one in the folder `own`.

    The latter is resolved when it is not there yet, for the interpreter `python`, or without one
    for the row's version of Python. With packages that the user adds (`extra`) it is one of its own
    that keeps every pin of the row's. Raises EnvironmentFailedError when there is no lock to be
    had, UsageError when these packages do not fit.
    """
    if variant not in row.packages:
        raise EnvironmentFailedError(
            f"{row.identifier} has no build for {variant}.",
            fix="Leave it out, or add packages and size_mb for it to its table in stackrace.toml.",
        )
    base = _base(row, variant, locks=locks, own=own, python=python, say=say, run=run)
    if not row.extra or own is None:
        return base
    path = _extra_path(row, variant, base, own=own)
    if not path.exists():
        say(f"{row.identifier}: adding {', '.join(row.extra)}.")
        _make_extra(row, variant, base, path, python=python, run=run)
    return Lock(path=path, text=path.read_text(encoding="utf-8"))


def _base(
    row: Row,
    variant: Variant,
    *,
    locks: Path,
    own: Path | None,
    python: Path | None,
    say: Callable[[str], None],
    run: Runner,
) -> Lock:
    """The lock of a row without what the user adds to it."""
    if row.ours or own is None:
        path = lock_path(row, variant, locks=locks)
    else:
        path = own_path(row, variant, own=own)
        if not path.exists():
            say(f"{row.identifier}: resolving {row.title} for {variant}, Python {row.python}.")
            _make_own(row, variant, path, python=python, run=run)
    try:
        return Lock(path=path, text=path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EnvironmentFailedError(
            f"{row.identifier} has no lock for {variant}: {path} does not exist.",
            why="The row was added to the matrix, but its lock was not made.",
            fix="Run `nox -s lock`, and commit the file.",
        ) from error


def newest(
    package: str, *, python: Path, folder: Path, run: Runner = run_tool
) -> Mapping[str, str]:
    """What an unpinned package is today: the pins of its newest release and all that it needs.

    `folder` keeps uv's log. Raises EnvironmentFailedError when the index does not tell.
    """
    with storage_errors(folder, fix=NAME_CACHE):
        folder.mkdir(parents=True, exist_ok=True)
    text = _resolve([package], [], python=python, old=None, log=folder / f"{package}.log", run=run)
    return Lock(path=folder, text=text).pins


def compile_locks(
    rows: Iterable[Row],
    *,
    interpreter: Callable[[str], Path],
    say: Callable[[str], None],
    locks: Path = LOCKS,
    run: Runner = run_tool,
) -> list[Path]:
    """Make the locks of the rows, each variant that they have; return the files that changed.

    `interpreter` gives the path of a Python for a version such as `3.7`. Pins that still hold stay
    as they are; a lock that was deleted is made anew.
    """
    changed: list[Path] = []
    for row in rows:
        python = interpreter(row.python)
        for variant in (variant for variant in VARIANTS if variant in row.packages):
            path = lock_path(row, variant, locks=locks)
            log = Path(tempfile.gettempdir()) / f"stackrace-{path.stem}.log"
            pins = _resolve(
                row.packages[variant], row.constraints, python=python, old=path, log=log, run=run
            )
            log.unlink(missing_ok=True)
            text = f"{_title(row, variant)} Made by `nox -s lock`.\n{pins}"
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                changed.append(path)
            say(f"{path.name}: {text.count('==')} packages")
    return changed


def _make_own(row: Row, variant: Variant, path: Path, *, python: Path | None, run: Runner) -> None:
    with storage_errors(path.parent, fix=NAME_CACHE):
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.with_suffix(".log")
        text = _resolve(
            row.packages[variant],
            row.constraints,
            python=python or row.python,
            old=None,
            log=log,
            run=run,
        )
        _keep(path, f"{_title(row, variant)}\n{text}")
        log.unlink(missing_ok=True)


def _extra_path(row: Row, variant: Variant, base: Lock, *, own: Path) -> Path:
    asked = [base.text, row.extra, row.python]
    digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:_DIGITS]
    return own / f"{row.lock_name}-{variant}-with-{digest}.txt"


def _make_extra(
    row: Row, variant: Variant, base: Lock, path: Path, *, python: Path | None, run: Runner
) -> None:
    """Lock what the user adds. The row's own pins are asked for as well, so that none changes."""
    pins = [f"{name}=={version}" for name, version in base.pins.items()]
    log = path.with_suffix(".log")
    with storage_errors(path.parent, fix=NAME_CACHE):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            text = _resolve(
                [*pins, *row.extra],
                row.constraints,
                python=python or row.python,
                old=None,
                log=log,
                run=run,
                excluded=_excluded(row.packages[variant]),
            )
        except EnvironmentFailedError as error:
            if not (said := conflict(log)):
                raise
            raise UsageError(
                f"--with {', '.join(row.extra)} does not fit {row.identifier}.",
                why=f"{said}\nLog: {log}",
                fix="Name a version that does, such as --with 'pandas<1.4': the environment's own "
                "packages never change.",
            ) from error
        _keep(path, f"{_title(row, variant)}\n{text}")
    log.unlink(missing_ok=True)


def _keep(path: Path, text: str) -> None:
    """Give a lock its name, unless another command was faster: then both use that one's."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    temporary.write_text(text, encoding="utf-8")
    with suppress(FileExistsError):
        path.hardlink_to(temporary)
    temporary.unlink()


def _title(row: Row, variant: Variant) -> str:
    return f"# {row.title}, {variant}, Python {row.python}."


def _resolve(
    packages: Sequence[str],
    constraints: Sequence[str],
    *,
    python: Path | str,
    old: Path | None,
    log: Path,
    run: Runner,
    excluded: Sequence[str] | None = None,
) -> str:
    """Pins with hashes. `python`: an interpreter, or a version such as `3.7`.

    Pins of the file `old` that still hold stay as they are. `log` is there after a failure.
    `excluded`: what no package gets although it asks for it; by default what `packages` exclude.
    """
    with tempfile.TemporaryDirectory(prefix="stackrace-lock-") as name:
        folder = Path(name)
        files = {
            "in": packages,
            "constraints": constraints,
            "excluded": _excluded(packages) if excluded is None else excluded,
        }
        for file, lines in files.items():
            (folder / file).write_text("\n".join(lines), encoding="utf-8")
        out = folder / "lock.txt"
        if old is not None and old.exists():
            shutil.copyfile(old, out)  # uv keeps what the output file already pins
        command: list[str | Path] = ["pip", "compile", "--quiet", "--generate-hashes"]
        command += ["--no-header", "--no-annotate"]
        command += ["--python" if isinstance(python, Path) else "--python-version", python]
        # As for installing: hashes make it safe to take a file from whichever index has it.
        command += ["--index-strategy", "unsafe-best-match"]
        command += ["--constraints", folder / "constraints", "--excludes", folder / "excluded"]
        uv([*command, "--output-file", out, folder / "in"], log=log, cwd=folder, run=run)
        return out.read_text(encoding="utf-8")


def _excluded(packages: Sequence[str]) -> list[str]:
    """What others ask for and must not get.

    tf-keras asks for `tensorflow`, tf-nightly for keras-nightly: two packages would be unpacked
    into one folder. TensorFlow 2.15.0 asks for TensorRT, which the index does not have.
    """
    names = {re.split(r"[=\[]", package)[0] for package in packages}
    excluded = ["tensorflow"] if "tensorflow-cpu" in names else []
    if any("[and-cuda]" in package for package in packages):
        excluded += ["tensorrt", "tensorrt-bindings", "tensorrt-libs"]
    return [*excluded, "keras-nightly"] if {"tf-nightly", "keras"} <= names else excluded
