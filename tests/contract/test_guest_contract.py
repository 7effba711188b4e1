"""Where host and guest meet: every outcome, under every Python that the guest promises."""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING

import pytest

from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected
from orchestrator.model.result import Failure, Iterations, Proof

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.conftest import Ended, RunGuest

PHASES = ["import", "data", "build", "first_call", "warmup", "timed", "outputs"]


TWO_FRAMEWORKS = b"""{
  "schema": "stackrace.request/1", "action": "probe", "environment": "x", "phase_path": "p",
  "expected": {"tensorflow": "2.0.0", "jax": "0.4"}
}"""


def failure_of(ended: Ended) -> Failure:
    """The failure in a result that has to be there."""
    assert ended.exit_code == 0, ended.log
    assert ended.result is not None
    assert ended.result.failure is not None
    return ended.result.failure


def test_measures(python: Path, run_guest: RunGuest) -> None:
    """A measurement leaves every value it was asked for and what is needed to trust them."""
    ended = run_guest(python)
    result = ended.result
    assert result is not None, ended.log
    assert result.outcome == "ok", result.failure
    assert ended.exit_code == 0
    assert ended.phases == PHASES
    assert len(result.values_s) == 25
    assert len(result.losses) == 25
    assert len(result.warmup_s) == 4
    assert len(result.rss_bytes) == 4  # before, after 10 and 20, after all
    assert result.iterations == Iterations(asked=25, done=25)
    assert result.timing is not None
    assert (result.timing.source, result.timing.batch) == ("call", 1)
    assert result.timing.overhead_s > 0
    assert result.phases_s.first_call is not None
    assert (result.parameters, result.dtype) == (609, "float32")
    assert result.executed_as == "op by op"
    assert (result.traces, result.retraces) == (None, None)
    assert result.outputs is not None
    assert result.outputs.summary == {"mean": 0.25, "std": 0.0, "min": 0.25, "max": 0.25}
    assert result.diagnostics["peak_rss_bytes"] >= max(result.rss_bytes)
    assert result.nulls == {}
    assert result.metadata["tensorflow"]["version"] == "2.0.0"
    expected = "tensorflow.python.keras.optimizer_v2.adam.Adam"
    assert result.metadata["keras"]["optimizer"] == expected


def test_settings_are_told_and_the_user_is_not(
    python: Path, run_guest: RunGuest, variables: dict[str, str]
) -> None:
    """A result has the settings that matter, and of this machine's paths and names none."""
    variables.update(HOME="/home/somebody", KERAS_HOME="/home/somebody/.keras", TF_NUM_X="2")
    variables.update(TF_VAR_region="moon", LD_LIBRARY_PATH="/home/somebody/lib")
    result = run_guest(python, {"api": "keras"}).result
    assert result is not None
    assert result.metadata["flags"] == {"CUDA_VISIBLE_DEVICES": "-1", "TF_NUM_X": "2"}
    assert set(variables) - set(result.metadata["variables"]) == set()
    assert "STACKRACE_JOB" not in result.metadata["variables"]  # although the host sets it
    assert result.metadata["keras"]["file"] == "keras.py"
    assert str(python.parent) not in str(result.metadata)


def test_peak_memory_is_the_guests_own(python: Path, run_guest: RunGuest) -> None:
    """What the host holds is not taken for the guest's."""
    held = bytearray(128 * 2**20)
    held[:: 2**12] = b"x" * len(held[:: 2**12])
    result = run_guest(python).result
    assert result is not None
    assert result.diagnostics["peak_rss_bytes"] < len(held)


@pytest.mark.parametrize(
    ("api", "source", "method"),
    list(itertools.product(("keras", "tf.keras"), ("numpy", "dataset"), ("train_on_batch", "fit"))),
)
def test_every_way_to_train(
    python: Path, run_guest: RunGuest, api: str, source: str, method: str
) -> None:
    """Each api trains with each method on each input, and says how its values were taken."""
    ended = run_guest(python, {"api": api, "input": source, "method": method})
    result = ended.result
    assert result is not None, ended.log
    assert result.outcome == "ok", result.failure
    assert result.timing is not None
    whole = (source, method) == ("dataset", "fit")
    assert (result.timing.source, result.timing.batch) == (("whole", 25) if whole else ("call", 1))
    assert len(result.values_s) == (1 if whole else 25)
    assert result.iterations == Iterations(asked=25, done=25)
    assert len(result.diagnostics.get("step_s", ())) == (10 if whole else 0)


