"""Measures public reports again: `python -m orchestrator.pipeline.reported TOML MARKDOWN [ID ...]`.

Each is a `stackrace run` of its own; its section of the document is made from the run's folder, and
the others stay as they are. `--written` makes the sections again from the runs that are there.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import log, merge, process, quantities, reported, store
from orchestrator.errors import InputError
from orchestrator.model import codec
from orchestrator.model.reports import Reports
from orchestrator.pipeline import pages, script
from orchestrator.report import measured
from orchestrator.store import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.reports import Report

RUNS = Path("results") / "reports"  # a folder for each report, with its run in it
HOURS_S = 4 * 3600.0


def main(words: Sequence[str]) -> int:
    """Run these reports, all by default, and write their sections."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.pipeline.reported")
    parser.add_argument("table", type=Path)
    parser.add_argument("document", type=Path)
    parser.add_argument("names", nargs="*", metavar="ID")
    parser.add_argument("--written", action="store_true", help="measure nothing")
    given = parser.parse_intermixed_args(words)  # ids before and behind an option
    table, document = given.table, given.document
    every = codec.decode_toml(store.read_text(table), Reports, source=table).report
    chosen = given.names or list(every)
    for name in chosen:
        if name not in every:
            raise InputError(f"{table} has no report {name!r}. It has {', '.join(every)}.")
        _around(store.read_text(document), name)
    pages.write(document, store.read_text(document))  # what cannot be written is not measured
    for name in chosen:
        folder = RUNS / name
        if not given.written:
            measure(every[name], folder)
        if folder.exists():
            text = written(store.read_text(document), name, every[name], newest(folder))
            pages.write(document, text)
            log.talk(f"{name}: {document} tells of it.")
    return 0


def measure(report: Report, folder: Path) -> None:
    """Run it; a run in which some arm cannot do what was asked is a result as well."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "orchestrator", "run", *shlex.split(report.run)]
    log.talk(f"stackrace run {report.run}")
    try:
        process.run_tool(
            [*command, "--results", folder],
            env=os.environ,
            log=folder / "log",
            timeout_s=HOURS_S,
        )
    except process.ToolError as error:
        log.warn(f"{error}\n{error.tail}")


def newest(folder: Path) -> RunFolder:
    """The last run in a report's folder."""
    runs = sorted(folder.glob("*/plan.json"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise InputError(f"There is no run in {folder}.")
    return RunFolder.open(runs[-1].parent)


def written(text: str, name: str, report: Report, run: RunFolder) -> str:
    """The document with the report's section as this run has it."""
    planned = run.plan()
    frame = merge.merge([(planned, run.records())])
    checked = [reported.check(claim, frame, threshold=planned.threshold) for claim in report.claims]
    before, after = _around(text, name)
    shown = measured.sentences(quantities.of(frame).findings)
    section = reported.section(name, report, checked, frame, shown=shown)
    return f"{before}\n{section}\n{after}"


def _around(text: str, name: str) -> tuple[str, str]:
    begin, end = f"<!-- report {name} -->", f"<!-- end of report {name} -->"
    return pages.around(text, begin, end, what=f"report {name}")


if __name__ == "__main__":
    script.run(main)
