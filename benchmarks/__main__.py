"""`python -m benchmarks [NAME ...]`: measure these, or all, and write docs/performance.md again."""

from __future__ import annotations

import argparse
import importlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks import document
from benchmarks.figures import Measured
from orchestrator import host, log, store
from orchestrator.errors import StackraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "performance.md"


@dataclass(frozen=True)
class Benchmark:
    """What is measured, and where that is written: `module.function`."""

    title: str
    where: str

    def measure(self) -> Measured:
        """Import what it needs, and measure."""
        module, _, function = self.where.rpartition(".")
        found: Callable[[], Measured] = getattr(importlib.import_module(module), function)
        return found()


BENCHMARKS = {
    "starting": Benchmark("Commands that measure nothing", "benchmarks.starting.measure"),
    "finding": Benchmark("Environments that are there", "benchmarks.installing.finding"),
    "host": Benchmark("Between two jobs", "benchmarks.racing.host_time"),
    "quick": Benchmark("A race", "benchmarks.racing.quick"),
    "containers": Benchmark("A job in a container", "benchmarks.containers.measure"),
    "merging": Benchmark("Reading a run", "benchmarks.reading.measure"),
    "making": Benchmark("Environments that are not there", "benchmarks.installing.making"),
    "peers": Benchmark("Beside asv and pyperf", "benchmarks.side_by_side.measure"),
    "itself": Benchmark("A version against itself", "benchmarks.against_itself.measure"),
    "interleaved": Benchmark(
        "A version against itself, twenty cases in one run", "benchmarks.interleaved.measure"
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep what was found after each, and write the page. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--write", action="store_true", help="only write the page again")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}: {', '.join(BENCHMARKS)}")
    code = 0
    for name in [] if given.write else given.names or BENCHMARKS:
        log.talk(f"{name}: {BENCHMARKS[name].title}")
        try:
            keep(name, dated(BENCHMARKS[name].measure))
        except StackraceError as error:
            log.fail(error)
            code = error.exit_code
    write()
    for title in document.unmet(read()):
        log.talk(f"not met: {title}")
    return code


def dated(measure: Callable[[], Measured]) -> Measured:
    """What it finds, with the day, the machine and the load that there was."""
    machine, load = host.facts(), os.getloadavg()[0]
    return msgspec.structs.replace(
        measure(),
        date=datetime.now(tz=UTC).date().isoformat(),
        machine=f"{machine.cpu}, {machine.cores} cores",
        load=load,
    )


def read(path: Path = RESULTS) -> dict[str, Measured]:
    """What was measured last, by name."""
    if not path.exists():
        return {}
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Measured])


def keep(name: str, found: Measured, path: Path = RESULTS) -> None:
    """Keep what one benchmark found, instead of what it found before."""
    every = read(path) | {name: found}
    store.write_report(path, msgspec.json.format(msgspec.json.encode(every)) + b"\n")


def write(path: Path = PAGE) -> None:
    """Write the page from what is kept."""
    titles = {name: benchmark.title for name, benchmark in BENCHMARKS.items()}
    store.write_report(path, document.text(read(), titles).encode())


if __name__ == "__main__":
    raise SystemExit(main())
