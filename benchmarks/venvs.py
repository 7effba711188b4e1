"""Virtual environments of the benchmarks' own, in the user's cache: made once, then found."""

from __future__ import annotations

import hashlib
import shutil
import sys
from typing import TYPE_CHECKING

from benchmarks import commands
from orchestrator import config
from orchestrator.environments import interpreters, locks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

UV = (sys.executable, "-m", "uv")
# Hashes make it safe to take a file from whichever index has it.
SYNC = ("--require-hashes", "--index-strategy", "unsafe-best-match")


def folder() -> Path:
    """Where the benchmarks keep what takes long to make."""
    return config.cache_folder() / "benchmarks"


def python(version: str = "3.7") -> Path:
    """An interpreter of this version, found as stackrace finds it."""
    where = config.cache_folder() / "interpreters"
    return interpreters.find(version, configured={}, downloads_folder=where).path


def lock(identifier: str) -> Path:
    """The lock that stackrace makes this environment from, on the CPU."""
    return locks.LOCKS / f"{identifier}-cpu.txt"


def uv(where: Path, requirements: Sequence[Path], *, interpreter: Path, compiled: bool) -> None:
    """Make an environment with bare uv, and install these locks into it."""
    commands.run([*UV, "venv", "--quiet", "--relocatable", "--python", interpreter, where])
    files = [word for path in requirements for word in ("-r", path)]
    commands.run(
        [
            *(*UV, "pip", "install", "--quiet", "--python", where / "bin" / "python", *SYNC),
            *(("--compile-bytecode",) if compiled else ()),
            *files,
        ]
    )


def kept(name: str, requirements: Sequence[Path], *, interpreter: Path) -> Path:
    """An environment of these locks in the cache, made when it is not there."""
    text = "".join(path.read_text(encoding="utf-8") for path in requirements)
    digest = hashlib.sha256(f"{interpreter}\n{text}".encode()).hexdigest()[:12]
    place = folder() / f"{name}-{digest}"
    if not place.exists():
        unfinished = place.with_suffix(".tmp")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        uv(unfinished, requirements, interpreter=interpreter, compiled=True)
        unfinished.rename(place)
    return place
