"""stackrace.toml: its tables and keys, read and checked as far as they go."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.errors import UsageError
from orchestrator.model import codec
from orchestrator.model.grid import Preset
from orchestrator.model.names import Backend

if TYPE_CHECKING:
    from pathlib import Path

FILE = "stackrace.toml"


class RunTable(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """`[run]` of stackrace.toml: defaults for options of the same names."""

    preset: str | None = None
    rounds: int | None = None
    budget: str | None = None  # 30m
    precision: str | float | None = None
    threshold: str | float | None = None
    reference: str | None = None
    max_job_seconds: str | float | None = None  # 120, or 2m
    first_call_seconds: str | float | None = None
    seed: int | None = None
    results: str | None = None
    backend: Backend | None = None
    device: str | None = None
    gpus: str | None = None
    wait_lock: str | float | None = None
    pin: str | None = None  # 0-3,8
    workload: str | tuple[str, ...] = ()
    with_: str | tuple[str, ...] = msgspec.field(default=(), name="with")
    same_weights: bool = False
    profile: bool = False


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


def read(file: Path) -> Settings:
    """What stands in it, nothing when there is none; UsageError names the key that is wrong."""
    if not os.path.lexists(file):
        return Settings()
    try:
        if not file.is_file():  # a pipe would be waited for
            raise UsageError(
                f"{file} is not a file.",
                why="It is a folder, a pipe, or a link that leads nowhere.",
                fix="Move it away.",
            )
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from error
    settings = codec.decode_toml(text, Settings, source=file)
    for key, value in msgspec.to_builtins(settings.run).items():
        if value == "":
            raise UsageError(f"{file}: [run] {key} is empty.", fix="Leave the line out.")
    return settings
