"""What running one worker process showed, before anybody decides what it means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.names import Backend
    from orchestrator.model.plan import Limits
    from orchestrator.model.record import Instant
    from orchestrator.model.request import Request


Beat = Callable[[float], None]


def silent(_: float) -> None:
    """A beat that nobody hears."""


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
    lost: str | None = None  # its engine went away while it ran: nobody knows how it ended
    gpu_bytes: int | None = None  # most GPU memory that its processes held, where that was seen
    gpus: tuple[dict[str, Any], ...] = ()  # each GPU's state before and after, and its throttling
    mend: str = ""  # what to do when its environment turns out to be broken


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

    @property
    def backend(self) -> Backend:
        """How it is isolated."""

    @property
    def image_digest(self) -> str | None:
        """The image that it runs in, when it is a container."""

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """Run one worker process in the empty folder `work`, its output in `log`.

        `beat` is told, now and then, how many seconds the first call has lasted so far.
        Raises EnvironmentFailedError when the environment itself is no longer there.
        """
