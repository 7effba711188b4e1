"""One row of the table, before it is taken apart into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from orchestrator.merge.parts import Series
    from orchestrator.model.cell import Arm, Case
    from orchestrator.model.plan import Job, PlannedEnvironment
    from orchestrator.model.record import Record
    from orchestrator.model.result import Result
    from orchestrator.series.steady import Steady


class Cell(NamedTuple):
    """What all rows of one cell of one run have in common."""

    run_id: str
    guest_digest: str
    environment: PlannedEnvironment
    arm: Arm
    case: Case


class Fate(NamedTuple):
    """What became of one attempt of a job; without a record: nothing yet.

    `series`: empty unless the outcome is `ok`, for anything else never becomes a number.
    """

    cell: Cell
    job: Job
    record: Record | None
    series: Series
    counts: bool
    why_missing: str

    @property
    def ok(self) -> bool:
        """Whether its times are numbers."""
        return self.record is not None and self.record.outcome == "ok"


class Row(NamedTuple):
    """All that the columns of one row are read from, beside its cell.

    `result`: an empty one where there is none. `median_s`: of the steady iterations; of all timed
    ones where the process has no steady state; NaN where it has no times.
    """

    case: Case
    job: Job
    record: Record | None
    result: Result
    series: Series
    ok: bool
    counts: bool
    why_missing: str
    steady: Steady
    median_s: float

    @property
    def batch(self) -> int:
        """How many calls each of its timed values covers."""
        timing = self.result.timing
        return timing.batch if timing and timing.source == "batch" else 1

    @property
    def warmup_iterations(self) -> int | None:
        """Iterations before the steady state; warm-up is timed call by call, whatever follows."""
        if self.steady.state != "steady":
            return None
        alone = min(self.steady.start, len(self.series.warmup_s))
        return alone + (self.steady.start - alone) * self.batch
