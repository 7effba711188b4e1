"""The table itself: which record stands for which job, and in what order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pandas as pd

from orchestrator.merge.checks import check_comparable, check_copies
from orchestrator.merge.columns import COLUMNS, DTYPES
from orchestrator.merge.row import Row
from orchestrator.model import attempts
from orchestrator.model.result import RESULT_SCHEMA, Result
from orchestrator.series import steady

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.model.cell import Arm
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record

NO_RECORD: Final = "no record: the run was interrupted, or is still going"
NO_BLOCK: Final = "its block is not complete: the run was interrupted, or is still going"
_EMPTY: Final = Result(schema=RESULT_SCHEMA, outcome="skipped")
_UNKNOWN: Final = steady.Steady("too short", -1)


def merge(
    runs: Sequence[tuple[Plan, Sequence[Record]]], *, places: Sequence[str] = ()
) -> pd.DataFrame:
    """One row a planned job, by run, round, case and arm; a copy of a run adds nothing.

    `places` name the runs in messages, such as by their folders; by default their run_id does.

    `counts` marks the row that stands for the job: its record of the attempt that counts, or one
    with the outcome `missing`. Records of other attempts are further rows, with `counts` false.

    - identity: `run_id key attempt round slot`, `arm` = `environment api mode workload`, `case` =
      `model data input method device knobs` (`a=1+b=2`), `native` (the arm runs its
      environment's own api, tf.keras where there is TensorFlow, in the environment's own mode)
    - what happened: `outcome failure_kind reason timing_source`, which path ran: `executed_as
      training_loop data_adapter kernel`; `steady_state` (`steady`, `no steady state`, `too short`)
    - seconds: `median_s` (of the steady iterations, only where the outcome is `ok`), `import_s
      data_s build_s first_call_s`, lists `values_s warmup_s`; of the host's fixed work
      `control_before_s control_after_s`; on the machine's clock `started_s ended_s`, since 1970
      `started_wall_s ended_wall_s`
    - numbers: `iterations_asked iterations_done warmup_iterations` (those before the steady state)
      `timing_batch` (calls that one of `values_s` covers; 1 unless they are so short that the clock
      matters) `parameters traces retraces first_loss last_loss peak_rss_bytes`, lists `losses
      rss_bytes outputs_before` (`outputs_half`: computed in half precision)
    - where: `machine node gpu` (its name, for a case on the GPU), `proof` (the device that it was
      proven to run on, or `unknown`), `throttle` (why the GPU slowed itself down, or `unknown`),
      `python tensorflow jax torch keras backend image` (the one that the user named), digests
      `guest_digest lock_digest outputs_digest`

    Missing numbers are NaN or NA, missing texts None. Raises UsageError for runs that cannot be
    compared, InputError for copies of one run that contradict each other.
    """
    check_copies(runs, places or [plan.run_id for plan, _ in runs])
    once = attempts.united(runs)
    check_comparable(once)
    rows = _settled([row for plan, records in once for row in _rows(plan, records)])
    return pd.DataFrame(
        {
            name: pd.Series([read(row) for row in rows], dtype=DTYPES.get(kind, "object"))
            for name, (kind, read) in COLUMNS.items()
        }
    )


def _settled(rows: Sequence[Row]) -> list[Row]:
    """The same rows, and where the steady state of each begins."""
    every = [row.seconds if min(row.seconds, default=0.0) > 0 else () for row in rows]
    found = steady.find(every)
    return [replace(row, steady=state) for row, state in zip(rows, found, strict=True)]


def _rows(plan: Plan, records: Sequence[Record]) -> Iterable[Row]:
    by_key = attempts.by_key(records)
    environments = {item.identifier: item for item in plan.environments}
    cases = {case.name: case for case in plan.cases}
    place = {case.name: number for number, case in enumerate(plan.cases)}
    files = [workload.name for workload in plan.workloads]
    for block in sorted(plan.blocks, key=lambda block: (block.round, place[block.case])):
        counting = attempts.counting_attempt(block, by_key)
        jobs = sorted(block.jobs, key=lambda job: _rank(job.arm, list(environments), files))
        for job, record, counts in _fates(jobs, by_key, counting):
            yield Row(
                run_id=plan.run_id,
                guest_digest=plan.guest_digest,
                environment=environments[job.arm.environment],
                case=cases[job.case],
                job=job,
                record=record,
                result=(record.result if record else None) or _EMPTY,
                counts=counts,
                why_missing=NO_BLOCK if by_key.get(job.key) else NO_RECORD,
                steady=_UNKNOWN,
            )


def _rank(
    arm: Arm, environments: Sequence[str], files: Sequence[str]
) -> tuple[int, bool, bool, int, str]:
    """Where people look for an arm: the plan's order is random."""
    file = files.index(arm.workload) if arm.workload in files else len(files)
    place = environments.index(arm.environment)
    return place, arm.api != "tf.keras", arm.mode != "graph", file, arm.workload or ""


def _fates(
    jobs: Iterable[Job], by_key: attempts.ByKey, counting: int | None
) -> Iterable[tuple[Job, Record | None, bool]]:
    for job in jobs:
        tried = by_key.get(job.key, {})
        if counting is None:
            yield job, None, True
        for attempt, record in sorted(tried.items()):
            yield job, record, attempt == counting
