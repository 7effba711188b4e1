"""The columns of the table: the type of each, and how it is read off a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from orchestrator.merge.parts import NO_NUMBERS
from orchestrator.model.matrix import own_api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.merge.row import Cell, Row
    from orchestrator.model.record import Record

TEXT: Final = pa.string()
NUMBER: Final = pa.float64()
COUNT: Final = pa.int64()
FLAG: Final = pa.bool_()
SERIES: Final = pa.list_(pa.float64())
# Lists as a record has them; all other series are arrays.
LISTS: Final = frozenset({"outputs_before"})
# A list or a text has no missing-value type of its own in pandas; numbers have.
DTYPES = {NUMBER: "float64", COUNT: "Int64", FLAG: "bool"}


def _nothing(_: Row) -> None:
    """What is read off a row where all is read off its cell."""


class Column(NamedTuple):
    """The type of a column, and how it is read: off a row, or once off a cell for all its rows."""

    kind: pa.DataType
    read: Callable[[Row], object] = _nothing
    of_cell: Callable[[Cell], object] | None = None


def _cell(kind: pa.DataType, read: Callable[[Cell], object]) -> Column:
    return Column(kind, of_cell=read)


def _of_record(read: Callable[[Record], object]) -> Callable[[Row], object]:
    return lambda row: None if row.record is None else read(row.record)


def _reason(row: Row) -> str | None:
    if row.record is None:
        return row.why_missing
    return row.record.failure.message if row.record.failure else None


def _throttle(row: Row) -> str | None:
    """Why a GPU slowed itself down: `unknown` where it does not tell, empty where it did not."""
    if row.record is None or row.case.device != "gpu":
        return None
    gpus = row.record.engine.get("gpus", [])
    reasons = sorted({word for gpu in gpus for word in gpu["throttle"]})
    tells = bool(gpus) and all(gpu["before"].get("throttle") is not None for gpu in gpus)
    return ", ".join(reasons) or ("" if tells else "unknown")


# One line a column: its type, and how it is read. `merge` says what they mean.
COLUMNS: Final[Mapping[str, Column]] = {
    "run_id": _cell(TEXT, lambda cell: cell.run_id),
    "key": Column(TEXT, lambda row: row.job.key),
    "attempt": Column(COUNT, _of_record(lambda record: record.attempt)),
    "counts": Column(FLAG, lambda row: row.counts),
    "environment": _cell(TEXT, lambda cell: cell.environment.identifier),
    "api": _cell(TEXT, lambda cell: cell.arm.api),
    "mode": _cell(TEXT, lambda cell: cell.arm.mode),
    "workload": _cell(TEXT, lambda cell: cell.arm.workload),
    "arm": _cell(TEXT, lambda cell: cell.arm.name),
    "case": _cell(TEXT, lambda cell: cell.case.name),
    "model": _cell(TEXT, lambda cell: cell.case.model),
    "data": _cell(TEXT, lambda cell: cell.case.data),
    "input": _cell(TEXT, lambda cell: cell.case.input),
    "method": _cell(TEXT, lambda cell: cell.case.method),
    "device": _cell(TEXT, lambda cell: cell.case.device),
    "knobs": _cell(
        TEXT,
        lambda cell: "+".join(f"{k}={v}" for k, v in sorted(cell.case.knobs.items())),
    ),
    "round": Column(COUNT, lambda row: row.job.round),
    "slot": Column(COUNT, lambda row: row.job.slot),
    "outcome": Column(TEXT, lambda row: row.record.outcome if row.record else "missing"),
    "failure_kind": Column(TEXT, _of_record(lambda record: record.failure and record.failure.kind)),
    "reason": Column(TEXT, _reason),
    "started_s": Column(NUMBER, _of_record(lambda record: record.start.monotonic)),
    "ended_s": Column(NUMBER, _of_record(lambda record: record.end.monotonic)),
    "started_wall_s": Column(NUMBER, _of_record(lambda record: record.start.wall)),
    "ended_wall_s": Column(NUMBER, _of_record(lambda record: record.end.wall)),
    "machine": Column(TEXT, _of_record(lambda record: record.host.machine)),
    "node": Column(TEXT, _of_record(lambda record: record.host.node)),
    "guest_digest": _cell(TEXT, lambda cell: cell.guest_digest),
    "lock_digest": _cell(TEXT, lambda cell: cell.environment.lock_digest),
    "python": _cell(TEXT, lambda cell: cell.environment.python),
    "tensorflow": _cell(TEXT, lambda cell: cell.environment.tensorflow),
    "keras": _cell(TEXT, lambda cell: cell.environment.keras),
    "jax": _cell(TEXT, lambda cell: cell.environment.jax),
    "torch": _cell(TEXT, lambda cell: cell.environment.torch),
    "backend": _cell(TEXT, lambda cell: cell.environment.backend),
    # What the user named; our own images hold what the virtual environments do.
    "image": _cell(
        TEXT,
        lambda cell: cell.environment.source if cell.environment.backend == "container" else "",
    ),
    "gpu": Column(
        TEXT,
        lambda row: (
            ", ".join(sorted({str(gpu.get("name")) for gpu in row.record.host.gpus}))
            if row.record and row.case.device == "gpu"
            else ""
        ),
    ),
    "proof": Column(TEXT, lambda row: row.result.proof and row.result.proof.device),
    "native": _cell(
        FLAG,
        lambda cell: (
            (cell.arm.api, cell.arm.mode)
            == (own_api(cell.environment), cell.environment.native_mode)
        ),
    ),
    "throttle": Column(TEXT, _throttle),
    "median_s": Column(NUMBER, lambda row: row.median_s),
    "steady_state": Column(TEXT, lambda row: row.steady.state if row.ok else None),
    "warmup_iterations": Column(COUNT, lambda row: row.warmup_iterations),
    "iterations_asked": Column(
        COUNT, lambda row: row.result.iterations and row.result.iterations.asked
    ),
    "iterations_done": Column(
        COUNT, lambda row: row.result.iterations and row.result.iterations.done
    ),
    "timing_source": Column(TEXT, lambda row: row.result.timing and row.result.timing.source),
    "timing_batch": Column(COUNT, lambda row: row.batch if row.result.timing else None),
    "parameters": Column(COUNT, lambda row: row.result.parameters),
    "executed_as": Column(TEXT, lambda row: row.result.executed_as),
    "training_loop": Column(TEXT, lambda row: row.result.training_loop),
    "data_adapter": Column(TEXT, lambda row: row.result.data_adapter),
    "kernel": Column(TEXT, lambda row: row.result.kernel),
    "traces": Column(COUNT, lambda row: row.result.traces),
    "retraces": Column(COUNT, lambda row: row.result.retraces),
    "first_loss": Column(
        NUMBER, lambda row: row.series.losses[0] if len(row.series.losses) else None
    ),
    "last_loss": Column(
        NUMBER, lambda row: row.series.losses[-1] if len(row.series.losses) else None
    ),
    "outputs_before": Column(
        SERIES,
        lambda row: list(row.result.outputs_before.values) if row.result.outputs_before else [],
    ),
    "outputs_half": Column(
        FLAG,
        lambda row: bool(row.result.outputs_before and row.result.outputs_before.half),
    ),
    "outputs_digest": Column(TEXT, lambda row: row.result.outputs and row.result.outputs.digest),
    # Samples miss what is allocated between two of them; the kernel's high-water mark does not.
    "peak_rss_bytes": Column(COUNT, lambda row: row.result.diagnostics.get("peak_rss_bytes")),
    "import_s": Column(NUMBER, lambda row: row.result.phases_s.import_),
    "data_s": Column(NUMBER, lambda row: row.result.phases_s.data),
    "build_s": Column(NUMBER, lambda row: row.result.phases_s.build),
    "first_call_s": Column(NUMBER, lambda row: row.result.phases_s.first_call),
    "values_s": Column(SERIES, lambda row: row.series.values_s if row.ok else NO_NUMBERS),
    "warmup_s": Column(SERIES, lambda row: row.series.warmup_s if row.ok else NO_NUMBERS),
    "losses": Column(SERIES, lambda row: row.series.losses if row.ok else NO_NUMBERS),
    "rss_bytes": Column(SERIES, lambda row: row.series.rss_bytes if row.ok else NO_NUMBERS),
    "control_before_s": Column(
        NUMBER,
        _of_record(lambda record: record.control and record.control.before_s),
    ),
    "control_after_s": Column(
        NUMBER,
        _of_record(lambda record: record.control and record.control.after_s),
    ),
}
