"""Flags, variables and stackrace.toml become one Config: flags win, then variables, then TOML."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec
import platformdirs

from orchestrator.errors import UsageError
from orchestrator.model import codec
from orchestrator.model.container import ContainerOptions
from orchestrator.model.grid import Preset
from orchestrator.model.names import Backend, Device, check_name, is_name
from orchestrator.model.plan import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "stackrace.toml"
DEFAULT_PRESET = "quick"
DEFAULT_THRESHOLD = 0.02
# A first call may have to trace a large model, or compile for a GPU.
DEFAULT_FIRST_CALL_S = 600.0
DEFAULT_JOB_S = 120.0
LONGEST_NAME = 255  # bytes, on every file system that Linux has
LONGEST_S = 7 * 24 * 3600.0

T = TypeVar("T")


class RunTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """`[run]` of stackrace.toml: defaults for options of the same names."""

    preset: str | None = None
    rounds: int | None = None
    threshold: str | float | None = None
    reference: str | None = None
    max_job_seconds: float | None = None
    first_call_seconds: float | None = None
    seed: int | None = None
    results: str | None = None
    backend: Backend | None = None
    device: str | None = None
    gpus: str | None = None
    wait_lock: float | None = None


class ContainerTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """`[container]` of stackrace.toml: what every job's container gets, and other bases."""

    memory: str | None = None  # 8g
    cpus: str | None = None  # 0-3,8
    shm_size: str | None = None
    bases: dict[str, str] = {}  # identifier -> image, best by digest


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of stackrace.toml."""

    run: RunTable = RunTable()
    interpreters: dict[str, str] = {}  # "3.7" = "/opt/python3.7/bin/python"
    container: ContainerTable = ContainerTable()
    environments: dict[str, dict[str, Any]] = {}  # rows as in the matrix, checked by that stage
    presets: dict[str, Preset] = {}


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line said; None or empty where it said nothing."""

    environments: tuple[str, ...] = ()
    preset: str | None = None
    cases: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    rounds: int | None = None
    threshold: float | None = None
    reference: str | None = None
    max_job_seconds: float | None = None
    seed: int | None = None
    results: Path | None = None
    backend: Backend | None = None
    pythons: tuple[str, ...] = ()  # NAME=PATH
    images: tuple[str, ...] = ()  # NAME=REF, or REF for the only environment
    device: str | None = None  # cpu,gpu
    gpus: str | None = None
    memory: str | None = None
    cpus: str | None = None
    shm_size: str | None = None
    wait_lock: float | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """An environment that somebody else made: an interpreter's path, or an image's reference."""

    backend: Backend
    place: str


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that a run is told, checked as far as that needs no other stage."""

    environments: tuple[str, ...]
    preset: str
    cases: tuple[str, ...]
    arms: tuple[str, ...]
    rounds: int | None  # None: the preset's
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
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the user's tables
    presets: Mapping[str, Preset] = field(default_factory=dict)
    file: Path = Path(FILE)


def load(
    flags: Flags,
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] = os.environ,
) -> Config:
    """The configuration of one command. `folder` is where stackrace.toml is looked for."""
    file = (folder or Path.cwd()) / FILE
    settings = _settings(file)
    table = settings.run
    if table.backend == "existing":
        raise UsageError(
            f'{file}: [run] backend = "existing" does not say which interpreters.',
            fix="Leave the line out, and name them where they are raced: --python NAME=PATH.",
        )
    results = variables.get("STACKRACE_RESULTS") or table.results or "results"
    threshold = _first(flags.threshold, _threshold(table.threshold, file))
    devices = _first(flags.device, table.device)
    sources = _sources(flags)
    return Config(
        environments=(
            *flags.environments,
            *(name for name in sources if name not in flags.environments),
        ),
        preset=flags.preset or table.preset or DEFAULT_PRESET,
        cases=flags.cases,
        arms=flags.arms,
        rounds=_positive(_first(flags.rounds, table.rounds), "rounds"),
        threshold=DEFAULT_THRESHOLD if threshold is None else threshold,
        reference=flags.reference or table.reference,
        limits=Limits(
            first_call_s=_seconds(table.first_call_seconds, DEFAULT_FIRST_CALL_S, "first-call"),
            job_s=_seconds(
                _first(flags.max_job_seconds, table.max_job_seconds), DEFAULT_JOB_S, "max-job"
            ),
        ),
        seed=_first(flags.seed, table.seed),
        results=_folder(flags.results or results, "results"),
        cache=cache_folder(variables),
        interpreters={
            version: _interpreter(version, path, file)
            for version, path in settings.interpreters.items()
        },
        backend=flags.backend or table.backend or "venv",
        sources=sources,
        devices=None if devices is None else parse_devices(devices),
        gpus=_first(flags.gpus, table.gpus) or "auto",
        wait_lock_s=_waiting(_first(flags.wait_lock, table.wait_lock)),
        containers=_containers(flags, settings.container),
        rows=settings.environments,
        presets=settings.presets,
        file=file,
    )


def cache_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where environments and the guest are kept: STACKRACE_CACHE, else the user's cache folder."""
    named = variables.get("STACKRACE_CACHE")
    return _folder(named or platformdirs.user_cache_path("stackrace"), "cache").absolute()


