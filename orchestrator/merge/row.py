"""One row of the table, before it is taken apart into columns."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.model.cell import Case
    from orchestrator.model.plan import Job, PlannedEnvironment
    from orchestrator.model.record import Record
    from orchestrator.model.result import Result
    from orchestrator.series.steady import Steady


@dataclass(frozen=True, kw_only=True)
class Row:
    """All that the columns of one row are read from."""

    run_id: str
    guest_digest: str
    environment: PlannedEnvironment
    case: Case
    job: Job
    record: Record | None
    result: Result
    counts: bool
    why_missing: str
    steady: Steady

    @property
    def ok(self) -> bool:
        """Whether its times are numbers."""
        return self.record is not None and self.record.outcome == "ok"

    @property
    def seconds(self) -> tuple[float, ...]:
        """Every iteration, warm-up first; none unless the outcome is `ok`."""
        return (*self.result.warmup_s, *self.result.values_s) if self.ok else ()

    @property
    def batch(self) -> int:
        """How many calls one value covers: more than one where the clock would have mattered."""
        timing = self.result.timing
        return timing.batch if timing is not None and timing.source == "batch" else 1

    @property
    def warmup_iterations(self) -> int | None:
        """Those before the steady state; None where there is none, or too few tell."""
        if self.steady.state != "steady":
            return None
        timed = max(0, self.steady.start - len(self.result.warmup_s))
        return self.steady.start + timed * (self.batch - 1)

    @property
    def median_s(self) -> float | None:
        """Of the steady iterations; of all timed ones where the process has no steady state.

        None unless the outcome is `ok`: anything else never becomes a number.
        """
        values = self.result.values_s if self.ok else ()
        steady = values[max(0, self.steady.start - len(self.result.warmup_s)) :]
        return statistics.median(steady) if values and min(values) > 0 else None
