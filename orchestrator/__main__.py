"""`stackrace` and `python -m orchestrator`: the only place that exits."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from orchestrator import kernel, log
from orchestrator.errors import InterruptedRunError, StackraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

# EX_SOFTWARE: a fault of stackrace itself, told apart from everything a user can cause.
FAULT = 70


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    # Closed by the caller (`>&-`): nobody listens, and nothing may fail for that.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A path may hold letters that the locale of a job system has not.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line; returns the exit code, printed when it is not 0."""
    try:
        kernel.check_system()  # before anything that exists on Linux only is imported
    except StackraceError as error:
        log.fail(error)
        return error.exit_code
    from orchestrator import interrupt

    try:
        with interrupt.interruptible():
            return _told(words)
    except interrupt.Stopped as stop:  # while the end was being told
        return stop.exit_code


def _told(words: Sequence[str]) -> int:
    try:
        code = _run(words)
    except StackraceError as error:
        log.fail(error)
        code = error.exit_code
    except OSError as error:
        from orchestrator import store

        if not log.takes_data():  # what printed help, say
            failed = log.unwritable(error)
        elif error.errno in store.DISK_FULL:
            failed = store.full_disk(error.filename or "a file")
        else:
            return _fault()
        log.fail(failed)
        code = failed.exit_code
    except Exception:  # noqa: BLE001 - nothing may look like exit code 1, a regression
        return _fault()
    if code != 0:
        # A launcher such as nox turns every failing code into 1.
        log.talk(f"stackrace: exit code {code}")
    return code


def _run(words: Sequence[str]) -> int:
    from orchestrator import cli, interrupt

    try:
        interrupt.follow_parent()
        return cli.main(words)
    except interrupt.Stopped as stop:
        from orchestrator import process

        process.stop_all()
        raise InterruptedRunError(f"Stopped ({stop}).", exit_code=stop.exit_code) from stop


def _fault() -> int:
    import traceback  # no other command waits for it

    log.talk(traceback.format_exc())
    log.talk(
        "stackrace: this is a fault in stackrace itself. Please report it with the lines above."
    )
    return FAULT


if __name__ == "__main__":
    main()
