"""What the time is made of, a cell, and what its processes show beside their medians."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

# Of these only the GPU's needs no majority: one process that heated up is one too many.
FindingKind = Literal[
    "memory grows",
    "gets slower",
    "spikes",
    "retraces",
    "no steady state",
    "throttle unknown",
]
FINDINGS: Final[tuple[FindingKind, ...]] = get_args(FindingKind)
ENOUGH_PROCESSES: Final = 3  # with fewer, a finding is indicative


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity over the processes of a cell that have it: median, least and most."""

    median: float
    low: float
    high: float
    processes: int


class CellQuantities(msgspec.Struct, frozen=True, kw_only=True):
    """The quantities of one cell; None where no process has it.

    Seconds, bytes and iterations are of one process. `slope`: seconds that each iteration takes
    more than the one before; `memory_slope`: bytes an iteration. Percentiles are over the timed
    iterations of a process. Seconds of different machines are never pooled: a cell whose processes
    ran on several has none.
    """

    arm: str
    case: str
    processes: int  # with the outcome ok
    unsettled: int = 0  # of these, long enough to tell, without a steady state
    import_s: Amount | None = None
    data_s: Amount | None = None
    build_s: Amount | None = None
    first_call_s: Amount | None = None
    warmup_iterations: Amount | None = None  # before the steady state, of processes that have one
    steady_s: Amount | None = None
    p50_s: Amount | None = None
    p95_s: Amount | None = None
    p99_s: Amount | None = None
    max_s: Amount | None = None
    slope_s: Amount | None = None
    memory_slope_bytes: Amount | None = None
    peak_rss_bytes: Amount | None = None
    traces: Amount | None = None
    retraces: Amount | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the processes of one cell show.

    `numbers`, each the median over the processes that show it: `bytes` an iteration (memory grows);
    `fraction` of the time that the last iteration takes more than the first (gets slower, throttle
    unknown); `share` of the iterations, `size` over the median, and `period` in iterations where
    the spikes have one; `retraces` in the timed iterations.
    """

    kind: FindingKind
    arm: str
    case: str
    shown: int  # by so many
    processes: int  # of so many that could show it
    indicative: bool  # of fewer than ENOUGH_PROCESSES
    numbers: dict[str, float] = {}

    @property
    def periodic(self) -> bool:
        """Whether the spikes come in a rhythm."""
        return "period" in self.numbers


class Quantities(msgspec.Struct, frozen=True, kw_only=True):
    """Of every planned cell, in the order of the table."""

    cells: tuple[CellQuantities, ...]
    findings: tuple[Finding, ...]

    def of(self, arm: str, case: str) -> CellQuantities | None:
        """Those of one cell."""
        return next((item for item in self.cells if (item.arm, item.case) == (arm, case)), None)
