"""The verdict's types: what was compared with what, how it came out, and how surely."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal

import msgspec

from orchestrator.model.names import ContrastKind, State

COMPARISON_SCHEMA: Final = "stackrace.comparison/1"
ENOUGH_BLOCKS: Final = 5  # with fewer, numbers stand without a verdict
ENOUGH_VALUES: Final = 10  # timed in one process: with fewer, its median is indicative
INDICATIVE: Final = "indicative: "  # how the reason begins then
# The note of a contrast whose iterations do not do the same: its ratio is no gain and no loss.
OTHER_WORK: Final = "not the same work"
# Kinds whose two cells are arms of one case; the others compare an arm's cases.
BETWEEN_ARMS: Final[frozenset[ContrastKind]] = frozenset(
    {"as_installed", "version", "mode", "api", "workload"}
)


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a contrast.

    Times of different machines are never pooled: a cell whose processes ran on several has neither
    `seconds` nor `spread`, and its ratios are those within each machine.
    """

    arm: str
    case: str
    seconds: float | None  # median over processes of the per-process medians
    processes: int  # with a number
    spread: float | None  # coefficient of variation of the per-process medians
    machines: int = 1  # keys of the machines that these ran on
    unsettled: int = 0  # of these, without a steady state: their number is of all timed iterations


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """Two cells, paired. `ratio` = candidate time / reference time: above 1 is slower.

    A contrast without a number has `reason`; one with an interval but without a verdict has both.
    """

    kind: ContrastKind
    family: str  # contrasts that are corrected together
    candidate: Side
    reference: Side
    pairs: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    state: State | None = None
    reason: str | None = None
    knob: str = ""  # of the kind `knob`: which one differs
    paths: dict[str, tuple[str, str]] = {}  # what ran differently: candidate's way, reference's way
    notes: tuple[str, ...] = ()  # `indicative: 6 iterations`, `confounded: Python`
    origin_percent: float | None = None  # (1 - longer / shorter) * 100, + when the newer is faster

    @property
    def different(self) -> bool:
        """Its two cells compute something else, so that no ratio of theirs says which to take."""
        return (self.reason or "").startswith("different")


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A cell without a number, and why."""

    arm: str
    case: str
    outcome: str
    reason: str
    jobs: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a report says, as data (the core of `summary.json`)."""

    schema: Literal["stackrace.comparison/1"] = COMPARISON_SCHEMA
    run_ids: tuple[str, ...]
    reference: str
    threshold: float
    alpha: float
    contrasts: tuple[Contrast, ...]
    gaps: tuple[Gap, ...]
    detectable: float | None  # median smallest ratio - 1 that is shown in four runs of five
    spread: tuple[float, float] | None  # least and most variation of process medians
    jobs: dict[str, int]  # outcome -> counting jobs; `planned`, `missing`, `superseded` too
    measuring_s: float
    warnings: tuple[str, ...] = ()
    cells: tuple[Side, ...] = ()  # every planned one, in the order of the table

    def tested(self) -> Counter[str]:
        """Over how many comparisons each family was corrected.

        Two cells that meet as installed and at equal mode are one comparison.
        """
        found = dict.fromkeys(
            (
                item.family,
                item.candidate.arm,
                item.candidate.case,
                item.reference.arm,
                item.reference.case,
            )
            for item in self.contrasts
            if item.q is not None
        )
        return Counter(family for family, *_ in found)
