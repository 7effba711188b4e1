"""What a process's end means: every execution becomes one record, and a failure never a number."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from orchestrator import record
from orchestrator.model import codec
from orchestrator.model.execution import Execution
from orchestrator.model.record import Instant, Load
from orchestrator.model.result import Failure, Profile, Proof
from tests import factories

if TYPE_CHECKING:
    from orchestrator.model.plan import Job
    from orchestrator.model.record import Record

AT = Instant(wall=1.0, monotonic=1.0)
LOAD = Load(load_1m=0.5, available_bytes=2**30)
PLAN = factories.plan(rounds=1)
JOB = PLAN.jobs[0]


PROFILE_JOB = factories.with_profiles(PLAN).profiles[0]


def of(job: Job = JOB, **facts: object) -> Record:
    """The record of an execution with these facts."""
    values: dict[str, object] = {"start": AT, "end": AT, "result": None, "exit_code": 0}
    execution = Execution(**(values | facts))  # type: ignore[arg-type]
    return record.make(
        job,
        PLAN.case(job.case),
        execution,
        plan=PLAN,
        attempt=1,
        host=factories.HOST,
        before=LOAD,
        after=LOAD,
        engine={"name": "local"},
    )


def said(result: object) -> bytes:
    """What a guest left in its result file."""
    return codec.encode(result)


def message(made: Record) -> str:
    """Why there is no number."""
    assert made.failure is not None
    return made.failure.message


def test_a_profile_is_no_time_and_a_time_no_profile() -> None:
    """Whoever was to be timed and has only a profile failed, and the other way round."""
    profile = Profile(
        run_s=1.0, iterations=9, build=0.0, data=0.0, training=60.0, other=40.0, unattributed=0.0
    )
    timed, profiled = factories.result([0.01]), factories.result([], profile=profile)
    assert ("ok", "ok") == (
        of(result=said(timed)).outcome,
        of(PROFILE_JOB, result=said(profiled)).outcome,
    )
    assert "without usable times" in message(of(result=said(profiled)))
    assert "without a profile" in message(of(PROFILE_JOB, result=said(timed)))


def test_success_is_ok() -> None:
    """A result with times is ok, and stands whole in the record."""
    result = factories.result([0.01, 0.02])
    made = of(result=said(result))
    assert ("ok", None, result) == (made.outcome, made.failure, made.result)
    assert (JOB.key, JOB.arm, 1, "lock-tf114") == (
        made.key,
        made.arm,
        made.attempt,
        made.lock_digest,
    )


def test_guests_word_is_taken() -> None:
    """An outcome other than ok comes from the guest with its failure."""
    failure = Failure(kind="eager", message="cannot")
    made = of(result=said(factories.result([], outcome="unsupported", failure=failure)))
    assert ("unsupported", failure) == (made.outcome, made.failure)


@pytest.mark.parametrize("values", [[], [0.0, 0.1], [-1.0]])
def test_success_without_times_is_a_failure(values: list[float]) -> None:
    """A success that measured nothing usable is no success."""
    made = of(result=said(factories.result(values)))
    assert made.outcome == "failed"
    assert "without usable times" in message(made)


def test_failure_without_a_reason_gets_one() -> None:
    """A guest that gives no reason is quoted as saying so."""
    made = of(result=said(factories.result([], outcome="failed")))
    assert message(made) == "The guest gave no reason."


@pytest.mark.parametrize("raw", [b"", b"{", b'{"schema": "stackrace.result/7"}', b"[1]"])
def test_unreadable_result_is_a_failure(raw: bytes) -> None:
    """A result file that is rubbish is a failure, never a number."""
    made = of(result=raw, log_tail="last words")
    assert made.outcome == "failed"
    assert "last words" in message(made)


def test_start_error_is_the_environments_fault() -> None:
    """What could not be started is done again: the cause lies outside the cell."""
    made = of(exit_code=None, start_error="bin/python could not be started")
    assert made.outcome == "environment_error"
    assert made.redoable


def test_first_call_limit() -> None:
    """A first call that takes too long is timed out, with its phase and the way to allow more."""
    made = of(exit_code=None, signal=2, exceeded="first_call", last_phase="build")
    assert made.outcome == "timed_out"
    assert message(made) == (
        "The first call was not over 60 s after the start. It was in the phase build. Allow more "
        "with first-call-seconds in stackrace.toml."
    )


def test_job_limit() -> None:
    """A process that does not end in time is timed out, with the way to allow more."""
    made = of(exit_code=None, signal=2, exceeded="job", last_phase="timed")
    assert made.outcome == "timed_out"
    assert "--max-job-seconds" in message(made)
    assert not made.redoable


def test_whole_result_counts_however_the_process_ended() -> None:
    """A TensorFlow that hangs or crashes at its exit has measured all the same."""
    result = factories.result([0.1, 0.1])
    hung = of(result=said(result), exit_code=None, signal=9, exceeded="job", last_phase="outputs")
    assert ("ok", result, "SIGKILL") == (hung.outcome, hung.result, hung.signal)
    assert hung.engine == {"name": "local", "backend": "venv", "stopped_for": "job"}
    crashed = of(result=said(result), exit_code=None, signal=11)
    assert ("ok", "SIGSEGV") == (crashed.outcome, crashed.signal)


def test_half_a_result_does_not_count() -> None:
    """What a stopped worker left unfinished is a time-out like any other."""
    assert of(result=b"{", exceeded="job", exit_code=None, signal=9).outcome == "timed_out"


def test_exit_without_a_result_is_a_crash() -> None:
    """No result and an exit code: crashed, with the phase and the log's last lines."""
    made = of(exit_code=3, last_phase="import", log_tail="ImportError: x")
    assert made.outcome == "crashed"
    assert message(made) == ("Exit code 3 in the phase import, without a result.\nImportError: x")


