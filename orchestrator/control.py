"""Whether the machine changed speed: a fixed piece of work on the host, between the jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from orchestrator.model.record import Control
from orchestrator.process import Companion

if TYPE_CHECKING:
    from typing import Self

# 20 ms of integers in an interpreter that does nothing else. The fastest of its pieces counts: what
# only interrupts it passes by, what slows the processor down slows every piece.
WORK: Final = """
import sys
from time import perf_counter

def piece():
    start = perf_counter()
    total = 0
    for number in range(20000):
        total = (total * 31 + number) & 0xFFFFFF
    return perf_counter() - start

for _ in iter(sys.stdin.readline, ""):
    print(repr(min(piece() for _ in range(10))), flush=True)
"""
PATIENCE_S: Final = 10.0


class Clock:
    """Times the work whenever it is asked to; in between its process sleeps.

    Its only process lives as long as the run, so that it is the same one for every job.
    """

    def __init__(self, work: str = WORK) -> None:
        self._work = work
        self._companion: Companion | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):  # a run is not given up for want of a control
            self._companion = Companion(self._work)
        return self

    def __exit__(self, *_: object) -> None:
        if self._companion is not None:
            self._companion.close()

    def seconds(self) -> float | None:
        """Seconds that the work takes now; None when there is nobody to do it."""
        if self._companion is None:
            return None
        answer = self._companion.ask(b"", timeout_s=PATIENCE_S)
        return None if answer is None else float(answer)


def around(before_s: float | None, after_s: float | None) -> Control | None:
    """The readings just before and just after a job, as its record keeps them."""
    if before_s is None or after_s is None:
        return None
    return Control(before_s=before_s, after_s=after_s)
