"""Works through a plan: block by block, attempt by attempt, until every job has its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orchestrator.model import attempts

if TYPE_CHECKING:
    from orchestrator.log import Progress
    from orchestrator.model.plan import Block, Job, Plan
    from orchestrator.model.record import Record
    from orchestrator.store import RunFolder


class Measure(Protocol):
    """Runs one job to its end, whatever that is, and says what it means."""

    def __call__(self, job: Job, *, attempt: int) -> Record:
        """The record of this attempt."""


def missing_blocks(plan: Plan, records: attempts.ByKey) -> list[Block]:
    """The blocks that have no counting attempt yet, those of the profiles last."""
    return [
        block
        for block in (*plan.blocks, *plan.profile_blocks)
        if attempts.next_attempt(block, records) is not None
    ]


def work_through(
    plan: Plan,
    folder: RunFolder,
    records: attempts.ByKey,
    measure: Measure,
    progress: Progress,
) -> None:
    """Measure every block that `records`, those of the folder, lack; whole, and in order.

    Each record is stored, and added to `records`, as soon as it exists.
    """
    for block in missing_blocks(plan, records):
        first = attempts.next_attempt(block, records)
        while (attempt := attempts.next_attempt(block, records)) is not None:
            for job in block.jobs:
                name = f"{job.arm.name}  {job.case}{' profiled' if job.is_profile else ''}"
                progress.start(name)
                record = measure(job, attempt=attempt)
                folder.write(record)
                records.setdefault(job.key, {})[attempt] = record
                if attempt == first:  # a block that is redone counts once
                    progress.advance(f"{name}: {record.outcome}")
