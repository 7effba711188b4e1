"""Ctrl-C and termination: the first signal ends the command in order, more change nothing."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

# A launcher that leaves its children alone when it is terminated (nox) names itself here.
PARENT_VARIABLE = "STACKRACE_PARENT"
_PR_SET_PDEATHSIG = 1


# No error, and no `except Exception` may stop it.
class Stopped(KeyboardInterrupt):
    """A signal asked this command to stop; `exit_code` is 128 + its number."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise Stopped in the main thread at the first SIGINT, SIGTERM or SIGHUP."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        # From here on the command is ending already. Not SIG_IGN: a signal that has arrived, but
        # whose turn has not come, would then be an error of Python's.
        for other in handled:
            signal.signal(other, _pass)
        raise Stopped(number)

    before = {}
    for number in handled:
        before[number] = signal.getsignal(number)
        # What the caller ignores stays ignored: `nohup` means it.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """Take a signal, and do nothing."""


def follow_parent(variables: Mapping[str, str] = os.environ) -> None:
    """End with the launcher, when it says who it is; raise Stopped when it is gone already."""
    parent = variables.get(PARENT_VARIABLE, "")
    if not (parent.isascii() and parent.isdigit()):
        return
    import ctypes  # noqa: PLC0415  it takes 3 ms, and most commands have no launcher

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if os.getppid() != int(parent):
        raise Stopped(signal.SIGTERM)
