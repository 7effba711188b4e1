"""Somebody's own interpreter, used as it is: nothing is installed or written into it.

What stackrace knows of such an environment is what its guest finds in it.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from orchestrator.environments import described, interpreters, locks, workers
from orchestrator.environments.probe import LIMITS, answer
from orchestrator.environments.variables import gpu_variables
from orchestrator.errors import MOST_NAMES, EnvironmentFailedError, UsageError
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.model.matrix import Row, framework
from orchestrator.model.names import FRAMEWORKS, Variant
from orchestrator.model.phrases import count, first_line
from orchestrator.model.request import Request
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.model.names import Backend
    from orchestrator.model.plan import Limits
    from orchestrator.model.result import Result

_DIGITS = 12
OLDEST = (3, 6)  # the syntax that the guest is written in


@dataclass(frozen=True, kw_only=True)
class ExistingEnvironment:
    """An interpreter at `path` that somebody else filled; `guest` is the zipapp to run."""

    identifier: str
    lock_digest: str
    python: str
    path: Path
    guest: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()  # UUIDs that jobs on a GPU get
    cuda_cache: Path | None = None  # where code that is compiled for a GPU is kept
    cores: tuple[int, ...] = ()  # that workers are bound to; none: as the host is

    @property
    def backend(self) -> Backend:
        """How it is isolated."""
        return "existing"

    @property
    def image_digest(self) -> None:
        """It runs in no image."""
        return

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """Run one worker process in the empty folder `work`, its output in `log`.

        Raises EnvironmentFailedError when the interpreter or the guest was removed meanwhile.
        """
        for path, right in ((self.path, os.X_OK), (self.guest, os.R_OK)):
            if not os.access(path, right):
                raise EnvironmentFailedError(
                    f"{self.identifier} cannot run any more: {path} is gone.",
                    why="It was removed, or may no longer be used, while the run went on.",
                    fix="Go on with --resume when it is there again.",
                )
        on_gpu = (
            gpu_variables(os.environ, gpus=self.gpus, cache=self.cuda_cache)
            if request.device == "gpu"
            else {}
        )
        return workers.run(
            self.path,
            self.guest,
            request,
            variables={**self.variables, **on_gpu, "PYTHONDONTWRITEBYTECODE": "1"},
            work=work,
            log=log,
            limits=limits,
            beat=beat,
            cores=self.cores,
        )


def environment(
    row: Row,
    path: str,
    *,
    guest: Path,
    gpus: tuple[str, ...] = (),
    cuda_caches: Path | None = None,
    cores: tuple[int, ...] = (),
) -> ExistingEnvironment:
    """The environment that a described row stands for. `cuda_caches`: the folder for its own."""
    digest = described.digest(row)
    cache = f"{row.lock_name}-existing-{digest[:_DIGITS]}"
    return ExistingEnvironment(
        identifier=row.identifier,
        lock_digest=digest,
        python=row.python,
        path=_absolute(path),
        guest=guest,
        variables=row.variables,
        gpus=gpus,
        cuda_cache=None if cuda_caches is None else cuda_caches / cache,
        cores=cores,
    )


def describe(
    path: str,
    *,
    identifier: str,
    guest: Path,
    log: Path,
    known: Iterable[Row] = (),
    environ: Mapping[str, str] = os.environ,
) -> Row:
    """What is in the interpreter at `path`, as a row: it is run, and trains one step.

    `packages` are all that is installed, as `name==version`. `known`: rows whose knowledge of what
    is impossible holds for the same versions.
    Raises UsageError when there is no fit Python at `path`, EnvironmentFailedError when it has no
    TensorFlow or Keras that works.
    """
    python = _check(path, environ)
    variables = {name: value for name, value in environ.items() if name == described.SELECTS}
    undescribed = ExistingEnvironment(
        identifier=identifier,
        lock_digest="",
        python=python.version,
        path=python.path,
        guest=guest,
        variables=variables,
    )
    with storage_errors(log, fix=NAME_CACHE):
        log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stackrace-describe-") as name:
        request = Request(
            action="describe", environment=identifier, phase_path=str(Path(name) / "phases")
        )
        execution = undescribed.run(request, work=Path(name), log=log, limits=LIMITS)
    found = _working(answer(execution), path, log)
    row = described.row(
        found, identifier=identifier, place=path, python=python.version, known=known
    )
    if row is None:
        raise _nothing(path, described.NOTHING, log)
    return msgspec.structs.replace(row, variables={**variables, **row.variables})


def differences(
    row: Row, found: Row, *, variant: Variant = "cpu", folder: Path = locks.LOCKS
) -> list[str]:
    """What is not in `found` as it is in the row that has its name, one line each."""
    name, here = row.identifier, framework(found)
    lines = []
    if here != framework(row):
        kind, version = framework(row)
        lines.append(
            f"{FRAMEWORKS[here[0]]} {here[1]} where {name} has {FRAMEWORKS[kind]} {version}"
        )
    if found.keras != row.keras:
        lines.append(f"{_keras(found)} where {name} has {_keras(row)}")
    if _minor(found.python) != _minor(row.python):
        lines.append(f"Python {found.python} where {name} has {row.python}")
    try:
        pins = locks.read(row, variant, locks=folder).pins
    except EnvironmentFailedError:
        return lines
    return [*lines, *_other_packages(pins, found, name)]


def _check(path: str, environ: Mapping[str, str]) -> interpreters.Interpreter:
    """The interpreter, if the guest can run in it."""
    place = _absolute(path)
    if place.is_dir():
        wrong = "is a folder"
    else:
        found = interpreters.examine(place, environ=environ)
        if isinstance(found, interpreters.Interpreter):
            if tuple(map(int, found.version.split(".")[:2])) >= OLDEST:
                return found
            found = f"is Python {found.version}"
        wrong = found
    raise UsageError(
        f"--python {path} cannot be used: it {wrong}.",
        why="The worker needs CPython 3.6 or newer on x86-64.",
        fix="Name the interpreter itself, such as /opt/conda/envs/mine/bin/python.",
    )


def _absolute(path: str) -> Path:
    # Not resolved: a virtual environment's python is a link, and the link is what it is.
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise UsageError(f"--python {path}: there is no such user.") from error


def _working(found: Result | str, path: str, log: Path) -> Result:
    if isinstance(found, str):
        raise _nothing(path, found, log)
    if found.outcome != "ok":
        raise _nothing(path, first_line(found.failure.message if found.failure else ""), log)
    return found


def _nothing(path: str, problem: str, log: Path) -> EnvironmentFailedError:
    return EnvironmentFailedError(
        f"{path} cannot be raced: {problem.rstrip('.')}.",
        why="It has no TensorFlow, or no Keras with JAX or PyTorch, that imports and trains a\n"
        "step. Workers do not see PYTHONPATH, through which some modules bring their packages.",
        fix="Nothing is installed into it for you: install what it lacks, or name a script that\n"
        f'sets PYTHONPATH and ends with: exec {path} "$@"\nLog: {log}',
    )


def _other_packages(pins: Mapping[str, str], found: Row, name: str) -> list[str]:
    here = dict(package.split("==", maxsplit=1) for package in found.packages["cpu"])
    here = {_plain(package): version for package, version in here.items()}
    other = [
        f"{package} {here.get(package, 'missing')} for {version}"
        for package, version in ((_plain(pin), version) for pin, version in pins.items())
        if here.get(package) != version
    ]
    if not other:
        return []
    more = f" and {len(other) - MOST_NAMES} more" if len(other) > MOST_NAMES else ""
    shown = ", ".join(other[:MOST_NAMES])
    return [f"{count(len(other), 'package')} not as in the lock of {name}: {shown}{more}"]


def _keras(row: Row) -> str:
    return f"Keras {row.keras}" if row.keras else "no Keras package"


def _plain(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
