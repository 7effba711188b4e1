"""Puts runs together in one table: a row a planned job, whatever became of it."""

from __future__ import annotations

import io
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from orchestrator.errors import InputError, UsageError
from orchestrator.model import attempts
from orchestrator.model.matrix import own_api, title
from orchestrator.model.result import RESULT_SCHEMA, Result
from orchestrator.store import NAME_RESULTS, write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from orchestrator.model.cell import Arm, Case
    from orchestrator.model.plan import Job, Plan, PlannedEnvironment
    from orchestrator.model.record import Record

NO_RECORD: Final = "no record: the run was interrupted, or is still going"
NO_BLOCK: Final = "its block is not complete: the run was interrupted, or is still going"
_EMPTY: Final = Result(schema=RESULT_SCHEMA, outcome="skipped")

TEXT: Final = pa.string()
NUMBER: Final = pa.float64()
COUNT: Final = pa.int64()
FLAG: Final = pa.bool_()
SERIES: Final = pa.list_(pa.float64())
# A list or a text has no missing-value type of its own in pandas; numbers have.
_DTYPES = {NUMBER: "float64", COUNT: "Int64", FLAG: "bool"}


@dataclass(frozen=True, kw_only=True)
class _Row:
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

    @property
    def ok(self) -> bool:
        return self.record is not None and self.record.outcome == "ok"


def _of_record(read: Callable[[Record], object]) -> Callable[[_Row], object]:
    return lambda row: None if row.record is None else read(row.record)


def _reason(row: _Row) -> str | None:
    if row.record is None:
        return row.why_missing
    return row.record.failure.message if row.record.failure else None


def _median(row: _Row) -> float | None:
    """None unless the outcome is `ok`: anything else never becomes a number."""
    values = sorted(row.result.values_s) if row.ok else []
    return statistics.median(values) if values and values[0] > 0 else None


