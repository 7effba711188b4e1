"""The guest as the host meets it: an archive, a request, an interpreter of any age."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import msgspec
import pytest

from orchestrator import guest, process
from orchestrator.model import codec
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request
from orchestrator.model.result import RESULT_SCHEMA, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

STUBS = Path(__file__).parent / "stubs"
VERSIONS = ("3.6", "3.7", "3.8", "3.9", "3.11", "3.13")
PATIENT = Limits(first_call_s=300.0, job_s=300.0)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What one process left behind."""

    result: Result | None
    exit_code: int | None
    exceeded: str | None
    phases: list[str]
    log: str


class RunGuest(Protocol):
    """`run_guest(python, {"api": "keras"}, stub={"behaviour": "raise"})`."""

    def __call__(
        self,
        python: Path,
        fields: Mapping[str, object] = ...,
        *,
        limits: Limits = ...,
        raw: bytes | None = None,
        stub: dict[str, str] | None = None,
    ) -> Ended:
        """Run the guest on a request with these fields, or on these raw bytes."""


def find_interpreter(version: str) -> Path | None:
    """A Python of this version that really runs: a pyenv shim may be there and refuse."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = sorted(root.glob(f"versions/{version}.*/bin/python"))
    on_path = shutil.which(f"python{version}")
    for path in [*candidates, *([Path(on_path)] if on_path else []), Path(sys.executable)]:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        shown = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if shown.stdout.strip() == version:
            return path
    return None


@pytest.fixture(scope="session", params=VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    """Each of the interpreters that the guest promises to run on."""
    found = find_interpreter(request.param)
    if found is None:
        reason = f"no Python {request.param} is installed (pyenv install {request.param})"
        if os.environ.get("STACKRACE_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest, built once."""
    return guest.build(tmp_path_factory.mktemp("guest")).path


@pytest.fixture
def weird_path(tmp_path: Path) -> Path:
    """A folder whose name has all that a careless program trips over."""
    folder = tmp_path / 'it\'s a "folder"\nwith ünïcode'
    folder.mkdir()
    return folder


@pytest.fixture
def variables() -> dict[str, str]:
    """The environment of a worker that finds the stubs."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": str(STUBS),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "CUDA_VISIBLE_DEVICES": "-1",
        "LC_ALL": "C.UTF-8",
    }


@pytest.fixture
def run_guest(archive: Path, weird_path: Path, variables: dict[str, str]) -> RunGuest:
    """Run the guest against the stubs, through the host's own door to processes."""

    def run(
        python: Path,
        fields: Mapping[str, object] = MappingProxyType({}),
        *,
        limits: Limits = PATIENT,
        raw: bytes | None = None,
        stub: dict[str, str] | None = None,
    ) -> Ended:
        asked, left = weird_path / "request.json", weird_path / "result.json"
        phases, log = weird_path / "phases", weird_path / "log"
        if raw is None:
            raw = codec.encode(ask(phases, fields))
        asked.write_bytes(raw)
        ended = process.run_worker(
            [python, "-s", archive, asked, left],
            env={
                **variables,
                **{f"STUB_{key.upper()}": value for key, value in (stub or {}).items()},
            },
            log=log,
            limits=limits,
            in_first_call=lambda: not (phases.exists() and "warmup" in phases.read_text()),
            cwd=weird_path,
        )
        result = None
        if left.exists():
            result = codec.decode(left.read_bytes(), Result, source=left, schema=RESULT_SCHEMA)
        return Ended(
            result=result,
            exit_code=ended.exit_code,
            exceeded=ended.exceeded,
            phases=phases.read_text().split() if phases.exists() else [],
            log=log.read_text(),
        )

    return run


def ask(phases: Path, fields: Mapping[str, object]) -> Request:
    """A request that the stubs can fulfil, with these fields instead."""
    request = Request(
        action="measure",
        environment="tf20",
        expected=Expected(tensorflow="2.0.0", keras="2.3.1"),
        mode="eager",
        batch_shape=(2, 3, 4),
        iterations=25,
        warmup=4,
        phase_path=str(phases),
        parent_pid=os.getpid(),
    )
    return msgspec.structs.replace(request, **fields)