def test_iterations_are_cut_to_the_budget(python: Path, run_guest: RunGuest) -> None:
    """When the time is over at once, the least number of iterations is done, and both are told."""
    result = run_guest(python, {"budget_s": 1e-9, "minimum_iterations": 3}).result
    assert result is not None
    assert result.iterations == Iterations(asked=25, done=3)
    assert len(result.values_s) == 3
    assert len(result.warmup_s) == 1


def test_steps_are_cut_to_the_budget(python: Path, run_guest: RunGuest) -> None:
    """A whole fit over a dataset is cut in the same way."""
    result = run_guest(python, {"budget_s": 1e-9, "input": "dataset", "method": "fit"}).result
    assert result is not None
    assert result.iterations == Iterations(asked=25, done=3)
    assert result.timing is not None
    assert result.timing.batch == 3
    assert result.diagnostics["step_s"] == []


@pytest.mark.parametrize(
    ("source", "method", "calls"), [("numpy", "train_on_batch", 4), ("dataset", "fit", 5)]
)
def test_calls_too_slow_for_the_budget(
    python: Path, run_guest: RunGuest, source: str, method: str, calls: int
) -> None:
    """When the least number of calls cannot fit, one call decides it, and tells what would do."""
    fields = {"input": source, "method": method, "budget_s": 2.5}
    ended = run_guest(python, fields, stub={"seconds": "1"})
    failure = failure_of(ended)
    result = ended.result
    assert result is not None
    assert (result.outcome, failure.kind) == ("timed_out", "too_slow")
    assert ended.phases == PHASES[:5]
    assert (len(result.warmup_s), result.values_s) == (1, ())
    enough_s = math.ceil(calls * result.warmup_s[0] / 0.8)
    assert f"One call takes {result.warmup_s[0]:.1f} s." in failure.message
    assert f"--max-job-seconds {enough_s}," in failure.message


def test_slow_calls_that_fit_are_measured(python: Path, run_guest: RunGuest) -> None:
    """A slow call alone is no reason to stop."""
    result = run_guest(python, {"iterations": 1, "warmup": 1}, stub={"seconds": "1"}).result
    assert result is not None
    assert result.outcome == "ok", result.failure


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("outputs", "ValueError: no outputs"),
        ("steps", "ValueError: no callbacks"),
        ("fingerprint", "TypeError: "),
    ],
)
def test_what_fails_after_the_values_is_a_note(
    python: Path, run_guest: RunGuest, broken: str, says: str
) -> None:
    """Measured values stay a measurement, whatever goes wrong with what is told besides."""
    fields = {"input": "dataset", "method": "fit"}
    result = run_guest(python, fields, stub={"broken": broken}).result
    assert result is not None
    assert result.outcome == "ok", result.failure
    assert len(result.values_s) == 1
    assert result.diagnostics[f"{broken}_error"].startswith(says)
    assert result.metadata["tensorflow"]["version"] == "2.0.0"


def test_a_process_that_ends_after_the_values_has_left_them(
    python: Path, run_guest: RunGuest
) -> None:
    """Whatever ends it while it tells what it computed, the measurement is there."""
    ended = run_guest(python, stub={"broken": "end"})
    assert ended.exit_code == 1
    assert ended.phases[-1] == "outputs"
    assert ended.result is not None
    assert ended.result.outcome == "ok"
    assert ended.result.iterations is not None
    assert len(ended.result.values_s) == ended.result.iterations.done
    assert ended.result.outputs is None
    assert ended.result.metadata["python"]["version"]


def test_probe(python: Path, run_guest: RunGuest) -> None:
    """A probe needs no more than an environment and versions, and passes on a working pair."""
    ended = run_guest(python, {"action": "probe"})
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    assert ended.result.metadata["keras"]["version"] == "2.3.1"


@pytest.mark.parametrize("action", ["measure", "probe"])
def test_other_versions_are_invalid(python: Path, run_guest: RunGuest, action: str) -> None:
    """Another TensorFlow than the expected one gives no number, and both versions are named."""
    ended = run_guest(python, {"action": action}, stub={"tensorflow": "2.1.0"})
    failure = failure_of(ended)
    assert ended.result is not None
    assert ended.result.outcome == "invalid"
    assert failure.message == "TensorFlow 2.1.0 is installed where 2.0.0 is expected."


