"""The only place that prints: data to stdout, talk to stderr, progress where somebody looks."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from orchestrator.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.errors import StackraceError

# Without a terminal, a line of progress at most this often.
QUIET_S = 15.0


class Progress(Protocol):
    """Something that counts finished work."""

    def start(self, text: str) -> None:
        """`text` says what begins now, and may take a while."""

    def advance(self, text: str) -> None:
        """One more is done; `text` says how it ended."""


class Growing(Progress, Protocol):
    """Work that may become more while it is done."""

    def extend(self, more: int, *, further: int = 0) -> None:
        """So many more are to be done, and about so many will follow these."""


def data(text: str) -> None:
    """What the command was asked for. A reader that has gone (`| head`) is no error.

    Raises StorageError where stdout takes nothing.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            raise unwritable(error) from error
        _discard()


def takes_data() -> bool:
    """Whether stdout has taken what it was given so far."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True


def unwritable(error: OSError) -> StorageError:
    """The message for a stdout that takes nothing; from now on it is spared."""
    _discard()
    return StorageError(
        f"The output cannot be written: {error.strerror}.",
        why="It was sent to a file on a full disk, or to a device that takes nothing.",
        fix="Send it elsewhere. Nothing that was measured is lost.",
    )


def _discard() -> None:
    # The interpreter flushes stdout once more at its end: nowhere, from now on.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def talk(text: str) -> None:
    """What the command is doing. Whether anybody listens must not end it."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Something that the user should know, but that stops nothing."""
    talk(f"{_colour('33', 'warning:')} {text}")


def fail(error: StackraceError) -> None:
    """What happened, why it usually happens, what to do."""
    talk(f"{_colour('31', 'stackrace:')} {error.what}")
    for text in (error.why, error.fix):
        if text:
            talk("\n".join(f"  {line}" for line in text.splitlines()))


def width() -> int:
    """Columns of the terminal that data goes to; 100 where it is none."""
    return min(shutil.get_terminal_size((100, 24)).columns, 120) if sys.stdout.isatty() else 100


def shows_colour() -> bool:
    """Whether data may be coloured: stdout is a terminal, and NO_COLOR is not set."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _colour(code: str, text: str) -> str:
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        return f"\x1b[{code}m{text}\x1b[0m"
    return text


@contextmanager
def progress(title: str, total: int) -> Iterator[Growing]:
    """A bar on a terminal; elsewhere a line now and then, and one at the end."""
    if sys.stderr.isatty():
        with _bar(title, total) as bar:
            yield bar
    else:
        lines = _Lines(title, total)
        yield lines
        lines.end()


class _Lines:
    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._further = 0
        self._began = time.monotonic()
        self._said = self._began - QUIET_S  # the first line at once
        self._last = ""

    def start(self, text: str) -> None:
        now = time.monotonic()
        if now - self._said < QUIET_S:
            return
        self._said = now
        rest = ""
        every = self._total + self._further
        if self._done:
            left = (now - self._began) / self._done * (every - self._done)
            rest = f", about {max(1, round(left / 60))} min left"
        total = f"about {every}" if self._further else f"{every}"
        talk(f"{self._title}: {self._done} of {total} done{rest}; now {text}")

    def advance(self, text: str) -> None:
        self._done += 1
        self._last = text

    def extend(self, more: int, *, further: int = 0) -> None:
        self._total += more
        self._further = further

    def end(self) -> None:
        """Only now is it known that no more is to be done."""
        if self._done:
            talk(f"{self._title}: {self._done} of {self._total} done; last {self._last}")


@contextmanager
def _bar(title: str, total: int) -> Iterator[Growing]:
    # rich takes 60 ms to import; `--help` and `list` must not pay for it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress  # noqa: PLC0415
    from rich.table import Column  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn(
            "{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    # Drawn only when something begins or ends: the host rests while a job measures.
    with RichProgress(
        *columns, console=Console(stderr=True), auto_refresh=False, expand=True
    ) as rich:
        task = rich.add_task(title, total=total, note="")

        class Bar:
            total = shown = total

            def start(self, text: str) -> None:
                rich.update(task, note=text, refresh=True)

            def advance(self, text: str) -> None:
                rich.update(task, advance=1, note=text, refresh=True)

            def extend(self, more: int, *, further: int = 0) -> None:
                self.total += more
                # rich forgets how quick it was at every new total.
                if self.total + further != self.shown:
                    self.shown = self.total + further
                    rich.update(task, total=self.shown, refresh=True)

        yield Bar()
