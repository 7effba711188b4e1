"""Reading and reporting recorded runs, as figures; how that is measured: benchmarks.merging."""

from __future__ import annotations

from typing import Any

from benchmarks import merging
from benchmarks.figures import Figure, Measured

MANY = 100_000
GOAL = 3.0
CACHED = 10.0
LINEAR = 1.2
MOST_MIB = 1536.0
_MIB = 2**20
WHY = """Half of it is the table: types that are checked, steady states, medians. The other half is
all that a report says of it: verdicts, leaks, slopes and spikes, reproducibility, advice, the page.
In a profile nothing stands out, and the goal has no room for most of it."""


def measure() -> Measured:
    """10,000 records against parsing their bytes, and 100,000 against ten times as long."""
    found, many = merging.measure(), merging.measure(MANY, repeats=1)
    return Measured(figures=figures(found, many), raw={"thousands": found, "many": many})


def figures(found: dict[str, Any], many: dict[str, Any]) -> tuple[Figure, ...]:
    """Of the seconds of both, as `merging.measure` has them."""
    # Each against parsing its own bytes in its own time: by then the machine has another speed.
    growth = (many["read_s"] / many["parse_s"]) / (found["read_s"] / found["parse_s"])
    return (
        Figure(
            title=f"merge + verdict + Markdown of {found['records']:,} records, against "
            f"reading and parsing their {found['bytes'] / 1e6:.0f} MB",
            unit="x",
            values=(found["read_s"] / found["parse_s"],),
            goal=GOAL,
            remark=WHY,
        ),
        Figure(
            title="of it the table: typed decoding, steady states, medians",
            unit="x",
            values=(found["merge_s"] / found["parse_s"],),
        ),
        Figure(
            title="merged the first time, against an unchanged run folder again",
            unit="x",
            values=(found["merge_s"] / found["merge_again_s"],),
            goal=CACHED,
            at_least=True,
        ),
        Figure(
            title="merged and judged the first time, against an unchanged run folder again",
            unit="x",
            values=(found["read_s"] / found["cached_s"],),
            remark="Only the table is kept: the verdict is made anew each time.",
        ),
        Figure(
            title=f"a record among {many['records']:,}, against one among "
            f"{found['records']:,}, each in times of parsing it",
            unit="x",
            values=(growth,),
            goal=LINEAR,
        ),
        Figure(
            title=f"the most memory, {many['records']:,} records",
            unit="MiB",
            values=(many["peak_bytes"] / _MIB,),
            goal=MOST_MIB,
        ),
    )
