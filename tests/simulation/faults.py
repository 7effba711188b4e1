"""What goes wrong in a run, as the engine sees it: each makes one arm look twice as slow."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from orchestrator.model import codec
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.model.record import Instant
from orchestrator.model.result import Failure, Outputs, Proof, Result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.model.names import Backend, Outcome
    from orchestrator.model.plan import Limits
    from orchestrator.model.request import Request

    Fault = Callable[[Result, int], dict[str, Any]]

TWICE: Final = 2.0
HOT: Final = {
    "uuid": "GPU-1",
    "before": {"throttle": []},
    "after": {"throttle": []},
    "throttle": ["hardware thermal slowdown"],
}


def slowed(result: Result, by: float = TWICE) -> Result:
    """The same with every iteration so much longer."""
    return msgspec.structs.replace(result, values_s=tuple(by * value for value in result.values_s))


def _says(result: Result) -> dict[str, Any]:
    return {"result": codec.encode(result), "exit_code": 0}


def _times(values: str) -> Fault:
    """A success with these instead of its times."""

    def fault(result: Result, _: int) -> dict[str, Any]:
        raw = codec.encode(msgspec.structs.replace(result, values_s=(0.125,)))
        assert raw.count(b"0.125") == 1
        return {"result": raw.replace(b"0.125", values.encode()), "exit_code": 0}

    return fault


def _ended(**how: Any) -> Fault:  # noqa: ANN401
    """No result, and this end."""
    return lambda _, __: how


def _told(outcome: Outcome, kind: str) -> Fault:
    """Times that are twice as long, and the guest itself says that they do not count."""

    def fault(result: Result, _: int) -> dict[str, Any]:
        failure = Failure(kind=kind, message="not what was asked for")
        return _says(msgspec.structs.replace(slowed(result), outcome=outcome, failure=failure))

    return fault


def _but(**facts: Any) -> Fault:  # noqa: ANN401
    """Times that are twice as long, and these facts beside them."""
    return lambda result, _: _says(msgspec.structs.replace(slowed(result), **facts))


def _stalled(result: Result, _: int) -> dict[str, Any]:
    """Every fifth iteration waits ten times as long for something else: the mean doubles."""
    values = [
        10 * value if place % 5 == 0 else value for place, value in enumerate(result.values_s)
    ]
    return _says(msgspec.structs.replace(result, values_s=tuple(values)))


def _suspended(result: Result, _: int) -> dict[str, Any]:
    """The machine slept for an hour in the middle of one iteration."""
    values = (*result.values_s[:-1], 3600.0)
    return _says(msgspec.structs.replace(result, values_s=values))


def _warmed_up(result: Result, _: int) -> dict[str, Any]:
    """The first third takes five times as long."""
    third = len(result.values_s) // 3
    values = [5 * value for value in result.values_s[:third]] + list(result.values_s[third:])
    return _says(msgspec.structs.replace(result, values_s=tuple(values)))


def _once(result: Result, call: int) -> dict[str, Any]:
    """One process of all is ten times as slow: somebody else was on the machine."""
    return _says(slowed(result, 10.0) if call == 0 else result)


def _truncated(result: Result, _: int) -> dict[str, Any]:
    raw = codec.encode(slowed(result))
    return {"result": raw[: len(raw) // 2], "exit_code": 0}


def _throttled_once(result: Result, call: int) -> dict[str, Any]:
    """Hot in the first attempt, and not in the next: the first is superseded."""
    hot = call == 0
    return {**_says(slowed(result) if hot else result), "gpus": (HOT,) if hot else ()}


def _throttled(result: Result, _: int) -> dict[str, Any]:
    return {**_says(slowed(result)), "gpus": (HOT,)}


def _lost(result: Result, _: int) -> dict[str, Any]:
    half = msgspec.structs.replace(slowed(result), outcome="failed")
    return {"result": codec.encode(half), "lost": "The node is gone."}


def _mostly(fault: Fault) -> Fault:
    """Four calls of five are hit, so that too few pairs are left."""
    return lambda result, call: fault(result, call) if call % 5 else _says(slowed(result))


_CRASH = _ended(signal=int(signal.SIGSEGV), last_phase="steady")

# Of one arm's processes: what the engine gets instead of an honest result.
OF_PROCESSES: Final[dict[str, Fault]] = {
    "crash by a signal": _CRASH,
    "crash with an exit code": _ended(exit_code=3),
    "hang in the first call": _ended(exceeded="first_call"),
    "hang afterwards": _ended(exceeded="job"),
    "killed for want of memory": _ended(signal=int(signal.SIGKILL), oom_kills=1),
    "memory that cannot be had": _ended(signal=int(signal.SIGABRT), log_tail="std::bad_alloc"),
    "killed from outside": _ended(signal=int(signal.SIGKILL)),
    "not started at all": _ended(start_error="Exec format error"),
    "node lost": _lost,
    "truncated result": _truncated,
    "result of another format": _ended(result=b'{"schema": "stackrace.result/9"}', exit_code=0),
    "times that are NaN": _times("NaN, NaN"),
    "times that are null": _times("null, null"),
    "times that are zero": _times("0.0, 0.0, 0.02, 0.02"),
    "times that are negative": _times("-0.01, 0.02, 0.02"),
    "times beyond all numbers": _times("1e999, 1e999"),
    "no times": _times(""),
    "wrong Keras": _told("invalid", "keras"),
    "wrong result of the model": _told("invalid", "outputs"),
    "failed with times": _told("failed", "exception"),
    "unsupported with times": _told("unsupported", "refused"),
    "broken environment": _told("environment_error", "import"),
    "GPU case that ran on the CPU": _but(proof=Proof(device="cpu", how="no kernel ran on it")),
    "throttled GPU": _throttled,
    "throttled GPU, measured again": _throttled_once,
    "other outputs": lambda result, _: _says(
        msgspec.structs.replace(
            slowed(result),
            outputs_before=Outputs(digest="other", values=(0.9, 0.8)),
        )
    ),
    "stalls in every fifth iteration": _stalled,
    "clock that jumps by an hour": _suspended,
    "long warm-up": _warmed_up,
    "one slow process": _once,
    "partial blocks": _mostly(_CRASH),
}


@dataclass
class Environment:
    """Leaves an honest result, or what a fault makes of it."""

    identifier: str
    honest: Callable[[], Result]
    fault: Fault = lambda result, _: _says(result)
    calls: int = 0
    clock: list[float] = field(default_factory=lambda: [0.0])  # shared by all of a run
    lock_digest: str = "lock"
    python: str = "3.7.16"
    backend: Backend = "venv"
    image_digest: str | None = None

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """One process that takes three seconds of a clock that nobody waits for."""
        assert (request.environment, True) == (self.identifier, work.is_dir())
        beat(limits.first_call_s / 2)
        log.write_text("what it says", encoding="utf-8")
        found = {"result": None, **self.fault(self.honest(), self.calls)}
        self.calls += 1
        start, self.clock[0] = self.clock[0], self.clock[0] + 3.0
        return Execution(start=at(start), end=at(self.clock[0]), **found)


def at(seconds: float) -> Instant:
    """A moment of that clock."""
    return Instant(wall=1.7e9 + seconds, monotonic=seconds)
