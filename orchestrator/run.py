"""Works through a plan: block by block, attempt by attempt, until every job has its record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orchestrator.model import attempts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.log import Progress
    from orchestrator.model.plan import Block, Job
    from orchestrator.model.record import Record
    from orchestrator.store import RunFolder


class Measure(Protocol):
    """Runs one job to its end, whatever that is, and says what it means."""

    def __call__(self, job: Job, *, attempt: int) -> Record:
        """The record of this attempt."""


def missing_blocks(blocks: Iterable[Block], records: attempts.ByKey) -> list[Block]:
    """Those of these blocks that have no counting attempt yet."""
    return [block for block in blocks if attempts.next_attempt(block, records) is not None]


def work_through(
    blocks: Iterable[Block],
    folder: RunFolder,
    records: attempts.ByKey,
    measure: Measure,
    progress: Progress,
) -> None:
    """Measure every one of these blocks that `records`, those of the folder, lack; in order.

    A block is measured whole. Each record is stored, and added to `records`, as soon as it exists.
    """
    for block in missing_blocks(blocks, records):
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
