"""The record (`stackrace.record/1`): what one process did, and what that means."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from orchestrator.model.cell import Arm, Case
from orchestrator.model.names import REDONE_FAILURES, REDONE_OUTCOMES, Outcome
from orchestrator.model.result import Failure, Result

RECORD_SCHEMA: Final = "stackrace.record/1"


class Instant(msgspec.Struct, frozen=True, kw_only=True):
    """One moment on both clocks, in seconds: since 1970, and since the machine started."""

    wall: float
    monotonic: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine was doing around one process."""

    load_1m: float
    available_bytes: int
    cpu_mhz: float | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that a fixed piece of work took on the host, just before and just after the job.

    It is the same work on the same interpreter for every job: when it changes, so did the machine.
    """

    before_s: float
    after_s: float


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """The machine. Facts without a fixed place stand in `facts`."""

    machine: str  # a digest of what makes results comparable: CPU, cores, memory, GPUs of the run
    node: str  # a digest of its name: tells twins apart, and names nobody
    cpu: str
    cores: int
    memory_bytes: int
    kernel: str
    governor: str | None = None
    turbo: str | None = None
    gpus: tuple[dict[str, Any], ...] = ()
    facts: dict[str, Any] = {}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Every planned job ends with one counting record; it is never rewritten."""

    schema: Literal["stackrace.record/1"]
    run_id: str
    key: str
    attempt: int
    arm: Arm
    case: Case
    round: int
    slot: int
    outcome: Outcome
    failure: Failure | None = None
    start: Instant
    end: Instant
    result: Result | None = None
    exit_code: int | None = None
    signal: str | None = None
    last_phase: str | None = None
    host: Host
    before: Load | None = None
    after: Load | None = None
    control: Control | None = None
    guest_digest: str
    lock_digest: str
    image_digest: str | None = None
    engine: dict[str, Any] = {}

    @property
    def redoable(self) -> bool:
        """Whether the cause lay outside the cell, so that the block may be done again."""
        kind = self.failure.kind if self.failure else None
        return self.outcome in REDONE_OUTCOMES or kind in REDONE_FAILURES
