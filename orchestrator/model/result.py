"""Guest to host (`stackrace.result/1`): raw values only, statistics are computed on reading."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from orchestrator.model.names import Outcome

RESULT_SCHEMA: Final = "stackrace.result/1"
LONGEST_S: Final = 1e11  # some thousand years


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no number. `kind` is a short stable word, `message` is for people."""

    kind: str
    message: str
    traceback: str | None = None


class Phases(msgspec.Struct, frozen=True, kw_only=True, rename={"import_": "import"}):
    """Seconds spent before the first iteration; null = not reached."""

    import_: float | None = None
    data: float | None = None
    build: float | None = None
    first_call: float | None = None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How `values_s` was taken.

    `source`: `call` = one value a call; `whole` = one call over `batch` steps, divided by them;
    `batch` = calls so short that the clock would matter: a value is `batch` calls, divided by them.
    `overhead_s`: measured cost of reading the clock and storing one value.
    """

    source: Literal["call", "whole", "batch"]
    clock: str
    clock_resolution_s: float
    overhead_s: float
    batch: int


class Iterations(msgspec.Struct, frozen=True, kw_only=True):
    """Asked for, and done before the time limit; fewer than 10 done = indicative."""

    asked: int
    done: int


class Outputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a model computes on the first batch, dropout off.

    `digest`: of the float32 bytes. `values`: the first 64 of them, flattened; `half`: it computed
    in half precision.
    """

    digest: str | None = None
    summary: dict[str, float | None] = {}
    values: tuple[float | None, ...] = ()
    half: bool = False


class ProfiledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One function of a profile. Seconds in itself, and with everything that it called."""

    name: str  # training_arrays.py:fit_loop
    calls: int
    own_s: float
    total_s: float
    root: Literal["build", "data", "training", "other"]  # whose share it counts to


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a run goes, in % of the run without build, as the origin has it.

    `data + training + other + unattributed` = 100 +- 1. Build is what happens before the steady
    state, in % of the same whole, so it may exceed 100. Afterwards time counts exclusively to the
    root that it was called from; unattributed is what no Python function accounts for: threads of
    C++, kernels.
    """

    run_s: float  # the whole without build
    iterations: int
    build: float
    data: float
    training: float
    other: float
    unattributed: float
    functions: tuple[ProfiledFunction, ...] = ()  # the top ones, by own_s
    trace: str | None = None  # the framework's own, below profiles/<key>.<attempt>/
    notes: tuple[str, ...] = ()


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one combination of a sweep, in the order of the request's `cells`."""

    model: str
    input: str
    method: str
    knobs: dict[str, str] = {}
    outcome: Outcome
    failure: Failure | None = None
    executed_as: str | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Where the model really ran, and how that is known.

    `unknown` is an answer: nothing showed that it ran there, and nothing that it did not.
    """

    device: Literal["cpu", "gpu", "unknown"]
    how: str
    facts: dict[str, Any] = {}  # kernels: seen in one step; outputs: devices; gpu_bytes: in use


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker process left behind."""

    schema: Literal["stackrace.result/1"]
    outcome: Outcome
    failure: Failure | None = None
    phases_s: Phases = Phases()
    warmup_s: tuple[float, ...] = ()
    values_s: tuple[float, ...] = ()
    timing: Timing | None = None
    iterations: Iterations | None = None
    rss_bytes: tuple[int, ...] = ()  # before, every tenth iteration, after
    losses: tuple[float | None, ...] = ()
    outputs_before: Outputs | None = None  # untrained; with the knob weights=same
    outputs: Outputs | None = None  # trained
    parameters: int | None = None
    dtype: str | None = None
    traces: int | None = None  # how often a step was made into a graph, in the whole process
    retraces: int | None = None  # how often of these in the timed iterations
    kernel: str | None = None  # of a recurrent layer: which implementation ran
    executed_as: Literal["session", "function", "op by op"] | None = None
    training_loop: str | None = None
    data_adapter: str | None = None
    proof: Proof | None = None
    profile: Profile | None = None
    sweep: tuple[Swept, ...] = ()
    diagnostics: dict[str, Any] = {}  # step_s: per-step callback times; calls: what was observed
    nulls: dict[str, str] = {}  # field -> why a number in it is null
    metadata: dict[str, Any] = {}

    def usable(self, *, profiled: bool) -> bool:
        """Whether it holds what a success has: times that work can take, or a profile.

        A profile is no measurement: it has no times, and a timed job has nothing else.
        """
        if profiled:
            return self.profile is not None
        return min(self.values_s, default=0.0) > 0 and max(self.values_s) < LONGEST_S
