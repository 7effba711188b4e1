"""What a job costs in a container: against `docker run` of the same command, as a person has it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from itertools import count
from pathlib import Path

from benchmarks import commands
from benchmarks.figures import Figure, Measured, ratios
from orchestrator import config, guest, log, matrix
from orchestrator import environments as stage
from orchestrator.environments.container import ContainerEnvironment
from orchestrator.environments.options import Options, Wanted
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model import codec
from orchestrator.model.container_options import ContainerOptions
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request

NAME = "tf114"
REPEATS = 11
GOAL = 1.15
BASE = "STACKRACE_BENCHMARK_BASE"  # an image to build on, where no registry is reached
LIMITS = Limits(first_call_s=300.0, job_s=300.0)
WRITABLE = 0o777  # the container's user is nobody of this machine


def measure(repeats: int = REPEATS) -> Measured:
    """One worker of tf114 that imports and trains, in turn: ours, and `docker run --rm`.

    The person's way: what the worker needs lies in a folder that is mounted, where its result
    appears; isolated as ours, without a look at how it ended.
    """
    made = _prepared()
    with tempfile.TemporaryDirectory(prefix="stackrace-containers-") as name:
        place, number = Path(name), count()

        def folder() -> Path:
            found = place / str(next(number))
            found.mkdir()
            return found

        raw = commands.in_turn(
            {
                "stackrace": lambda: _ours(made, folder()),
                "docker run": lambda: _bare(made, folder()),
            },
            repeats=repeats,
        )
    return Measured(
        figures=(
            Figure(
                title="a job in a container (import, build, train), against `docker run --rm`",
                unit="x",
                values=ratios(raw["stackrace"], raw["docker run"]),
                goal=GOAL,
            ),
        ),
        raw=raw,
    )


def _prepared() -> ContainerEnvironment:
    row, base = matrix.load().rows[NAME], os.environ.get(BASE)
    cache = config.cache_folder()
    found = stage.prepare(
        [Wanted(row=row, backend="container")],
        variant="cpu",
        guest=guest.build(cache / "guest").path,
        options=Options(
            cache=cache,
            interpreters={},
            containers=ContainerOptions(bases={NAME: base} if base else {}),
        ),
        say=log.talk,
    )[NAME]
    assert isinstance(found, ContainerEnvironment)  # noqa: S101 - it was asked for
    return found


def _request(phases: Path | str) -> Request:
    row = matrix.load().rows[NAME]
    return Request(
        action="probe",
        environment=NAME,
        expected=Expected(tensorflow=row.tensorflow, keras=row.keras),
        phase_path=str(phases),
    )


def _ours(made: ContainerEnvironment, work: Path) -> float:
    begun = time.perf_counter()
    ended = made.run(_request(work / "phases"), work=work, log=work / "log", limits=LIMITS)
    seconds = time.perf_counter() - begun
    _check(ended.result, work / "log")
    return seconds


def _bare(made: ContainerEnvironment, work: Path) -> float:
    out = work / "out"
    begun = time.perf_counter()
    (out / "home").mkdir(parents=True)
    for path in (work, out, out / "home"):
        path.chmod(WRITABLE)
    shutil.copy(made.guest, work / "guest.pyz")
    (work / "request.json").write_bytes(codec.encode(_request("/job/out/phases")))
    shown = commands.run(
        [
            *("docker", "run", "--rm", "--init", "--network", "none", "--read-only"),
            *("--tmpfs", "/tmp:exec", "--cap-drop", "ALL", "--user", "1000:1000"),  # noqa: S108
            *("--security-opt", "no-new-privileges", "--workdir", "/job/out"),
            *("--env", "HOME=/job/out/home", "--env", "CUDA_VISIBLE_DEVICES=-1"),
            *("--volume", f"{work}:/job", "--entrypoint", made.interpreter, made.image),
            *("-s", "/job/guest.pyz", "/job/request.json", "/job/out/result.json"),
        ]
    )
    (work / "log").write_text(shown, encoding="utf-8")
    result = out / "result.json"
    raw = result.read_bytes() if result.exists() else None
    seconds = time.perf_counter() - begun
    _check(raw, work / "log")
    return seconds


def _check(raw: bytes | None, shown: Path) -> None:
    """Both did all of the work."""
    if raw is None or json.loads(raw)["outcome"] != "ok":
        raise EnvironmentFailedError(
            "The worker did not end well in its container.",
            why=shown.read_text(encoding="utf-8", errors="replace")[-1000:],
        )
