"""Every environment, backend and device: whether that runs here, and what mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.doctor.fitness import fit
from orchestrator.gpus import busy
from orchestrator.model.health import HealthCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.gpu import Gpu
    from orchestrator.model.health import Facts, Level
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Backend, Device, Variant

NO_TOOLKIT = "Docker cannot hand out NVIDIA GPUs"
NO_GPU = "this machine has no NVIDIA GPU, or no driver for it"
GET_DRIVER = (
    "Use --device cpu; or install the driver (Ubuntu: sudo ubuntu-drivers install; others: "
    "https://www.nvidia.com/drivers) and try: nvidia-smi"
)
GET_TOOLKIT = (
    "Install the NVIDIA container toolkit (https://docs.nvidia.com/datacenter/cloud-native/"
    "container-toolkit/latest/install-guide.html), then: sudo nvidia-ctk runtime configure "
    "--runtime=docker && sudo systemctl restart docker"
)
RANK: dict[Level, int] = {"ok": 0, "warning": 1, "cannot": 2}
# As preparing counts: unpacked in uv's cache and copied from there, and some to spare.
COPIES, SPARE_MB, _MB = 2, 500, 1_000_000


def cells(
    rows: Sequence[Row], devices: Sequence[Device], backends: Sequence[Backend], facts: Facts
) -> tuple[HealthCell, ...]:
    """One cell for each. With several GPUs, the one that suits the environment best decides."""
    return tuple(
        _worst(row, device, backend, _problems(row, device, backend, facts))
        for row in rows
        for backend in backends
        for device in devices
    )


def blockers(
    rows: Sequence[Row], devices: Sequence[Device], backend: Backend, facts: Facts
) -> dict[tuple[str, Device], str]:
    """Why a row can never run on a device here, by identifier and device, known beforehand.

    `facts.gpus` are those that the run would get: each of them has to fit. What passes, or is
    installed in a minute, blocks nothing.
    """
    found: dict[tuple[str, Device], str] = {}
    for row in rows:
        for device in devices:
            problems = list(_platform(facts))
            if device == "gpu":
                problems += _on_gpu(row, backend, facts, every=True)
            for problem in problems:
                if problem["lasting"] and problem["level"] == "cannot":
                    found.setdefault((row.identifier, device), problem["reason"])
    return found


def elsewhere(backend: Backend, facts: Facts) -> str:
    """Why the GPUs that were found here are not those of the containers; else empty."""
    if backend != "container" or facts.engine is None or not facts.engine.elsewhere:
        return ""
    return (
        f"Docker Engine at {facts.engine.place} is on another machine, whose GPUs cannot be seen "
        "from here"
    )


def slow_starts(rows: Sequence[Row], facts: Facts) -> frozenset[str]:
    """Identifiers whose GPU code has to be compiled for one of `facts.gpus` in the first call."""
    return frozenset(
        row.identifier for row in rows if any(fit(row, gpu).slow for gpu in _usable(facts))
    )


def failing(
    found: Sequence[HealthCell],
    names: Sequence[str],
    *,
    devices: Sequence[Device] | None,
    backend: Backend,
) -> tuple[str, ...]:
    """Which of the environments that were asked for cannot run as they were asked for.

    `devices` are all wanted; None asks for any of them.
    """
    failed = []
    for name in names:
        levels = {
            cell.device: cell.level
            for cell in found
            if (cell.environment, cell.backend) == (name, backend)
        }
        runs = [levels[device] != "cannot" for device in devices or levels if device in levels]
        if not (any(runs) if devices is None else all(runs)):
            failed.append(name)
    return tuple(failed)


Problem = dict[str, Any]


def _problem(level: Level, reason: str, fix: str, *, lasting: bool = False) -> Problem:
    return {"level": level, "reason": reason, "fix": fix, "lasting": lasting}


def _worst(row: Row, device: Device, backend: Backend, problems: Iterator[Problem]) -> HealthCell:
    facts = max(problems, key=_weight, default={})
    return HealthCell(environment=row.identifier, backend=backend, device=device, **facts)


def _weight(problem: Problem) -> tuple[int, bool]:
    """What passes is told only where nothing is that stays."""
    return RANK[problem["level"]], problem["lasting"]


def _problems(row: Row, device: Device, backend: Backend, facts: Facts) -> Iterator[Problem]:
    """Everything that speaks against a cell; of the worst ones, the first is told."""
    yield from _platform(facts)
    if device == "gpu":
        yield from _on_gpu(row, backend, facts, every=False)
    if backend == "container":
        yield from _engine(device, facts)
    if backend != "existing":
        yield from _parts(row, device, facts)


def _platform(facts: Facts) -> Iterator[Problem]:
    if facts.problem:
        yield _problem("cannot", facts.problem, facts.fix, lasting=True)


def _on_gpu(row: Row, backend: Backend, facts: Facts, *, every: bool) -> Iterator[Problem]:
    away = elsewhere(backend, facts)
    if away:
        fix = "Use --device cpu; or run stackrace on that machine itself, such as over ssh."
        yield _problem("cannot", away, fix, lasting=True)
        return
    gpus = _usable(facts)
    if not gpus:
        yield _problem("cannot", facts.gpu_problem or NO_GPU, GET_DRIVER, lasting=True)
        return
    if backend == "existing":
        return  # what was built into it, only its owner knows
    verdicts = [_on(row, gpu) for gpu in gpus]
    pick = max if every else min
    yield pick(verdicts, key=_weight)
    if row.cuda is not None and not row.cuda.from_wheels and backend == "venv":
        yield _problem(
            "cannot",
            f"CUDA {row.cuda.version} cannot be had as wheels: on a GPU {row.identifier} runs in "
            "containers only",
            "Use --backend container, or --device cpu.",
            lasting=True,
        )


def _on(row: Row, gpu: Gpu) -> Problem:
    found = fit(row, gpu)
    held = busy(gpu)
    if found.level != "cannot" and held is not None:
        fix = "Wait until it has ended, or take another GPU with --gpus."
        return _problem("cannot", f"GPU {gpu.index} is not free: {held}", fix)
    return _problem(found.level, found.reason, found.fix, lasting=found.level == "cannot")


def _engine(device: Device, facts: Facts) -> Iterator[Problem]:
    engine = facts.engine
    if engine is None:
        return
    if engine.problem:
        yield _problem("cannot", engine.problem, engine.fix)
    elif engine.machine not in {"x86_64", "amd64"}:
        yield _problem(
            "cannot",
            f"Docker Engine at {engine.place} is on {engine.machine}; TensorFlow's wheels need "
            "x86-64",
            "Set DOCKER_HOST to an x86-64 machine.",
        )
    elif device == "gpu" and not (engine.nvidia or engine.cdi):
        yield _problem("cannot", NO_TOOLKIT, GET_TOOLKIT)


def _parts(row: Row, device: Device, facts: Facts) -> Iterator[Problem]:
    """What an environment is made of: containers are made of the same files."""
    variant: Variant = device
    name = f"{row.lock_name}-{variant}"
    if name in facts.made:
        return
    python = facts.pythons.get(row.python)
    if python is not None:
        yield from _python(row.python, python.path, python.problem, download=python.download)
    if row.ours and variant in row.packages and name not in facts.locks:
        yield _problem("cannot", f"it has no lock for {variant}", "Run: nox -s lock")
    needed = COPIES * row.size_mb.get(variant, 0) + SPARE_MB
    if facts.free_bytes is not None and facts.free_bytes < needed * _MB:
        yield _problem(
            "cannot",
            f"it needs {needed} MB to be made, and {facts.cache} has {facts.free_bytes // _MB} MB "
            "free",
            "Free some space, or use another disk: export STACKRACE_CACHE=/disk UV_CACHE_DIR=/disk",
        )


def _python(version: str, path: str, problem: str, *, download: bool) -> Iterator[Problem]:
    if path:
        return
    get = f"pyenv install {version}"
    if problem:
        yield _problem("cannot", problem, "Correct [interpreters] in stackrace.toml.")
    elif download:
        yield _problem("warning", f"Python {version} is not here, and will be downloaded", get)
    else:
        yield _problem("cannot", f"there is no Python {version}", get)


def _usable(facts: Facts) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in facts.gpus if not gpu.divided)
