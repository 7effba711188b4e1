"""Decides what a process's end means: every execution becomes one record, none a guess."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.errors import InputError
from orchestrator.model import codec
from orchestrator.model.record import RECORD_SCHEMA, Control, Host, Instant, Load, Record
from orchestrator.model.result import RESULT_SCHEMA, Failure, Proof, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.model.cell import Case
    from orchestrator.model.execution import Execution
    from orchestrator.model.names import Outcome
    from orchestrator.model.plan import Job, Limits, Plan

# A GPU at its power limit is at work; one that is too hot, or starved, is not itself.
SLOWED = frozenset(
    {"hardware slowdown", "thermal slowdown", "hardware thermal slowdown", "power brake"}
)
# What a signal usually means for TensorFlow; the log's last lines are quoted below it.
SIGNALS: dict[int, str] = {
    signal.SIGILL: "This TensorFlow was built for CPU instructions (AVX) that this CPU, or its "
    "emulation, does not have.",
    signal.SIGSEGV: "TensorFlow, or a library that it loads, touched memory that is not its own.",
    signal.SIGABRT: "A check inside TensorFlow failed, or memory could not be had.",
    signal.SIGKILL: "Something outside killed it: a person, a job system, or a memory limit.",
}
# What a library says before it gives up for want of memory.
NO_MEMORY = ("bad_alloc", "Cannot allocate memory")


def known_beforehand(
    job: Job, case: Case, *, plan: Plan, attempt: int, host: Host, at: Instant
) -> Record:
    """The record of a job for which no process is started, because its arm cannot do this."""
    return Record(
        schema=RECORD_SCHEMA,
        run_id=plan.run_id,
        key=job.key,
        attempt=attempt,
        arm=job.arm,
        case=case,
        round=job.round,
        slot=job.slot,
        outcome="unsupported",
        failure=Failure(kind="matrix", message=job.unsupported or "not supported"),
        start=at,
        end=at,
        host=host,
        guest_digest=plan.guest_digest,
        lock_digest=plan.environment(job.arm.environment).lock_digest,
    )


def make(
    job: Job,
    case: Case,
    execution: Execution,
    *,
    plan: Plan,
    attempt: int,
    host: Host,
    before: Load,
    after: Load,
    engine: Mapping[str, Any],
    control: Control | None = None,
) -> Record:
    """What the process did, and what that means.

    `engine`: where and how it was started. `control`: how fast the host was around it.
    """
    limits = plan.limits_of(job.arm.environment, case.device, profile=job.is_profile)
    outcome, failure, result = _judge(execution, limits, profiled=job.is_profile)
    if outcome == "ok" and result is not None and case.device == "gpu":
        outcome, failure, result = _on_gpu(execution, result)
    blank = known_beforehand(job, case, plan=plan, attempt=attempt, host=host, at=execution.start)
    planned = plan.environment(job.arm.environment)
    facts: dict[str, Any] = {**engine, "backend": planned.backend}
    if execution.exceeded is not None:
        facts["stopped_for"] = execution.exceeded
    if execution.gpus:
        facts["gpus"] = list(execution.gpus)
    if execution.gpu_bytes is not None:
        facts["gpu_bytes"] = execution.gpu_bytes
    return msgspec.structs.replace(
        blank,
        outcome=outcome,
        failure=failure,
        end=execution.end,
        result=result,
        exit_code=execution.exit_code,
        signal=_signal_name(execution.signal),
        last_phase=execution.last_phase,
        before=before,
        after=after,
        control=control,
        image_digest=planned.image_digest,
        engine=facts,
    )


def _judge(
    execution: Execution, limits: Limits, *, profiled: bool
) -> tuple[Outcome, Failure | None, Result | None]:
    if execution.start_error is not None:
        failure = Failure(kind="start", message=execution.start_error)
        return "environment_error", failure, None
    result, unreadable = _result(execution)
    if result is not None and (result.outcome == "ok" or execution.lost is None):
        # Whole results count however the process ended: some TensorFlows hang or crash at exit.
        return _claim(result, execution.mend, profiled=profiled)
    if execution.lost is not None:
        return "environment_error", Failure(kind="lost_engine", message=execution.lost), result
    if execution.exceeded is not None:
        return "timed_out", _timeout(execution, limits), None
    if unreadable is not None:
        return "failed", unreadable, None
    outcome, failure = _no_result(execution)
    return outcome, failure, None


def _result(execution: Execution) -> tuple[Result | None, Failure | None]:
    """What the guest left: a result, why it cannot be read, or neither."""
    if execution.result is None:
        return None, None
    try:
        return codec.decode(
            execution.result, Result, source="the guest's result", schema=RESULT_SCHEMA
        ), None
    except InputError as error:
        message = f"{error.what}\n{execution.log_tail}".strip()
        return None, Failure(kind="result", message=message)


def _claim(result: Result, mend: str, *, profiled: bool) -> tuple[Outcome, Failure | None, Result]:
    """Take the guest's word, except for a success that measured nothing usable."""
    if result.outcome != "ok":
        failure = result.failure or Failure(kind="unexplained", message="The guest gave no reason.")
        if (result.outcome, failure.kind) == ("environment_error", "import") and mend:
            message = f"{failure.message}\n{mend}"
            failure = msgspec.structs.replace(failure, message=message)
        return result.outcome, failure, result
    if not result.usable(profiled=profiled):
        what = "a profile" if profiled else "usable times"
        failure = Failure(kind="values", message=f"The guest reported success without {what}.")
        return "failed", failure, result
    return "ok", None, result


