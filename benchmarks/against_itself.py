"""How often a tool says that tf114 differs from tf114: comparisons of a version with itself.

The tools work side by side, each with a core of its own, because one after the other they take two
hours. What each comparison said is kept at once, so that this can be stopped, and goes on.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Event

import msgspec

from benchmarks.figures import Figure, Measured
from benchmarks.peers import tools
from orchestrator import log, store

ENVIRONMENT = "tf114"
COMPARISONS = 20
# Where nothing differs the 95% interval of one comparison in twenty lies beside 1; one more may. A
# verdict of a single comparison, q < .05, errs in one of twenty at most.
BESIDE = 2
FALSE = 1
KEPT = Path(__file__).resolve().parent / "against_itself"  # a file for each tool


def measure(comparisons: int = COMPARISONS, kept: Path = KEPT) -> Measured:
    """What is missing is measured; as many tools at once as there are cores."""
    cores, stop = SimpleQueue[int](), Event()
    for core in (free := sorted(os.sched_getaffinity(0))):
        cores.put(core)

    def compare(name: str) -> list[tools.Told]:
        core = cores.get()
        try:
            if stop.is_set():
                return []
            os.sched_setaffinity(0, {core})  # of this thread, and of what it starts
            return _compare(name, comparisons, kept / f"{name}.json", stop)
        except BaseException:
            stop.set()
            raise
        finally:
            cores.put(core)

    kept.mkdir(exist_ok=True)
    tools.environment(ENVIRONMENT)  # both peers need them: made once, before they run at once
    tools.programs()
    with ThreadPoolExecutor(len(free)) as pool:
        try:
            found = [told for every in pool.map(compare, tools.TOOLS) for told in every]
        finally:
            stop.set()  # a signal comes here, and the others go on with what they have begun only
    return Measured(
        figures=tuple(figure for name in tools.TOOLS for figure in figures(name, found)),
        raw={"load": [os.getloadavg()[0]]},
    )


def _compare(name: str, comparisons: int, path: Path, stop: Event) -> list[tools.Told]:
    found = read(path)
    while len(found) < comparisons and not stop.is_set():
        with tempfile.TemporaryDirectory(prefix="stackrace-itself-") as place:
            told = tools.TOOLS[name](ENVIRONMENT, ENVIRONMENT, Path(place) / "work")
        found.append(told)
        store.write_report(path, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
        log.talk(
            f"{len(found)} of {comparisons}  {name}: {told.ratio:.3f}, {told.claim} "
            f"({told.spread}), {told.seconds:.0f} s"
        )
    return found


def read(path: Path) -> list[tools.Told]:
    """What a tool compared so far."""
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
            goal=float(FALSE) if ours else None,
            remark="" if not ours else "Each tool had a core of its own; the other was at work.",
        )
    ]
    if ours:
        beside = sum(item.excludes_one for item in own)
        told.append(
            Figure(
                title=f"{name}: raw 95% intervals of these that lie beside 1",
                unit="count",
                values=(float(beside),),
                goal=float(BESIDE),
            )
        )
    return told
