"""Flags, variables and stackrace.toml become one Config: flags win, then variables, then TOML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.config import packages, values
from orchestrator.config.file import FILE, read
from orchestrator.config.flags import Flags
from orchestrator.config.sources import Source, sources
from orchestrator.config.values import (
    first,
    parse_duration,
    parse_precision,
    parse_seconds,
    parse_threshold,
)
from orchestrator.errors import UsageError
from orchestrator.model.container_options import ContainerOptions
from orchestrator.model.grid import Preset
from orchestrator.model.names import Backend, Device
from orchestrator.model.plan import Goal, Limits

if TYPE_CHECKING:
    from orchestrator.config.file import ContainerTable, RunTable, Settings

__all__ = [
    "Config",
    "Flags",
    "Source",
    "cache_folder",
    "load",
    "parse_duration",
    "parse_precision",
    "parse_seconds",
    "parse_threshold",
]

DEFAULT_PRESET = "quick"
DEFAULT_THRESHOLD = 0.02
# A first call may have to trace a large model, or compile for a GPU.
DEFAULT_FIRST_CALL_S = 600.0
DEFAULT_JOB_S = 120.0


class Config(msgspec.Struct, frozen=True, kw_only=True):
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
    cache_named: str | None = None  # by the user
    interpreters: Mapping[str, Path] = msgspec.field(default_factory=dict)
    backend: Backend = "venv"
    sources: Mapping[str, Source] = msgspec.field(default_factory=dict)  # by the environment's name
    devices: tuple[Device, ...] | None = None  # None: the GPU where that is possible, else the CPU
    gpus: str = "auto"
    wait_lock_s: float = 0.0
    containers: ContainerOptions = msgspec.field(default_factory=ContainerOptions)
    pin: tuple[int, ...] = ()  # cores that workers are bound to; none: as the host may
    rows: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)  # the user's tables
    presets: Mapping[str, Preset] = msgspec.field(default_factory=dict)
    workloads: tuple[Path, ...] = ()  # files or folders of the user's own models
    packages: tuple[str, ...] = ()  # added to every environment: `pandas`, `scipy<1.5`
    same_weights: bool = False
    profile: bool = False
    selftest: bool = False  # an environment against itself: what it shows is the machine
    file: Path = Path(FILE)

    @property
    def cache(self) -> Path:
        """Where environments and the guest are kept."""
        return _cache(self.cache_named)


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
        results=_results(flags, table, variables, file),
        cache_named=_cache_named(variables),
        interpreters={
            version: values.interpreter(version, path, file)
            for version, path in settings.interpreters.items()
        },
        backend=flags.backend or table.backend or "venv",
        sources=named,
        devices=_devices(flags, table, file),
        gpus=first(flags.gpus, table.gpus) or "auto",
        wait_lock_s=_wait_lock_s(flags, table, file),
        containers=_containers(flags, settings.container, file),
        pin=_pin(flags, settings, file),
        rows=settings.environments,
        presets=settings.presets,
        workloads=_workloads(flags, table, file),
        packages=_packages(flags, table, named, file),
        same_weights=flags.same_weights or table.same_weights,
        profile=flags.profile or table.profile,
        file=file,
    )


def cache_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where environments and the guest are kept: STACKRACE_CACHE, else the user's cache folder."""
    return _cache(_cache_named(variables))


def _cache_named(variables: Mapping[str, str]) -> str | None:
    named = variables.get("STACKRACE_CACHE")
    return str(values.folder(named, "cache")) if named else None


def _cache(named: str | None) -> Path:
    if named is not None:
        return Path(named).absolute()
    import platformdirs  # noqa: PLC0415 - it takes 10 ms, and `list` keeps nothing

    return values.folder(platformdirs.user_cache_path("stackrace"), "cache").absolute()


def _results(flags: Flags, table: RunTable, variables: Mapping[str, str], file: Path) -> Path:
    said = flags.results or variables.get("STACKRACE_RESULTS")
    with values.said_in(file, said):
        return values.folder(said or table.results or "results", "results")


def _workloads(flags: Flags, table: RunTable, file: Path) -> tuple[Path, ...]:
    with values.said_in(file, flags.workloads):
        every = flags.workloads or values.several(table.workload)
        return tuple(values.folder(item, "a workload") for item in every)


def _packages(
    flags: Flags, table: RunTable, named: Mapping[str, Source], file: Path
) -> tuple[str, ...]:
    with values.said_in(file, flags.packages):
        return packages.parse(flags.packages or values.several(table.with_), named)


def _rounds(flags: Flags, table: RunTable, file: Path) -> int | None:
    with values.said_in(file, flags.rounds):
        return values.positive(first(flags.rounds, table.rounds), "rounds")


def _devices(flags: Flags, table: RunTable, file: Path) -> tuple[Device, ...] | None:
    devices = first(flags.device, table.device)
    with values.said_in(file, flags.device):
        return None if devices is None else values.parse_devices(devices)


def _wait_lock_s(flags: Flags, table: RunTable, file: Path) -> float:
    with values.said_in(file, flags.wait_lock):
        said: str | float | None = table.wait_lock if flags.wait_lock is None else flags.wait_lock
        return values.waiting(said)


def _limits(flags: Flags, table: RunTable, file: Path) -> Limits:
    own = flags.max_job_seconds
    seconds: str | float | None = table.max_job_seconds if own is None else own
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


def _containers(flags: Flags, table: ContainerTable, file: Path) -> ContainerOptions:
    def size(flag: str | None, own: str | None, what: str) -> int | None:
        said = first(flag, own)
        with values.said_in(file, flag):
            return None if said is None else values.parse_size(said, what)

    cpus = first(flags.cpus, table.cpus)
    with values.said_in(file, flags.cpus):
        if cpus is not None:
            values.parse_cores(cpus, "cpus")
    return ContainerOptions(
        memory_bytes=size(flags.memory, table.memory, "memory"),
        cpus=cpus,
        shm_bytes=size(flags.shm_size, table.shm_size, "shm-size"),
        bases=table.bases,
    )
