"""The table itself: which record stands for which job, and in what order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from orchestrator.merge.checks import check_comparable, check_copies
from orchestrator.merge.columns import COLUMNS, DTYPES
from orchestrator.merge.parts import NO_NUMBERS, NONE, take_apart
from orchestrator.merge.row import Cell, Fate, Row
from orchestrator.model import attempts
from orchestrator.model.result import RESULT_SCHEMA, Result
from orchestrator.series import steady
from orchestrator.series.stacks import by_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from orchestrator.merge.columns import Column
    from orchestrator.merge.parts import Run, Series
    from orchestrator.model.cell import Arm
    from orchestrator.model.plan import Block, Job, Plan
    from orchestrator.model.record import Record

NO_RECORD: Final = "no record: the run was interrupted, or is still going"
NO_BLOCK: Final = "its block is not complete: the run was interrupted, or is still going"
_EMPTY: Final = Result(schema=RESULT_SCHEMA, outcome="skipped")


def merge(
    runs: Iterable[tuple[Plan, Iterable[Record]]], *, places: Sequence[str] = ()
) -> pd.DataFrame:
    """The table, as `join` makes it, of runs whose records are whole."""
    return join([take_apart(plan, records) for plan, records in runs], places=places)


def join(runs: Sequence[Run], *, places: Sequence[str] = ()) -> pd.DataFrame:
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

    A list is an array of float64, NaN where a loss was no number; only `outputs_before` is a list.
    Missing numbers are NaN or NA, missing texts None. Raises UsageError for runs that cannot be
    compared, InputError for copies of one run that contradict each other.
    """
    check_copies(runs, places or [run.plan.run_id for run in runs])
    once = attempts.united((run.plan, run.records) for run in runs)
    check_comparable(once)
    series: dict[str, dict[tuple[str, int], Series]] = {}
    for run in runs:
        series.setdefault(run.plan.run_id, {}).update(run.series)
    fates = [fate for plan, records in once for fate in _fates(plan, records, series[plan.run_id])]
    return _table(fates)


def _table(fates: Sequence[Fate]) -> pd.DataFrame:
    cells = {id(fate.cell): fate.cell for fate in fates}  # one object each
    place = {which: number for number, which in enumerate(cells)}
    cell_of = np.array([place[id(fate.cell)] for fate in fates], dtype=np.intp)
    rows = _rows(fates)

    def values(column: Column) -> object:
        if column.of_cell is None:
            return _objects([column.read(row) for row in rows])
        return _objects([column.of_cell(cell) for cell in cells.values()])[cell_of]

    return pd.DataFrame(
        {
            name: pd.Series(values(column), dtype=DTYPES.get(column.kind, "object"))
            for name, column in COLUMNS.items()
        }
    )


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    """One object each: of arrays of one length numpy would make a table by itself."""
    return np.fromiter(values, dtype=np.object_, count=len(values))


def _rows(fates: Sequence[Fate]) -> list[Row]:
    """What the columns are read from: where the steady state of each begins, and its median."""
    series = [fate.series if fate.ok else NONE for fate in fates]
    # No clock reads a time of nothing: what has one is no number, and shows no state.
    positive = _of_each(np.min, [one.seconds for one in series]) > 0
    states = steady.find(
        [one.seconds if some else NO_NUMBERS for one, some in zip(series, positive, strict=True)]
    )
    medians = _of_each(
        np.median,
        [
            one.values_s[max(0, state.start - one.warmups) :]
            for one, state in zip(series, states, strict=True)
        ],
    )
    medians[~(_of_each(np.min, [one.values_s for one in series]) > 0)] = np.nan
    return [
        Row(
            job=fate.job,
            record=fate.record,
            result=(fate.record.result if fate.record else None) or _EMPTY,
            case=fate.cell.case,
            series=fate.series,
            ok=fate.ok,
            counts=fate.counts,
            why_missing=fate.why_missing,
            steady=state,
            median_s=median,
        )
        for fate, state, median in zip(fates, states, medians.tolist(), strict=True)
    ]


def _of_each(
    function: Callable[..., NDArray[np.float64]], every: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """(series,): one number of each; NaN of an empty one."""
    found = np.full(len(every), np.nan)
    for places, values in by_length(every, enough=1):
        found[places] = function(values, axis=1)
    return found


def _fates(
    plan: Plan, records: Sequence[Record], series: Mapping[tuple[str, int], Series]
) -> Iterator[Fate]:
    by_key = attempts.by_key(records)
    cells = _Cells(plan)
    for block in sorted(plan.blocks, key=cells.order):
        counting = attempts.counting_attempt(block, by_key)
        for job in sorted(block.jobs, key=lambda job: cells.rank(job.arm)):
            tried = by_key.get(job.key, {})
            found: list[tuple[int, Record | None]] = sorted(tried.items())
            for attempt, record in found if counting is not None else [(0, None), *found]:
                yield Fate(
                    cell=cells.of(job),
                    job=job,
                    record=record,
                    series=series.get((job.key, attempt), NONE),
                    counts=record is None or attempt == counting,
                    why_missing=NO_BLOCK if tried else NO_RECORD,
                )


class _Cells:
    """The cells of one plan, each once, and where people look for them: its order is random."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._environments = {item.identifier: item for item in plan.environments}
        self._cases = {case.name: case for case in plan.cases}
        self._places = {name: place for place, name in enumerate(self._cases)}
        self._ranks = {name: place for place, name in enumerate(self._environments)}
        self._files = [workload.name for workload in plan.workloads]
        self._known: dict[tuple[str, Arm], Cell] = {}

    def order(self, block: Block) -> tuple[int, int]:
        return block.round, self._places[block.case]

    def rank(self, arm: Arm) -> tuple[int, bool, bool, int, str]:
        file = self._files.index(arm.workload) if arm.workload in self._files else len(self._files)
        place = self._ranks[arm.environment]
        return (
            place,
            arm.api != "tf.keras",
            arm.mode != "graph",
            file,
            arm.workload or "",
        )

    def of(self, job: Job) -> Cell:
        found = self._known.get((job.case, job.arm))
        if found is None:
            found = self._known[job.case, job.arm] = Cell(
                run_id=self._plan.run_id,
                guest_digest=self._plan.guest_digest,
                environment=self._environments[job.arm.environment],
                arm=job.arm,
                case=self._cases[job.case],
            )
        return found
