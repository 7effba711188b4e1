"""The columns of the table: the type of each, and how it is read off a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from orchestrator.model.matrix import own_api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.merge.row import Row
    from orchestrator.model.record import Record

TEXT: Final = pa.string()
NUMBER: Final = pa.float64()
COUNT: Final = pa.int64()
FLAG: Final = pa.bool_()
SERIES: Final = pa.list_(pa.float64())
# A list or a text has no missing-value type of its own in pandas; numbers have.
DTYPES = {NUMBER: "float64", COUNT: "Int64", FLAG: "bool"}


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
COLUMNS: Final[Mapping[str, tuple[pa.DataType, Callable[[Row], object]]]] = {
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
    "throttle": (TEXT, _throttle),
    "median_s": (NUMBER, lambda row: row.median_s),
    "steady_state": (TEXT, lambda row: row.steady.state if row.ok else None),
    "warmup_iterations": (COUNT, lambda row: row.warmup_iterations),
    "iterations_asked": (COUNT, lambda row: row.result.iterations and row.result.iterations.asked),
    "iterations_done": (COUNT, lambda row: row.result.iterations and row.result.iterations.done),
    "timing_source": (TEXT, lambda row: row.result.timing and row.result.timing.source),
    "timing_batch": (COUNT, lambda row: row.batch if row.result.timing else None),
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