def test_illegal_instruction_is_explained() -> None:
    """SIGILL is the CPU's answer to AVX."""
    made = of(exit_code=None, signal=int(signal.SIGILL))
    assert ("crashed", "SIGILL") == (made.outcome, made.signal)
    assert "AVX" in message(made)


def test_kernel_that_ran_out_of_memory() -> None:
    """SIGKILL while the kernel killed for memory is out_of_memory; without that it is a crash."""
    kill = int(signal.SIGKILL)
    assert of(exit_code=None, signal=kill, oom_kills=1).outcome == "out_of_memory"
    assert of(exit_code=None, signal=kill, oom_kills=0).outcome == "crashed"


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("terminate called after throwing an instance of 'std::bad_alloc'", "out_of_memory"),
        ("OSError: [Errno 12] Cannot allocate memory", "out_of_memory"),
        ("F tensorflow: Check failed", "crashed"),
    ],
)
def test_memory_that_a_library_could_not_get(said: str, outcome: str) -> None:
    """An abort is told by the library's last words; the log keeps them."""
    made = of(exit_code=None, signal=int(signal.SIGABRT), log_tail=said)
    assert outcome == made.outcome
    assert said in message(made)


def test_unknown_signal_is_named_by_number() -> None:
    """Real-time signals have no name everywhere."""
    made = of(exit_code=None, signal=63)
    assert made.signal == "signal 63"


def test_cell_known_to_be_impossible() -> None:
    """A job that the matrix rules out is unsupported with the matrix's reason."""
    job = (
        factories.plan(rounds=1)
        .jobs[0]
        .__class__(
            key="k", arm=JOB.arm, case=JOB.case, round=1, slot=0, unsupported="no eager here"
        )
    )
    made = record.known_beforehand(
        job, PLAN.case(JOB.case), plan=PLAN, attempt=1, host=factories.HOST, at=AT
    )
    assert ("unsupported", "no eager here") == (made.outcome, message(made))
    assert made.result is None


def test_lost_engine_is_done_again() -> None:
    """Nobody knows how a job ended whose engine went away: it is measured again."""
    made = of(exit_code=None, lost="Docker Engine went away while the job ran")
    assert ("environment_error", "lost_engine") == (
        made.outcome,
        made.failure and made.failure.kind,
    )
    assert message(made) == "Docker Engine went away while the job ran"
    assert made.redoable


def test_failure_on_a_lost_engine_is_the_engines() -> None:
    """What the guest complains of while its GPU falls off the bus is no property of the cell."""
    failure = Failure(kind="exception", message="CUDA_ERROR_UNKNOWN")
    result = factories.result([], outcome="failed", failure=failure)
    made = of(result=said(result), lost="The GPU GPU-1 stopped answering while the job ran.")
    assert made.outcome == "environment_error"
    assert made.redoable


def test_whole_result_outlives_its_engine() -> None:
    """A job that had measured everything when the engine went away has measured it."""
    assert of(result=said(factories.result([0.1])), lost="gone").outcome == "ok"


def test_broken_environment_is_named() -> None:
    """Imports that fail are the environment's fault, and the message says what to delete."""
    failure = Failure(kind="import", message="No module named 'numpy'")
    result = factories.result([], outcome="environment_error", failure=failure)
    made = of(result=said(result), mend="Delete /cache/tf114: it is then made again.")
    assert message(made) == ("No module named 'numpy'\nDelete /cache/tf114: it is then made again.")
    other = factories.result([], outcome="failed", failure=failure)
    assert message(of(result=said(other), mend="Delete it.")) == "No module named 'numpy'"


def test_proof_of_a_cpu_case_is_left_alone() -> None:
    """Only what was to run on a GPU has to prove it."""
    result = factories.result([0.1], proof=Proof(device="cpu", how="no GPU"))
    assert ("ok", result) == (of(result=said(result)).outcome, of(result=said(result)).result)
