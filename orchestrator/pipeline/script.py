"""What the commands behind `nox -s cover` and `nox -s reports` have in common: how they end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from orchestrator import interrupt, log, process
from orchestrator.errors import StackraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def run(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run it on the words of the command line, and exit with its code, or that of what ended it."""
    try:
        with interrupt.interruptible():
            interrupt.follow_parent()
            code = main(sys.argv[1:])
    except interrupt.Stopped as stop:
        process.stop_all()
        log.talk(f"Stopped ({stop}). What was measured so far is kept.")
        code = stop.exit_code
    except StackraceError as error:
        log.fail(error)
        code = error.exit_code
    raise SystemExit(code)
