"""Flags, variables and stackrace.toml become one Config: flags win, then variables, then TOML."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import platformdirs

from orchestrator.errors import UsageError
from orchestrator.model import codec
from orchestrator.model.plan import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "stackrace.toml"
DEFAULT_PRESET = "quick"
DEFAULT_THRESHOLD = 0.02
# A first call may have to trace a large model, or compile for a GPU.
DEFAULT_FIRST_CALL_S = 600.0
DEFAULT_JOB_S = 120.0
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


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of stackrace.toml."""

    run: RunTable = RunTable()
    interpreters: dict[str, str] = {}  # "3.7" = "/opt/python3.7/bin/python"


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
    results = variables.get("STACKRACE_RESULTS") or table.results or "results"
    threshold = _first(flags.threshold, _threshold(table.threshold, file))
    return Config(
        environments=flags.environments,
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
        results=flags.results or Path(results).expanduser(),
        cache=cache_folder(variables),
        interpreters={
            version: _interpreter(version, path, file)
            for version, path in settings.interpreters.items()
        },
    )


def cache_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where environments and the guest are kept: STACKRACE_CACHE, else the user's cache folder."""
    named = variables.get("STACKRACE_CACHE")
    return (
        Path(named).expanduser().absolute() if named else platformdirs.user_cache_path("stackrace")
    )


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


def _settings(file: Path) -> Settings:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    return codec.decode_toml(text, Settings, source=file)


def _threshold(value: str | float | None, file: Path) -> float | None:
    if value is None:
        return None
    try:
        return parse_threshold(str(value))
    except UsageError as error:
        raise UsageError(f"{file}: {error.what}", fix=error.fix) from error


def _interpreter(version: str, path: str, file: Path) -> Path:
    found = Path(path).expanduser()
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