def test_another_keras_is_invalid(python: Path, run_guest: RunGuest) -> None:
    """The private Keras inside TensorFlow is not taken for tf.keras."""
    ended = run_guest(python, stub={"optimizers": "tensorflow.python.keras.optimizers"})
    assert failure_of(ended).kind == "wrong_keras"
    assert ended.result is not None
    assert ended.result.outcome == "invalid"
    assert ended.result.values_s == ()


def test_other_parameters_are_invalid(python: Path, run_guest: RunGuest) -> None:
    """A model of another size than asked for gives no number."""
    ended = run_guest(python, {"parameters": 610})
    assert failure_of(ended).kind == "parameters"
    assert ended.result is not None
    assert (ended.result.outcome, ended.result.parameters) == ("invalid", 609)


@pytest.mark.parametrize(("asked", "listed"), [("gpu", "CPU"), ("cpu", "GPU")])
def test_another_device_is_invalid(
    python: Path, run_guest: RunGuest, asked: str, listed: str
) -> None:
    """A case for one device that would run on the other gives no number."""
    ended = run_guest(python, {"device": asked}, stub={"device": listed})
    assert failure_of(ended).kind == "device"
    assert ended.result is not None
    assert ended.result.outcome == "invalid"
    assert ended.result.proof is None or isinstance(ended.result.proof, Proof)


def test_refusals_are_unsupported(python: Path, run_guest: RunGuest) -> None:
    """What TensorFlow refuses to do in a mode is knowledge, with TensorFlow's own reason."""
    ended = run_guest(python, stub={"behaviour": "refuse"})
    expected = "RuntimeError: tf.placeholder() is not compatible with eager execution."
    assert failure_of(ended).message == expected
    assert ended.result is not None
    assert ended.result.outcome == "unsupported"


def test_exceptions_are_failed_with_a_traceback(python: Path, run_guest: RunGuest) -> None:
    """An exception becomes data: its kind, its message, where it came from."""
    ended = run_guest(python, stub={"behaviour": "raise"})
    failure = failure_of(ended)
    assert ended.result is not None
    assert ended.result.outcome == "failed"
    assert (failure.kind, failure.message) == ("ValueError", "broken on purpose")
    assert failure.traceback is not None
    assert "stub_keras.py" in failure.traceback
    assert ended.phases == PHASES[:4]
    assert ended.result.phases_s.build is not None
    assert ended.result.phases_s.first_call is None


def test_a_library_that_exits_has_failed(python: Path, run_guest: RunGuest) -> None:
    """SystemExit from inside a library still leaves a result."""
    ended = run_guest(python, stub={"behaviour": "leave"})
    assert failure_of(ended).kind == "SystemExit"


def test_out_of_memory(python: Path, run_guest: RunGuest) -> None:
    """A MemoryError is an outcome of its own."""
    ended = run_guest(python, stub={"behaviour": "no_memory"})
    assert failure_of(ended).kind == "MemoryError"
    assert ended.result is not None
    assert ended.result.outcome == "out_of_memory"


def test_losses_that_are_no_numbers(python: Path, run_guest: RunGuest) -> None:
    """A number that JSON cannot hold is null, with the reason beside it."""
    result = run_guest(python, stub={"behaviour": "nan"}).result
    assert result is not None
    assert result.outcome == "ok"
    assert result.losses == (None,) * 25
    assert result.nulls == {"losses": f"{math.nan} is not a finite number"}


def test_broken_installation(python: Path, run_guest: RunGuest, variables: dict[str, str]) -> None:
    """An environment in which nothing can be imported still leaves a result."""
    del variables["PYTHONPATH"]
    ended = run_guest(python)
    failure = failure_of(ended)
    assert failure.kind == "import"
    # Some interpreters have a numpy of their own.
    missing = (
        r"(numpy|tensorflow) could not be imported\. ModuleNotFoundError: No module named '\1'"
    )
    assert re.match(missing, failure.message)
    assert ended.result is not None
    assert ended.result.outcome == "environment_error"
    assert ended.phases == PHASES[:1]


@pytest.mark.parametrize(
    ("stub", "outcome", "kind"),
    [
        ("ImportError", "environment_error", "import"),
        ("OSError", "environment_error", "import"),
        ("PermissionError", "environment_error", "import"),
        ("TypeError", "failed", "TypeError"),
        ("MemoryError", "out_of_memory", "MemoryError"),
    ],
)
def test_errors_while_importing(
    python: Path, run_guest: RunGuest, stub: str, outcome: str, kind: str
) -> None:
    """What cannot be loaded is the environment's fault; what goes wrong in it is a failure."""
    ended = run_guest(python, stub={"import": stub})
    assert failure_of(ended).kind == kind
    assert ended.result is not None
    assert ended.result.outcome == outcome


