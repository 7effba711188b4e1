"""Measures public reports again: `python -m orchestrator.pipeline.reported TOML MARKDOWN [ID ...]`.

Each is a `stackrace run` of its own; its section of the document is made from the run's folder, and
the others stay as they are. `--written` makes the sections again from the runs that are there.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import interrupt, log, merge, process, quantities, reported
from orchestrator.errors import InputError, StackraceError
from orchestrator.model import codec
from orchestrator.model.reports import Reports
from orchestrator.store import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.reports import Report

RUNS = Path("results") / "reports"  # a folder for each report, with its run in it
WRITTEN = "--written"
HOURS_S = 4 * 3600.0


def main(table: Path, document: Path, words: Sequence[str]) -> int:
    """Run these reports, all by default, and write their sections."""
    every = codec.decode_toml(table.read_text(encoding="utf-8"), Reports, source=table).report
    chosen = [word for word in words if word != WRITTEN] or list(every)
    for name in chosen:
        if name not in every:
            raise InputError(f"{table} has no report {name!r}. It has {', '.join(every)}.")
    for name in chosen:
        folder = RUNS / name
        if WRITTEN not in words:
            measure(every[name], folder)
        if folder.exists():
            text = written(document.read_text(encoding="utf-8"), name, every[name], newest(folder))
            document.write_text(text, encoding="utf-8")
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
    begin, end = f"<!-- report {name} -->", f"<!-- end of report {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"The document has no place for report {name}: {begin} ... {end}.")
    shown = quantities.of(frame).findings
    section = reported.section(name, report, checked, frame, findings=shown)
    return f"{before}{begin}\n{section}\n{end}{after}"


if __name__ == "__main__":
    try:
        with interrupt.interruptible():
            interrupt.follow_parent()
            code = main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    except interrupt.Stopped as stop:
        process.stop_all()
        log.talk(f"Stopped ({stop}). What was measured so far is kept.")
        code = stop.exit_code
    except StackraceError as error:
        log.fail(error)
        code = error.exit_code
    raise SystemExit(code)