def _on_gpu(execution: Execution, result: Result) -> tuple[Outcome, Failure | None, Result]:
    """Whether a success of a GPU case is one: that is proven, not assumed."""
    proof = result.proof or Proof(device="unknown", how="The guest did not say where it ran.")
    if proof.device == "unknown" and execution.gpu_bytes == 0:
        facts = {**proof.facts, "gpu_bytes": 0, "seen": "no new process held memory of the GPU"}
        proof = msgspec.structs.replace(proof, facts=facts)
    result = msgspec.structs.replace(result, proof=proof)
    if proof.device == "cpu":
        message = f"It was to run on the GPU, and ran on the CPU: {proof.how}"
        return "invalid", Failure(kind="device", message=message), result
    slowed = sorted(SLOWED & {word for gpu in execution.gpus for word in gpu["throttle"]})
    if slowed:
        message = (
            f"The GPU slowed itself down while it was measured: {', '.join(slowed)}. Its cooling "
            "or its power supply is not enough."
        )
        return "invalid", Failure(kind="throttled", message=message), result
    return "ok", None, result


def _timeout(execution: Execution, limits: Limits) -> Failure:
    phase = f" It was in the phase {execution.last_phase}." if execution.last_phase else ""
    if execution.exceeded == "first_call":
        message = (
            f"The first call was not over {limits.first_call_s:.0f} s after the start.{phase} "
            "Allow more with first-call-seconds in stackrace.toml."
        )
    else:
        message = (
            f"Not finished {limits.job_s:.0f} s after the first call, although iterations are cut "
            f"to fit.{phase} Allow more with --max-job-seconds."
        )
    return Failure(kind=f"{execution.exceeded}_limit", message=message)


def _no_result(execution: Execution) -> tuple[Outcome, Failure]:
    where = f" in the phase {execution.last_phase}" if execution.last_phase else ""
    tail = f"\n{execution.log_tail}" if execution.log_tail else ""
    if execution.signal is None:
        message = f"Exit code {execution.exit_code}{where}, without a result.{tail}"
        return "crashed", Failure(kind="exit", message=message)
    name = _signal_name(execution.signal)
    if execution.signal == signal.SIGKILL and execution.oom_kills > 0:
        message = f"The kernel ended it{where} for want of memory ({name})."
        return "out_of_memory", Failure(kind="oom_killer", message=message)
    if execution.signal == signal.SIGABRT and any(w in execution.log_tail for w in NO_MEMORY):
        message = f"Memory could not be had{where} ({name}).{tail}"
        return "out_of_memory", Failure(kind="allocation", message=message)
    meaning = SIGNALS.get(execution.signal, "")
    message = f"{name}{where}. {meaning}{tail}"
    return "crashed", Failure(kind="signal", message=message)


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
