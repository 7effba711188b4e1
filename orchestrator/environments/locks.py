"""Locks: every package of an environment by version and hash, made once and committed."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from orchestrator.environments.uv import uv
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.names import Variant
from orchestrator.process import run_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from orchestrator.environments.uv import Runner
    from orchestrator.model.matrix import Row

LOCKS = Path(__file__).parents[1] / "resources" / "locks"
VARIANTS: tuple[Variant, ...] = get_args(Variant)

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


def read(row: Row, variant: Variant, *, locks: Path = LOCKS) -> Lock:
    """The lock of a row; EnvironmentFailedError when it was never made."""
    path = lock_path(row, variant, locks=locks)
    try:
        return Lock(path=path, text=path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EnvironmentFailedError(
            f"{row.identifier} has no lock for {variant}: {path} does not exist.",
            why="The row was added to the matrix, but its lock was not made.",
            fix="Run `nox -s lock`, and commit the file.",
        ) from error


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
            text = _compile(row, variant, python=python, old=path, run=run)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                changed.append(path)
            say(f"{path.name}: {text.count('==')} packages")
    return changed


def _compile(row: Row, variant: Variant, *, python: Path, old: Path, run: Runner) -> str:
    with tempfile.TemporaryDirectory(prefix="stackrace-lock-") as name:
        folder = Path(name)
        wanted, constraints, out = (folder / file for file in ("in", "constraints", "lock.txt"))
        wanted.write_text("\n".join(row.packages[variant]), encoding="utf-8")
        constraints.write_text("\n".join(row.constraints), encoding="utf-8")
        if old.exists():
            shutil.copyfile(old, out)  # uv keeps what the output file already pins
        command: list[str | Path] = ["pip", "compile", "--quiet", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--python", python]
        command += ["--constraints", constraints, "--output-file", out]
        if any(package.startswith("tensorflow-cpu==") for package in row.packages[variant]):
            # tf-keras asks for `tensorflow` by that name; both would be unpacked into one folder.
            excluded = folder / "excluded"
            excluded.write_text("tensorflow\n", encoding="utf-8")
            command += ["--excludes", excluded]
        command += [wanted]
        uv(command, log=folder / "log", cwd=folder, run=run)
        pins = out.read_text(encoding="utf-8")
    return f"# {row.title}, {variant}, Python {row.python}. Made by `nox -s lock`.\n{pins}"
