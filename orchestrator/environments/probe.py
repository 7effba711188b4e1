"""The probe: a new environment must import, train, save and load before anything trusts it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import EnvironmentFailedError
from orchestrator.model import codec
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request
from orchestrator.model.result import RESULT_SCHEMA, Result

if TYPE_CHECKING:
    from orchestrator.model.execution import Environment, Execution
    from orchestrator.model.matrix import Row

# The first import reads half a gigabyte, possibly over a network.
LIMITS = Limits(first_call_s=600.0, job_s=600.0)


def probe(environment: Environment, row: Row, *, log: Path) -> None:
    """Run the guest's probe; EnvironmentFailedError with its reason when it does not pass."""
    with tempfile.TemporaryDirectory(prefix="stackrace-probe-") as name:
        execution = environment.run(
            Request(
                action="probe",
                environment=row.identifier,
                expected=Expected(
                    tensorflow=row.tensorflow, jax=row.jax, torch=row.torch, keras=row.keras
                ),
                phase_path=str(Path(name) / "phases"),
            ),
            work=Path(name),
            log=log,
            limits=LIMITS,
        )
    result = answer(execution)
    if isinstance(result, str):
        raise EnvironmentFailedError(
            f"The new environment does not work: {result}.",
            why="A library of the system is missing, or the CPU lacks instructions (AVX) that\n"
            "TensorFlow's wheels need.",
            fix=f"Log: {log}",
        )
    if result.outcome != "ok":
        message = result.failure.message if result.failure else "it gave no reason"
        raise EnvironmentFailedError(
            f"The new environment is not {row.title}, or does not work: {message.rstrip('.')}.",
            why="The lock, the matrix and what the index serves do not agree, or a package is "
            "broken.",
            fix=f"Make the lock again with `nox -s lock`. Log: {log}",
        )


def answer(execution: Execution) -> Result | str:
    """What the guest left, or how it ended without leaving anything."""
    if execution.result is not None:
        return codec.decode(
            execution.result, Result, source="the probe's result", schema=RESULT_SCHEMA
        )
    if execution.start_error is not None:
        return execution.start_error
    if execution.exceeded is not None:
        return f"the probe was not over after {LIMITS.first_call_s:.0f} s"
    ended = (
        f"exit code {execution.exit_code}"
        if execution.signal is None
        else f"signal {execution.signal}"
    )
    phase = f" in the phase {execution.last_phase}" if execution.last_phase else ""
    last = execution.log_tail.splitlines()[-1:]
    return f"the probe ended with {ended}{phase}" + "".join(f" ({line.strip()})" for line in last)
