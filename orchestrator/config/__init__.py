"""Flags, variables and stackrace.toml become one Config: flags win, then variables, then TOML."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from orchestrator.config import packages, values
from orchestrator.config.file import FILE, read
from orchestrator.config.flags import Flags
from orchestrator.config.sources import Source, sources
from orchestrator.config.values import first, parse_duration, parse_precision, parse_threshold
from orchestrator.errors import UsageError
from orchestrator.model.container import ContainerOptions
from orchestrator.model.plan import Goal, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.config.file import ContainerTable, RunTable, Settings
    from orchestrator.model.grid import Preset
    from orchestrator.model.names import Backend, Device

__all__ = [
    "Config",
    "Flags",
    "Source",
    "cache_folder",
    "load",
    "parse_duration",
    "parse_precision",
    "parse_threshold",
]

DEFAULT_PRESET = "quick"
DEFAULT_THRESHOLD = 0.02
# A first call may have to trace a large model, or compile for a GPU.
DEFAULT_FIRST_CALL_S = 600.0
DEFAULT_JOB_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that a run is told, checked as far as that needs no other stage."""

    environments: tuple[str, ...]
    preset: str
    cases: tuple[str, ...]
    arms: tuple[str, ...]
    rounds: int | None  # None: the preset's
    goal: Goal | None = None  # what decides how many instead
    threshold: float
    reference: str | None
    limits: Limits
    seed: int | None
    results: Path
    cache: Path
    interpreters: Mapping[str, Path] = field(default_factory=dict)
    backend: Backend = "venv"
    sources: Mapping[str, Source] = field(default_factory=dict)  # by the environment's name
    devices: tuple[Device, ...] | None = None  # None: the GPU where that is possible, else the CPU
    gpus: str = "auto"
    wait_lock_s: float = 0.0
    containers: ContainerOptions = field(default_factory=ContainerOptions)
    pin: tuple[int, ...] = ()  # cores that workers are bound to; none: as the host may
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the user's tables
    presets: Mapping[str, Preset] = field(default_factory=dict)
    workloads: tuple[Path, ...] = ()  # files or folders of the user's own models
    packages: tuple[str, ...] = ()  # added to every environment: `pandas`, `scipy<1.5`
    same_weights: bool = False
    profile: bool = False
    selftest: bool = False  # an environment against itself: what it shows is the machine
    file: Path = Path(FILE)


def load(
    flags: Flags,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] = os.environ,
) -> Config:
    """The configuration of one command. `folder` is where stackrace.toml is looked for."""
    file = (folder or Path.cwd()) / FILE
    settings = read(file)
    table = settings.run
    if table.backend == "existing":
        raise UsageError(
            f'{file}: [run] backend = "existing" does not say which interpreters.',
            fix="Leave the line out, and name them where they are raced: --python NAME=PATH.",
        )
    results = variables.get("STACKRACE_RESULTS") or table.results or "results"
    threshold = first(flags.threshold, values.threshold(table.threshold, file))
    named = sources(flags)
    return Config(
        environments=(
            *flags.environments,
            *(name for name in named if name not in flags.environments),
        ),
        preset=flags.preset or table.preset or DEFAULT_PRESET,
        cases=flags.cases,
        arms=flags.arms,
        rounds=_rounds(flags, table, file),
        goal=values.goal(flags, table, file),
        threshold=DEFAULT_THRESHOLD if threshold is None else threshold,
        reference=flags.reference or table.reference,
        limits=_limits(flags, table, file),
        seed=first(flags.seed, table.seed),
        results=values.folder(flags.results or results, "results"),
        cache=cache_folder(variables),
        interpreters={
            version: values.interpreter(version, path, file)
            for version, path in settings.interpreters.items()
        },
        backend=flags.backend or table.backend or "venv",
        sources=named,
        devices=_devices(flags, table, file),
        gpus=first(flags.gpus, table.gpus) or "auto",
        wait_lock_s=_wait_lock_s(flags, table, file),
        containers=_containers(flags, settings.container),
        pin=_pin(flags, settings, file),
        rows=settings.environments,
        presets=settings.presets,
        workloads=tuple(
            values.folder(item, "a workload")
            for item in flags.workloads or values.several(table.workload)
        ),
        packages=packages.parse(flags.packages or values.several(table.with_), named),
        same_weights=flags.same_weights or table.same_weights,
        profile=flags.profile or table.profile,
        file=file,
    )


def cache_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where environments and the guest are kept: STACKRACE_CACHE, else the user's cache folder."""
    named = variables.get("STACKRACE_CACHE")
    return values.folder(named or platformdirs.user_cache_path("stackrace"), "cache").absolute()


def _rounds(flags: Flags, table: RunTable, file: Path) -> int | None:
    with values.said_in(file, flags.rounds):
        return values.positive(first(flags.rounds, table.rounds), "rounds")


def _devices(flags: Flags, table: RunTable, file: Path) -> tuple[Device, ...] | None:
    devices = first(flags.device, table.device)
    with values.said_in(file, flags.device):
        return None if devices is None else values.parse_devices(devices)


def _wait_lock_s(flags: Flags, table: RunTable, file: Path) -> float:
    with values.said_in(file, flags.wait_lock):
        return values.waiting(first(flags.wait_lock, table.wait_lock))


def _limits(flags: Flags, table: RunTable, file: Path) -> Limits:
    seconds = first(flags.max_job_seconds, table.max_job_seconds)
    with values.said_in(file, None):
        first_call_s = values.seconds(table.first_call_seconds, DEFAULT_FIRST_CALL_S, "first-call")
    with values.said_in(file, flags.max_job_seconds):
        job_s = values.seconds(seconds, DEFAULT_JOB_S, "max-job")
    return Limits(first_call_s=first_call_s, job_s=job_s)


def _pin(flags: Flags, settings: Settings, file: Path) -> tuple[int, ...]:
    """The cores that workers are bound to, in containers too."""
    pin = first(flags.pin, settings.run.pin)
    if pin is None:
        return ()
    if first(flags.cpus, settings.container.cpus) is not None:
        raise UsageError(
            "pin and cpus both say on which cores containers run.",
            fix="Leave out cpus: pin holds for containers as well, and is kept in the run's plan.",
        )
    with values.said_in(file, flags.pin):
        return values.parse_cores(pin, "pin")


def _containers(flags: Flags, table: ContainerTable) -> ContainerOptions:
    memory = first(flags.memory, table.memory)
    shm_size = first(flags.shm_size, table.shm_size)
    cpus = first(flags.cpus, table.cpus)
    if cpus is not None:
        values.parse_cores(cpus, "cpus")
    return ContainerOptions(
        memory_bytes=None if memory is None else values.parse_size(memory, "memory"),
        cpus=cpus,
        shm_bytes=None if shm_size is None else values.parse_size(shm_size, "shm-size"),
        bases=table.bases,
    )
