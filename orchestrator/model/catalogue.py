"""What there is to choose from: the data behind `stackrace list`."""

from __future__ import annotations

import msgspec

from orchestrator.model.names import Api, ContrastKind, Mode


class ListedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the matrix, with the disk that one environment takes, in MB."""

    identifier: str
    title: str
    tensorflow: str
    keras: str
    python: str
    native_mode: Mode
    apis: tuple[Api, ...]
    modes: tuple[Mode, ...]
    size_mb: int
    impossible: tuple[str, ...]


class ListedPreset(msgspec.Struct, frozen=True, kw_only=True):
    """One preset; jobs, seconds and MB are for two environments."""

    name: str
    summary: str
    default: bool
    cases: int
    rounds: int
    jobs: int
    estimate_s: float
    disk_mb: int


class ListedKnob(msgspec.Struct, frozen=True, kw_only=True):
    """One knob; `choices` are its values where they are words, `pattern` is what any must match."""

    name: str
    summary: str
    choices: tuple[str, ...]
    pattern: str


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be named on a command line."""

    environments: tuple[ListedEnvironment, ...]
    presets: tuple[ListedPreset, ...]
    cases: tuple[str, ...]
    knobs: tuple[ListedKnob, ...]
    arms: tuple[str, ...]
    contrasts: tuple[ContrastKind, ...]
