"""How often a tool says that tf114 differs from tf114: comparisons of a version with itself.

What each comparison said is kept at once, so that this can be stopped, and goes on.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from benchmarks.figures import Figure, Measured
from benchmarks.peers import tools
from orchestrator import log, store

ENVIRONMENT = "tf114"
COMPARISONS = 20
# The 95% interval of one comparison in twenty lies beside 1 where nothing differs; one more may.
EXPECTED = 2
KEPT = Path(__file__).resolve().parent / "against_itself.json"


def measure(comparisons: int = COMPARISONS) -> Measured:
    """What is missing is measured: one comparison with each tool, and then again."""
    found = read()
    for number in range(comparisons):
        for name, tool in tools.TOOLS.items():
            if sum(item.tool == name for item in found) > number:
                continue
            with tempfile.TemporaryDirectory(prefix="stackrace-itself-") as place:
                told = tool(ENVIRONMENT, ENVIRONMENT, Path(place) / "work")
            found.append(told)
            store.write_report(KEPT, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
            log.talk(
                f"{number + 1} of {comparisons}  {name}: {told.ratio:.3f}, {told.claim} "
                f"({told.spread}), {told.seconds:.0f} s"
            )
    return Measured(
        figures=tuple(figure for name in tools.TOOLS for figure in figures(name, found)),
        raw={"load": [os.getloadavg()[0]]},
    )


def read(path: Path = KEPT) -> list[tools.Told]:
    """What was compared so far."""
    return msgspec.json.decode(path.read_bytes(), type=list[tools.Told]) if path.exists() else []


def figures(name: str, found: list[tools.Told]) -> list[Figure]:
    """How many of a tool's comparisons were false, and how many of its intervals."""
    own = [item for item in found if item.tool == name]
    if not own:
        return []
    false = sum(item.claim in {"faster", "slower"} for item in own)
    ours = name == "stackrace"
    told = [
        Figure(
            title=f"{name}: false claims in {len(own)} comparisons of tf114 with itself",
            unit="count",
            values=(float(false),),
            goal=0.0 if ours else None,
        )
    ]
    if ours:
        beside = sum(item.excludes_one for item in own)
        told.append(
            Figure(
                title=f"{name}: raw 95% intervals of these that lie beside 1",
                unit="count",
                values=(float(beside),),
                goal=float(EXPECTED),
            )
        )
    return told
