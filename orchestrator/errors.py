"""What can go wrong for a user: one class and one exit code a kind.

A message has three parts: what happened, why it usually happens, what to do. Only the first is
required; the terminal shows the others below it. Nothing here is ever shown as a traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


# A longer list of valid names is noise; the message then names the command that shows them.
MOST_NAMES = 12
NEAR = 0.5  # of all letters stand in both names, in the same order


class StackraceError(Exception):
    """Base of everything that ends a command with a message instead of a traceback."""

    exit_code = 5

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix


class UsageError(StackraceError):
    """Bad options, configuration or names: exit code 2."""

    exit_code = 2


class InputError(StackraceError):
    """A file that cannot be read for what it should be: exit code 2."""

    exit_code = 2


class EnvironmentFailedError(StackraceError):
    """An environment, lock, interpreter or engine is not to be had: exit code 5."""

    exit_code = 5


class StorageError(StackraceError):
    """The disk is full, or a folder cannot be written: exit code 5."""

    exit_code = 5


class PlatformError(StackraceError):
    """This is not a machine that old TensorFlow wheels run on: exit code 5."""

    exit_code = 5


class InterruptedRunError(StackraceError):
    """Ctrl-C (130) or a termination signal (143); what was measured is kept."""

    exit_code = 130

    def __init__(self, what: str, *, why: str = "", fix: str = "", exit_code: int = 130) -> None:
        super().__init__(what, why=why, fix=fix)
        self.exit_code = exit_code


def worst_exit_code(codes: Iterable[int]) -> int:
    """The code that wins when several hold: 130/143, then 2, 5, 3, 4, 1, 0."""
    order = [130, 143, 2, 5, 3, 4, 1, 0]
    return min(codes, key=order.index, default=0)


def nearest(name: str, valid: Iterable[str]) -> str:
    """`Did you mean tf114?`, or the valid names when none is near and they are few."""
    from difflib import SequenceMatcher  # noqa: PLC0415  `list` and `--help` do without

    names = sorted(valid)
    # Of names that are equally near the one of the same letters: `tf02` was to be tf20, not tf29.
    close = [
        (ratio, sorted(one) == sorted(name), one)
        for one in names
        if (ratio := SequenceMatcher(None, one, name).ratio()) >= NEAR
    ]
    if close:
        return f"Did you mean {max(close)[-1]}?"
    return f"Valid: {', '.join(names)}." if 0 < len(names) <= MOST_NAMES else ""
