"""What running one worker process showed, before anybody decides what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.plan import Limits
    from orchestrator.model.record import Instant
    from orchestrator.model.request import Request


@dataclass(frozen=True, kw_only=True)
class Execution:
    """One finished process, however it finished."""

    start: Instant
    end: Instant
    result: bytes | None  # what it left in its result file
    exit_code: int | None = None
    signal: int | None = None  # the number of the signal that ended it
    exceeded: Literal["first_call", "job"] | None = None  # the limit it was stopped for
    last_phase: str | None = None
    log_tail: str = ""
    start_error: str | None = None  # it could not be started at all
    oom_kills: int = 0  # processes that the kernel killed for memory meanwhile


class Environment(Protocol):
    """A prepared environment, whatever isolates it."""

    @property
    def identifier(self) -> str:
        """The row's identifier."""

    @property
    def lock_digest(self) -> str:
        """Digest of the lock that it was made from."""

    @property
    def python(self) -> str:
        """Full version of its interpreter: `3.7.16`."""

    def run(self, request: Request, *, work: Path, log: Path, limits: Limits) -> Execution:
        """Run one worker process in the empty folder `work`, its output in `log`."""
