"""What help, lists and completion cost, in starts of a bare interpreter."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import commands
from benchmarks.figures import Figure, Measured, ratios

if TYPE_CHECKING:
    from collections.abc import Mapping

REPEATS = 101  # starts of 20 ms vary by half
GOAL = 10.0
COMPLETION = {
    "_STACKRACE_COMPLETE": "bash_complete",
    "COMP_WORDS": "stackrace run --pre",
    "COMP_CWORD": "2",
}
BARE = "python -c pass"
LIST = "stackrace list"
WHY = """`list` reads and checks the matrix and the grid: beside the interpreter it imports click,
msgspec and the types of what is read, and then reads and shows it all."""
WAYS: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    BARE: ((sys.executable, "-c", "pass"), {}),
    "stackrace --help": ((*commands.STACKRACE, "--help"), {}),
    LIST: ((*commands.STACKRACE, "list"), {}),
    "completion of `stackrace run --pre`": (commands.STACKRACE, COMPLETION),
}


def measure(repeats: int = REPEATS) -> Measured:
    """Each against the start of the interpreter that runs it, in turn."""
    raw = commands.in_turn(
        {name: partial(commands.seconds, words, env=env) for name, (words, env) in WAYS.items()},
        repeats=repeats,
    )
    return Measured(
        figures=tuple(
            Figure(
                title=f"{name}, against `{BARE}`",
                unit="x",
                values=ratios(raw[name], raw[BARE]),
                goal=GOAL,
                remark=WHY if name == LIST else "",
            )
            for name in WAYS
            if name != BARE
        ),
        raw=raw,
    )