def parse_threshold(text: str) -> float:
    """`2%` or `0.02` as a fraction between 0 and 1."""
    number = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if number is None:
        raise UsageError(f"{text!r} is not a threshold.", fix="Write it as 2% or 0.02.")
    value = float(number[1]) / (100 if number[2] else 1)
    if not 0 < value < 1:
        raise UsageError(
            f"A threshold of {text} makes no sense: it must lie between 0% and 100%.",
            fix="2% is written as 2% or 0.02.",
        )
    return value


def parse_devices(text: str) -> tuple[Device, ...]:
    """`cpu`, `gpu` or `cpu,gpu`, each once, in the order given."""
    devices: list[Device] = []
    for word in text.split(","):
        device = next((known for known in get_args(Device) if known == word.strip()), None)
        if device is None:
            raise UsageError(
                f"{text!r} names no devices.", fix="Write cpu, gpu, or cpu,gpu to race both."
            )
        if device not in devices:
            devices.append(device)
    return tuple(devices)


def parse_size(text: str, what: str) -> int:
    """`8g` or `512m` in bytes, in powers of 1024, as Docker writes sizes."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*([bkmgt]?)(?:i?b)?\s*", text.lower())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{what} {text!r} is not a size.", fix="Write it as 8g or 512m.")
    power = "bkmgt".index(found[2] or "b")
    return int(found[1]) << (10 * power)


def _sources(flags: Flags) -> dict[str, Source]:
    sources: dict[str, Source] = {}
    for text in flags.pythons:
        name, _, place = text.partition("=")
        if not (name and place):
            raise UsageError(
                f"--python {text!r} is not NAME=PATH.",
                fix="Give the environment a name, such as --python mine=/opt/conda/bin/python.",
            )
        _enter(sources, name, Source(backend="existing", place=place))
    for text in flags.images:
        name, sign, place = text.rpartition("=")
        if not sign:
            name, place = _only(flags.environments, text), text
        if not (name and place):
            raise UsageError(
                f"--image {text!r} is not NAME=REF.", fix="Write it as --image tf115=REF."
            )
        _enter(sources, name, Source(backend="container", place=place))
    if flags.backend == "existing":
        for name in flags.environments:
            if name not in sources:
                own = name if is_name(name) else "mine"
                raise UsageError(
                    f"--backend existing needs to know where {name} is.",
                    fix=f"Name its interpreter{'' if own == name else f' instead of {name}'}: "
                    f"--python {own}=/path/to/bin/python",
                )
    return sources


def _only(environments: tuple[str, ...], reference: str) -> str:
    if len(environments) != 1:
        raise UsageError(
            f"--image {reference} does not say for which environment it stands.",
            fix=f"Write --image NAME={reference}, once for each environment with an image.",
        )
    return environments[0]


def _enter(sources: dict[str, Source], name: str, source: Source) -> None:
    check_name(name, what="Environment")
    if name in sources:
        raise UsageError(f"{name} is named twice, by --python or --image.", fix="Leave one out.")
    sources[name] = source


def _containers(flags: Flags, table: ContainerTable) -> ContainerOptions:
    memory = _first(flags.memory, table.memory)
    shm_size = _first(flags.shm_size, table.shm_size)
    cpus = _first(flags.cpus, table.cpus)
    if cpus is not None and not _is_cpu_set(cpus):
        raise UsageError(f"cpus {cpus!r} is not a CPU set.", fix="Write it as 0-3 or 0,2,4.")
    return ContainerOptions(
        memory_bytes=None if memory is None else parse_size(memory, "memory"),
        cpus=cpus,
        shm_bytes=None if shm_size is None else parse_size(shm_size, "shm-size"),
        bases=table.bases,
    )


def _is_cpu_set(text: str) -> bool:
    if re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", text) is None:
        return False
    ranges = [[int(number) for number in part.split("-")] for part in text.split(",")]
    return all(ends[0] <= ends[-1] for ends in ranges)


def _waiting(value: float | None) -> float:
    seconds = 0.0 if value is None else float(value)
    if not (math.isfinite(seconds) and 0 <= seconds <= LONGEST_S):
        raise UsageError(f"wait-lock must be a number of seconds, at most a week, not {value}.")
    return seconds


def _settings(file: Path) -> Settings:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    settings = codec.decode_toml(text, Settings, source=file)
    for key, value in msgspec.to_builtins(settings.run).items():
        if value == "":
            raise UsageError(f"{file}: [run] {key} is empty.", fix="Leave the line out.")
    return settings


def _threshold(value: str | float | None, file: Path) -> float | None:
    if value is None:
        return None
    try:
        return parse_threshold(str(value))
    except UsageError as error:
        raise UsageError(f"{file}: {error.what}", fix=error.fix) from error


def _folder(text: str | Path, what: str) -> Path:
    """A path that a file can have; UsageError where none can."""
    name = str(text)
    try:
        if "\0" in name:
            problem = "holds a zero byte"
        elif max(len(part.encode()) for part in name.split("/")) > LONGEST_NAME:
            problem = f"has a part of more than {LONGEST_NAME} bytes"
        else:
            return Path(name).expanduser()
    except UnicodeEncodeError:
        problem = "is not UTF-8, and would not survive in JSON"
    except RuntimeError:
        problem = "begins with the name of no user of this machine"
    raise UsageError(f"The path for {what}, {name!r}, {problem}.", fix="Name another.")


def _interpreter(version: str, path: str, file: Path) -> Path:
    found = _folder(path, f"[interpreters] {version}")
    if not found.is_absolute():
        raise UsageError(
            f"{file}: [interpreters] {version} = {path!r} is not an absolute path.",
            fix="Write the whole path of the interpreter, such as /opt/python3.7/bin/python.",
        )
    return found


def _positive(value: int | None, what: str) -> int | None:
    if value is not None and value < 1:
        raise UsageError(
            f"{value} {what} would measure nothing.",
            fix="A verdict needs at least 5; 10 are better.",
        )
    return value


def _seconds(value: float | None, default: float, what: str) -> float:
    seconds = default if value is None else float(value)
    if not (math.isfinite(seconds) and 0 < seconds <= LONGEST_S):
        raise UsageError(
            f"{what}-seconds must be a positive number of seconds, at most a week, not {value}."
        )
    return seconds


def _first(*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)
