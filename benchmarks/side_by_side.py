"""tf114 against tf20 with stackrace, asv and pyperf: the time to a verdict, and what it says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figures import Figure, Measured
from benchmarks.peers import tools

if TYPE_CHECKING:
    from collections.abc import Sequence


def measure() -> Measured:
    """Each tool once, with as many processes; environments are there already."""
    for name in ("tf114", "tf20"):
        tools.environment(name)
    found = []
    for tool in tools.TOOLS.values():
        with tempfile.TemporaryDirectory(prefix="stackrace-peers-") as place:
            found.append(tool("tf114", "tf20", Path(place) / "work"))
    return Measured(figures=figures(found), raw={"told": msgspec.to_builtins(found)})


def figures(found: Sequence[tools.Told]) -> tuple[Figure, ...]:
    """How long each took until it said what it says."""
    return tuple(
        Figure(
            title=f"{told.tool}, until it says: {told.ratio:.2f}x, "
            f"{'no verdict' if told.claim == 'none' else told.claim} ({told.spread})",
            unit="s",
            values=(told.seconds,),
        )
        for told in found
    )
