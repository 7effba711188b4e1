"""tf114 against tf20 with stackrace, asv and pyperf: the time to a verdict, and what it says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from benchmarks.figures import Figure, Measured
from benchmarks.peers import tools


def measure() -> Measured:
    """Each tool once, with as many processes; environments are there already."""
    for name in ("tf114", "tf20"):
        tools.environment(name)
    found = []
    for tool in tools.TOOLS.values():
        with tempfile.TemporaryDirectory(prefix="stackrace-peers-") as place:
            found.append(tool("tf114", "tf20", Path(place) / "work"))
    return Measured(
        figures=tuple(
            Figure(
                title=f"{told.tool}: {told.ratio:.2f}x, {told.claim} ({told.spread})",
                unit="s",
                values=(told.seconds,),
            )
            for told in found
        ),
        raw={"told": msgspec.to_builtins(found)},
    )
