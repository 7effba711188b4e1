"""How noisy a machine is (`stackrace.noise/1`): what `stackrace selftest` found on it."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

NOISE_SCHEMA: Final = "stackrace.noise/1"
# Twice the variation is more than other models make of it, or chance in a few rounds.
MUCH_MORE: Final = 2.0


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
    """One selftest of a machine. `spread` is pooled over the cases: the root of their mean
    variance, by degrees of freedom.
    """

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
    processes: float | None = None  # variation of process medians: the median over the cells
    cases: tuple[NoiseCase, ...] = ()

    def calmer_than(self, spreads: Iterable[float]) -> float | None:
        """How many times as much processes vary now, when that is much more than then; else None.

        `spreads`: the variation of the process medians of each cell of a run.
        """
        found = sorted(spreads)
        if not found or not self.processes:
            return None
        times = median(found) / self.processes
        return times if times > MUCH_MORE else None
