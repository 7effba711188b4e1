"""`stackrace` and `python -m orchestrator`: the only place that exits."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

from orchestrator import cli, interrupt, log, process
from orchestrator.errors import StackraceError, StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

# EX_SOFTWARE: a fault of stackrace itself, told apart from everything a user can cause.
FAULT = 70


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(words: Sequence[str]) -> int:
    """Run one command line; returns the exit code, printed when it is not 0."""
    try:
        with interrupt.interruptible():
            code = _run(words)
    except StackraceError as error:
        log.fail(error)
        code = error.exit_code
    except interrupt.Stopped as stop:
        log.talk(f"stackrace: stopped ({stop}).")
        code = stop.exit_code
    except BrokenPipeError:
        return _reader_left()
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            return _fault()
        full = StorageError(
            f"The disk is full: {error.filename or 'a file'} could not be written.",
            fix="Free some space and run the command again; records that were written are kept.",
        )
        log.fail(full)
        code = full.exit_code
    except Exception:  # noqa: BLE001 - nothing may look like exit code 1, a regression
        return _fault()
    if code != 0:
        # A launcher such as nox turns every failing code into 1.
        log.talk(f"stackrace: exit code {code}")
    return code


def _run(words: Sequence[str]) -> int:
    try:
        interrupt.follow_parent()
        return cli.main(words)
    except KeyboardInterrupt:
        process.stop_all()
        raise


def _reader_left() -> int:
    """Whoever read our output has gone (`| head`): not an error, and nobody to tell."""
    sys.stdout = None  # so that the interpreter does not flush it
    return 0


def _fault() -> int:
    log.talk(traceback.format_exc())
    log.talk(
        "stackrace: this is a fault in stackrace itself. Please report it with the lines above."
    )
    return FAULT


if __name__ == "__main__":
    main()