def test_a_gpu_that_vanishes(python: Path, run_guest: RunGuest) -> None:
    """A GPU that goes away is no failure of what was measured on it."""
    ended = run_guest(python, stub={"behaviour": "gpu_lost"})
    failure = failure_of(ended)
    assert failure.kind == "gpu_lost"
    assert failure.message.endswith("InternalError: CUDA_ERROR_NO_DEVICE: none is detected")
    assert ended.result is not None
    assert ended.result.outcome == "environment_error"


def test_memory_of_a_gpu(python: Path, run_guest: RunGuest) -> None:
    """A GPU whose memory is used up did not go away."""
    ended = run_guest(python, stub={"behaviour": "gpu_full"})
    assert ended.result is not None
    assert ended.result.outcome == "out_of_memory"


def test_describe(python: Path, run_guest: RunGuest) -> None:
    """An unknown environment tells its framework, and the Keras of each api that it has."""
    ended = run_guest(python, {"action": "describe", "expected": Expected()})
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    assert ended.result.metadata["framework"] == {"name": "tensorflow", "version": "2.0.0"}
    assert ended.result.metadata["apis"] == {"tf.keras": "2.2.4-tf", "keras": "2.3.1"}


def test_describe_leaves_out_what_does_not_work(python: Path, run_guest: RunGuest) -> None:
    """A Keras that cannot be imported costs its api, and is noted."""
    ended = run_guest(python, {"action": "describe"}, stub={"keras": "ImportError"})
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    assert ended.result.metadata["apis"] == {"tf.keras": "2.2.4-tf"}
    expected = "ImportError: broken on purpose"
    assert expected == ended.result.diagnostics["keras_error"]


def test_describe_nothing(python: Path, run_guest: RunGuest) -> None:
    """When no Keras trains a step, there is nothing to describe."""
    ended = run_guest(python, {"action": "describe"}, stub={"behaviour": "raise"})
    failure = failure_of(ended)
    assert ended.result is not None
    assert (ended.result.outcome, failure.kind) == ("environment_error", "training")
    assert "ValueError: broken on purpose" in failure.message


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\xff\x00 garbage", "not readable JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"schema": "stackrace.request/2"}', "its schema is 'stackrace.request/2'"),
        (b'{"schema": "stackrace.request/1", "action": "measure"}', "missing or unknown"),
        (b'{"schema": "stackrace.request/1", "action": "dance"}', "measure, probe"),
        (b'{"schema": "stackrace.request/1", "turbo": true}', "unknown field 'turbo'"),
        (TWO_FRAMEWORKS, "tensorflow and jax, and not one"),
    ],
)
def test_garbage_requests(python: Path, run_guest: RunGuest, raw: bytes, says: str) -> None:
    """What is not a request is refused with a reason, before anything is imported."""
    ended = run_guest(python, raw=raw)
    failure = failure_of(ended)
    assert failure.kind == "request"
    assert says in failure.message
    assert ended.phases == []


@pytest.mark.parametrize(
    "fields",
    [
        {"api": "torch"},
        {"mode": "lazy"},
        {"model": "huge"},
        {"input": "telepathy"},
        {"method": "guess"},
        {"device": "tpu"},
        {"knobs": {"jit": "on"}},
        {"batch_shape": (2,)},
        {"iterations": 0},
        {"expected": {}},
        {"host_on_stdin": 1},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_unknown_wishes(python: Path, run_guest: RunGuest, fields: dict[str, object]) -> None:
    """A request for something that the guest does not know is refused, never half fulfilled."""
    ended = run_guest(python, fields)
    assert failure_of(ended).kind == "request"
    assert ended.phases == []


def test_crash_leaves_no_result(python: Path, run_guest: RunGuest) -> None:
    """A process that dies leaves no result, not half of one, and its phases tell how far it was."""
    ended = run_guest(python, stub={"behaviour": "exit"})
    assert ended.result is None
    assert ended.exit_code == 3
    assert ended.phases == PHASES[:4]


def test_hang_is_ended_by_the_host(python: Path, run_guest: RunGuest) -> None:
    """A first call that never ends is interrupted, and an interrupted guest leaves no result."""
    limits = Limits(first_call_s=2.0, job_s=300.0)
    ended = run_guest(python, stub={"behaviour": "hang"}, limits=limits)
    assert ended.exceeded == "first_call"
    assert ended.result is None
    assert ended.exit_code != 0
