"""Interpreters from elsewhere: uv's (3.8 and newer), and portable builds of CPython (3.7)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import filelock
from pbs_installer import install

from orchestrator.environments.durable import give_name
from orchestrator.environments.uv import binary, variables
from orchestrator.process import ToolError, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.environments.uv import Runner

# The oldest that uv offers for download.
UV_OLDEST = (3, 8)
_TIMEOUT_S = 900.0


class UnavailableError(Exception):
    """This way of getting an interpreter is closed; the text says why, in a few words."""


class Installer(Protocol):
    """Downloads a portable build: `pbs_installer.install`, or a fake."""

    def __call__(self, request: str, destination: Path, *, arch: str, platform: str) -> None:
        """Unpack the newest build of version `request` into `destination`."""


def uv_managed(version: str, *, run: Runner = run_tool) -> Iterator[Path]:
    """Those that uv has downloaded before, for whatever purpose."""
    out = _uv(["python", "find", "--managed-python", "--no-python-downloads", version], run)
    if isinstance(out, str):
        yield Path(out.strip())


def uv_download(version: str, *, run: Runner = run_tool) -> Iterator[Path]:
    """A download by uv, into uv's own folder."""
    if _numbers(version) < UV_OLDEST:
        raise UnavailableError(f"uv offers none before {UV_OLDEST[0]}.{UV_OLDEST[1]}")
    out = _uv(["python", "install", "--no-bin", version], run)
    if isinstance(out, ToolError):
        raise UnavailableError(f"it could not be downloaded: {_last_line(out.tail)}") from out
    yield from uv_managed(version, run=run)


def portable_is_here(version: str, folder: Path) -> bool:
    """Whether the portable build was downloaded before."""
    return _numbers(version) < UV_OLDEST and (folder / f"cpython-{version}").exists()


def portable(version: str, folder: Path, *, install: Installer = install) -> Iterator[Path]:
    """A build of python-build-standalone, into `folder`, for what uv no longer offers.

    It appears there whole or not at all; two commands do not download it twice.
    """
    if _numbers(version) >= UV_OLDEST:
        raise UnavailableError("used only for versions that uv does not offer")
    final = folder / f"cpython-{version}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / f".{final.name}.lock"):
            if not final.exists():
                _install(version, final, install)
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be written: {error.strerror}") from error
    yield final / "bin" / f"python{version}"


def _install(version: str, final: Path, install: Installer) -> None:
    for stale in final.parent.glob(f".{final.name}.*.tmp"):
        shutil.rmtree(stale, ignore_errors=True)
    temporary = final.with_name(f".{final.name}.{uuid4().hex}.tmp")
    try:
        install(version, temporary, arch="x86_64", platform="linux")
        give_name(temporary, final)
    except Exception as error:
        # The installer lets through whatever its HTTP client, archive readers and disk raise.
        text = _last_line(str(error)) or type(error).__name__
        raise UnavailableError(f"it could not be downloaded: {text}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _uv(arguments: Sequence[str], run: Runner) -> str | ToolError:
    with tempfile.TemporaryDirectory(prefix="stackrace-uv-") as name:
        try:
            return run(
                [binary(), *arguments],
                env=variables(os.environ),
                log=Path(name) / "log",
                timeout_s=_TIMEOUT_S,
                cwd=Path(name),
            )
        except ToolError as error:
            return error


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip() if text.strip() else ""