# One line a column: its type, and how it is read. `merge` documents them.
_COLUMNS: Final[Mapping[str, tuple[pa.DataType, Callable[[_Row], object]]]] = {
    "run_id": (TEXT, lambda row: row.run_id),
    "key": (TEXT, lambda row: row.job.key),
    "attempt": (COUNT, _of_record(lambda record: record.attempt)),
    "counts": (FLAG, lambda row: row.counts),
    "environment": (TEXT, lambda row: row.environment.identifier),
    "api": (TEXT, lambda row: row.job.arm.api),
    "mode": (TEXT, lambda row: row.job.arm.mode),
    "workload": (TEXT, lambda row: row.job.arm.workload),
    "arm": (TEXT, lambda row: row.job.arm.name),
    "case": (TEXT, lambda row: row.job.case),
    "model": (TEXT, lambda row: row.case.model),
    "data": (TEXT, lambda row: row.case.data),
    "input": (TEXT, lambda row: row.case.input),
    "method": (TEXT, lambda row: row.case.method),
    "device": (TEXT, lambda row: row.case.device),
    "knobs": (TEXT, lambda row: "+".join(f"{k}={v}" for k, v in sorted(row.case.knobs.items()))),
    "round": (COUNT, lambda row: row.job.round),
    "slot": (COUNT, lambda row: row.job.slot),
    "outcome": (TEXT, lambda row: row.record.outcome if row.record else "missing"),
    "failure_kind": (TEXT, _of_record(lambda record: record.failure and record.failure.kind)),
    "reason": (TEXT, _reason),
    "started_s": (NUMBER, _of_record(lambda record: record.start.monotonic)),
    "ended_s": (NUMBER, _of_record(lambda record: record.end.monotonic)),
    "started_wall_s": (NUMBER, _of_record(lambda record: record.start.wall)),
    "ended_wall_s": (NUMBER, _of_record(lambda record: record.end.wall)),
    "machine": (TEXT, _of_record(lambda record: record.host.machine)),
    "node": (TEXT, _of_record(lambda record: record.host.node)),
    "guest_digest": (TEXT, lambda row: row.guest_digest),
    "lock_digest": (TEXT, lambda row: row.environment.lock_digest),
    "python": (TEXT, lambda row: row.environment.python),
    "tensorflow": (TEXT, lambda row: row.environment.tensorflow),
    "keras": (TEXT, lambda row: row.environment.keras),
    "jax": (TEXT, lambda row: row.environment.jax),
    "torch": (TEXT, lambda row: row.environment.torch),
    "backend": (TEXT, lambda row: row.environment.backend),
    # What the user named; our own images hold what the virtual environments do.
    "image": (
        TEXT,
        lambda row: row.environment.source if row.environment.backend == "container" else "",
    ),
    "gpu": (
        TEXT,
        lambda row: (
            ", ".join(sorted({str(gpu.get("name")) for gpu in row.record.host.gpus}))
            if row.record and row.case.device == "gpu"
            else ""
        ),
    ),
    "proof": (TEXT, lambda row: row.result.proof and row.result.proof.device),
    "native": (
        FLAG,
        lambda row: (
            (row.job.arm.api, row.job.arm.mode)
            == (own_api(row.environment), row.environment.native_mode)
        ),
    ),
    "median_s": (NUMBER, _median),
    "iterations_asked": (COUNT, lambda row: row.result.iterations and row.result.iterations.asked),
    "iterations_done": (COUNT, lambda row: row.result.iterations and row.result.iterations.done),
    "timing_source": (TEXT, lambda row: row.result.timing and row.result.timing.source),
    "parameters": (COUNT, lambda row: row.result.parameters),
    "executed_as": (TEXT, lambda row: row.result.executed_as),
    "training_loop": (TEXT, lambda row: row.result.training_loop),
    "data_adapter": (TEXT, lambda row: row.result.data_adapter),
    "kernel": (TEXT, lambda row: row.result.kernel),
    "traces": (COUNT, lambda row: row.result.traces),
    "retraces": (COUNT, lambda row: row.result.retraces),
    "first_loss": (NUMBER, lambda row: row.result.losses[0] if row.result.losses else None),
    "last_loss": (NUMBER, lambda row: row.result.losses[-1] if row.result.losses else None),
    "outputs_before": (
        SERIES,
        lambda row: list(row.result.outputs_before.values) if row.result.outputs_before else [],
    ),
    "outputs_half": (
        FLAG,
        lambda row: bool(row.result.outputs_before and row.result.outputs_before.half),
    ),
    "outputs_digest": (TEXT, lambda row: row.result.outputs and row.result.outputs.digest),
    # Samples miss what is allocated between two of them; the kernel's high-water mark does not.
    "peak_rss_bytes": (COUNT, lambda row: row.result.diagnostics.get("peak_rss_bytes")),
    "import_s": (NUMBER, lambda row: row.result.phases_s.import_),
    "data_s": (NUMBER, lambda row: row.result.phases_s.data),
    "build_s": (NUMBER, lambda row: row.result.phases_s.build),
    "first_call_s": (NUMBER, lambda row: row.result.phases_s.first_call),
    "values_s": (SERIES, lambda row: list(row.result.values_s) if row.ok else []),
    "warmup_s": (SERIES, lambda row: list(row.result.warmup_s) if row.ok else []),
    "losses": (SERIES, lambda row: list(row.result.losses) if row.ok else []),
    "rss_bytes": (SERIES, lambda row: list(row.result.rss_bytes) if row.ok else []),
    "control_before_s": (
        NUMBER,
        _of_record(lambda record: record.control and record.control.before_s),
    ),
    "control_after_s": (
        NUMBER,
        _of_record(lambda record: record.control and record.control.after_s),
    ),
}


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
    - what happened: `outcome failure_kind reason executed_as timing_source`
    - seconds: `median_s` (only where the outcome is `ok`), `import_s data_s build_s first_call_s`,
      lists `values_s warmup_s`; on the machine's clock `started_s ended_s`, since 1970
      `started_wall_s ended_wall_s`
    - numbers: `iterations_asked iterations_done parameters first_loss last_loss peak_rss_bytes`
    - where: `machine node gpu` (its name, for a case on the GPU), `proof` (the device that it was
      proven to run on, or `unknown`), `python tensorflow jax torch keras backend image` (the one
      that the user named), digests `guest_digest lock_digest
      outputs_digest`

    Missing numbers are NaN or NA, missing texts None. Raises UsageError for runs that cannot be
    compared, InputError for copies of one run that contradict each other.
    """
    _check_copies(runs, places or [plan.run_id for plan, _ in runs])
    copies: dict[str, list[tuple[Plan, Sequence[Record]]]] = {}
    for plan, records in runs:
        copies.setdefault(plan.run_id, []).append((plan, records))
    plans = [same[0][0] for same in copies.values()]
    _check_guests(copies)
    _check_alike(plans)
    rows = [row for same in copies.values() for row in _rows(same[0][0], _united(same))]
    return pd.DataFrame(
        {
            name: pd.Series([read(row) for row in rows], dtype=_DTYPES.get(kind, "object"))
            for name, (kind, read) in _COLUMNS.items()
        }
    )


def export(frame: pd.DataFrame, path: Path, *, fix: str = NAME_RESULTS) -> None:
    """Write the table as .parquet, .csv (lists as JSON text) or .json (a list of objects)."""
    writers = {".parquet": _parquet, ".csv": _csv, ".json": _json}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise UsageError(
            f"{path} ends in {path.suffix or 'nothing'}; a table ends in {', '.join(writers)}.",
            fix="The ending says which format is written.",
        )
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "would stand in a folder that does not exist"
        raise UsageError(f"{path} {problem}.", fix="Name a file in an existing folder.")
    schema = pa.schema([(name, kind) for name, (kind, _) in _COLUMNS.items()])
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    write_report(path, writer(table), fix=fix)


def _check_guests(copies: Mapping[str, Sequence[tuple[Plan, Sequence[Record]]]]) -> None:
    """Results of changed code are never compared."""
    found: dict[str, set[str]] = {}
    for run_id, same in copies.items():
        for plan, records in same:
            for digest in {plan.guest_digest, *(record.guest_digest for record in records)}:
                found.setdefault(digest, set()).add(run_id)
    if len(found) > 1:
        lines = [f"{', '.join(sorted(ids))}: guest {digest}" for digest, ids in found.items()]
        raise UsageError(
            "These runs were measured by different workload code: " + "; ".join(lines) + ".",
            why="What a process does, and when it looks at the clock, may have changed between.",
            fix="Compare runs of one version of stackrace, or measure again.",
        )


def _check_alike(plans: Iterable[Plan]) -> None:
    """One name means one thing in every run."""
    known: dict[str, tuple[str, object]] = {}
    for plan in plans:
        meanings: dict[str, object] = {item.identifier: title(item) for item in plan.environments}
        meanings |= {
            case.name: f"batch shape {case.batch_shape}, {case.parameters} parameters"
            for case in plan.cases
        }
        meanings |= {
            f"The workload {item.name}": f"of digest {item.digest[:12]}" for item in plan.workloads
        }
        for name, meaning in meanings.items():
            run_id, other = known.setdefault(name, (plan.run_id, meaning))
            if other != meaning:
                raise UsageError(
                    f"{name} is {other} in run {run_id}, but {meaning} in run {plan.run_id}.",
                    why="The matrix, the grid or the workload was changed between the two.",
                    fix="Compare these runs apart from each other.",
                )


def _check_copies(runs: Sequence[tuple[Plan, Sequence[Record]]], places: Sequence[str]) -> None:
    """Copies of a run agree on every record that both have; InputError names two that do not."""
    known: dict[str, tuple[str, Plan]] = {}
    for (plan, _), place in zip(runs, places, strict=True):
        for mark in (f"run_id {plan.run_id}", *(f"job {job.key}" for job in plan.jobs)):
            other, same = known.setdefault(mark, (place, plan))
            if same != plan:
                raise UsageError(
                    f"{other} and {place} are two different runs with the same {mark}.",
                    why="They are copies of one run, and the plan of one of them was edited.",
                    fix="Leave one of them out.",
                )
    found: dict[tuple[str, int], tuple[str, Record]] = {}
    for (_, records), place in zip(runs, places, strict=True):
        for record in records:
            other, first = found.setdefault((record.key, record.attempt), (place, record))
            if first != record:
                name = f"records/{record.key}.{record.attempt}.json"
                raise InputError(
                    f"{other}/{name} and {place}/{name} contradict each other.",
                    why="Both folders are copies of one run, and both were resumed, or one was "
                    "edited.",
                    fix="Leave one of them out.",
                )


def _united(same: Sequence[tuple[Plan, Sequence[Record]]]) -> list[Record]:
    """The records of one run out of its copies, each once."""
    found = {(record.key, record.attempt): record for _, records in same for record in records}
    return list(found.values())


def _rows(plan: Plan, records: Sequence[Record]) -> Iterable[_Row]:
    by_key = attempts.by_key(records)
    environments = {item.identifier: item for item in plan.environments}
    cases = {case.name: case for case in plan.cases}
    place = {case.name: number for number, case in enumerate(plan.cases)}
    files = [workload.name for workload in plan.workloads]
    for block in sorted(plan.blocks, key=lambda block: (block.round, place[block.case])):
        counting = attempts.counting_attempt(block, by_key)
        jobs = sorted(block.jobs, key=lambda job: _rank(job.arm, list(environments), files))
        for job, record, counts in _fates(jobs, by_key, counting):
            yield _Row(
                run_id=plan.run_id,
                guest_digest=plan.guest_digest,
                environment=environments[job.arm.environment],
                case=cases[job.case],
                job=job,
                record=record,
                result=(record.result if record else None) or _EMPTY,
                counts=counts,
                why_missing=NO_BLOCK if by_key.get(job.key) else NO_RECORD,
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


def _parquet(table: Any) -> bytes:  # noqa: ANN401  pyarrow has no types
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _csv(table: Any) -> bytes:  # noqa: ANN401
    columns = {
        name: [msgspec.json.encode(item).decode() for item in column]
        if _COLUMNS[name][0] == SERIES
        else column
        for name, column in table.to_pydict().items()
    }
    return pd.DataFrame(columns, dtype="object").to_csv(index=False).encode()


def _json(table: Any) -> bytes:  # noqa: ANN401
    return msgspec.json.encode(table.to_pylist()) + b"\n"
