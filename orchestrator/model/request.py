"""Host to guest (`stackrace.request/1`). The guest repeats these names; it imports nothing here."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orchestrator.model.names import Api, Device, Input, Method, Mode

REQUEST_SCHEMA: Final = "stackrace.request/1"


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that must really be there; a guest that finds others reports `invalid`."""

    tensorflow: str = ""  # one of these three: what Keras computes with
    jax: str = ""
    torch: str = ""
    keras: str = ""


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed as the origin fixes them: numpy 1, random 2, TensorFlow 3."""

    numpy: int = 1
    python: int = 2
    tensorflow: int = 3


class SweepCell(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of a sweep: it runs for two iterations, or says why not."""

    model: str = "tiny"
    input: Input
    method: Method
    knobs: dict[str, str] = {}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker process is to do.

    `measure` times a cell. `probe` checks a new environment: imports, trains one step, saves and
    loads a model, and reports the versions found; it needs only `environment` and `expected`.
    `describe` reports what is in an environment that somebody else made: the versions of whatever
    framework is there, and in `metadata.apis` the version of each api's Keras; it needs only
    `environment`, and trains one step with each api that it found.
    `profile` runs a cell under a profiler instead of the clock: its times are never a measurement.
    `sweep` runs each of `cells` for two iterations in this one process, at the request's api and
    mode, and reports each one's outcome.
    """

    schema: Literal["stackrace.request/1"] = REQUEST_SCHEMA
    action: Literal["measure", "probe", "describe", "profile", "sweep"]
    environment: str
    expected: Expected = Expected()
    api: Api = "tf.keras"
    mode: Mode = "graph"
    model: str = "tiny"
    data: str = "tiny"
    batch_shape: tuple[int, ...] = (8, 20, 30)
    batches: int = 8
    input: Input = "numpy"
    method: Method = "train_on_batch"
    device: Device = "cpu"
    knobs: dict[str, str] = {}
    workload: str = ""  # path of the user's own file; empty: a model of the guest's
    cells: tuple[SweepCell, ...] = ()
    trace_folder: str = ""  # where a profile leaves the framework's own trace; empty: nowhere
    parameters: int | None = None
    iterations: int = 1
    minimum_iterations: int = 3
    warmup: int = 1
    budget_s: float = 60.0  # from the end of the first call; iterations are cut to fit
    seeds: Seeds = Seeds()
    phase_path: str  # the guest appends the name of each phase it enters, one a line
    parent_pid: int | None = None  # the guest dies with this process, when given
    host_on_stdin: bool = False  # the guest dies when its standard input ends
