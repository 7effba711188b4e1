"""How noisy a machine is (`stackrace.noise/1`): what `stackrace selftest` found on it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

NOISE_SCHEMA: Final = "stackrace.noise/1"


class NoiseCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case of a selftest: a cell against a copy of itself.

    `spread`: standard deviation of the blocks' log ratios; the log ratio of a pair of processes
    varies by as much where there is no difference at all. `excluded`: its raw interval excludes 1.
    """

    arm: str
    case: str
    pairs: int
    spread: float
    ratio: float
    low: float
    high: float
    excluded: bool


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """One selftest of a machine. `spread` is pooled over the cases: root of the mean variance."""

    schema: Literal["stackrace.noise/1"] = NOISE_SCHEMA
    machine: str  # the key of the machine, as in `Host.machine`
    device: Literal["cpu", "gpu"] = "cpu"
    created: str  # ISO 8601, UTC
    run_id: str
    environment: str
    rounds: int
    threshold: float
    spread: float
    detectable: float  # the smallest ratio - 1 that a run of as many rounds as this one shows
    control: float | None = None  # standard deviation of the log of the host's control readings
    cases: tuple[NoiseCase, ...] = ()
