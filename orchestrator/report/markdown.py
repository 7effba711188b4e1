"""The report as Markdown: all that the terminal says, and what has no room there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.model import phrases
from orchestrator.model.matrix import title
from orchestrator.report import (
    advising,
    agreeing,
    differing,
    goals,
    lines,
    measured,
    overall,
    paths,
    profiles,
    seconds,
    trend,
    words,
)
from orchestrator.report.cells import PHASES, read
from orchestrator.report.further import further_tables, shown
from orchestrator.report.marks import bullets, grid, text
from orchestrator.report.sentences import headline
from orchestrator.report.tables import main_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from orchestrator.model.comparison import Comparison
    from orchestrator.model.findings import Findings
    from orchestrator.model.plan import PlannedEnvironment
    from orchestrator.report.cells import Cell
    from orchestrator.report.context import Context
    from orchestrator.report.tables import Table

_METHOD: Final = (
    "One process is one observation: the median of its timed iterations. A ratio is taken within "
    "each block, of processes that ran one after the other in random order, and the interval is "
    "Student's over the blocks' log ratios."
)
_CORRECTION: Final = (
    "q is p after Benjamini-Hochberg over the comparisons of one kind, and no less than it would "
    "be if its blocks scattered as those of the others do; as installed and version count as one "
    "kind, and two rows of the same cells as one comparison."
)
_PHASE_NAMES: Final = ("import", "data", "build + compile", "first call")


def render(frame: pd.DataFrame, findings: Findings, context: Context) -> str:
    """The whole report as one Markdown page that ends with a newline."""
    comparison = findings.comparison
    cells = read(frame, comparison)
    sections = (
        _opening(cells, findings, context),
        _results(cells, comparison, context),
        overall.section(findings.advice, alpha=comparison.alpha),
        advising.section(findings.advice),
        paths.section(frame),
        trend.section(cells, comparison, context.environments),
        seconds.section(cells, comparison, context),
        _missing(frame, comparison),
        _broken(findings),
        _phases(cells),
        measured.section(findings.quantities),
        agreeing.section(findings.agreements),
        profiles.section(findings.profiles),
        _trust(findings, context),
        _scope(comparison, context),
    )
    return "\n\n".join(block for section in sections for block in section) + "\n"


def _opening(cells: Sequence[Cell], findings: Findings, context: Context) -> Iterator[str]:
    comparison = findings.comparison
    others = [
        item.identifier for item in context.environments if item.identifier != comparison.reference
    ]
    against = [words.listed(others)] if others else []
    title = " against ".join([*against, comparison.reference])
    if context.selftest:
        title = f"Selftest: {comparison.reference} against a copy of itself"
    yield f"# {text(title)}"
    yield bullets(lines.versions(context))
    yield text(lines.place(cells, comparison, context)) + "."
    if not lines.unmeasured(cells, comparison):
        sentences = headline(cells, comparison, findings.advice.ranges)
        told = (f"**{text(sentence)}**  " for sentence in sentences)
        yield "\n".join(told).rstrip()


def _results(cells: Sequence[Cell], comparison: Comparison, context: Context) -> Iterator[str]:
    nothing = lines.unmeasured(cells, comparison)
    if nothing:
        yield text(nothing)
        return
    yield "## Results"
    environments = [item.identifier for item in context.environments]
    told = shown(cells, comparison)
    for table in main_tables(cells, comparison, environments, told=told):
        yield from _table(table)
    for note in lines.notes(cells, comparison):
        yield text(note)
    for table in further_tables(cells, comparison):
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"### {text(table.title)}"
    judged = "verdict" in table.headers
    *figures, last = table.headers
    yield grid(
        (*table.labels, *figures, *(["q"] if judged else []), last),
        [
            (*row.labels, *row.cells[:-1], *([words.q(row.q)] if judged else []), row.cells[-1])
            for row in table.rows
        ],
        left=len(table.labels),
    )
    remarks = table.remarks()
    if remarks:
        yield bullets(remarks)


def _missing(frame: pd.DataFrame, comparison: Comparison) -> Iterator[str]:
    gaps, failures = lines.gaps(comparison), lines.failures(frame, comparison)
    if gaps:
        yield "## Cells without a number"
        yield bullets(gaps)
    if failures:
        yield "## Lost jobs"
        yield bullets(failures)


def _broken(findings: Findings) -> Iterator[str]:
    """What went wrong in the user's own file, as Python told it there."""
    for item in findings.broken:
        yield f"## {text(lines.broken(item))}"
        yield f"```\n{item.traceback.rstrip()}\n```"


def _phases(cells: Sequence[Cell]) -> Iterator[str]:
    """Seconds apart from the iterations, and what really ran: the mode does not decide it alone."""
    measured = [cell for cell in cells if cell.processes]
    if not measured:
        return
    yield "## Where the time goes"
    yield grid(
        ("arm", "case", "ran as", *_PHASE_NAMES, "an iteration"),
        [
            (
                cell.arm,
                cell.case,
                cell.executed_as or "unknown",
                *(words.seconds(phase) for phase in cell.phases_s[: len(PHASES)]),
                words.seconds(cell.seconds),
            )
            for cell in measured
        ],
        left=3,
    )
    yield "Medians over processes. What comes before the iterations is in no ratio above."


def _trust(findings: Findings, context: Context) -> Iterator[str]:
    comparison = findings.comparison
    yield "## How far to trust it"
    facts = [
        _METHOD,
        lines.rule(comparison) if comparison.contrasts else "",
        _CORRECTION if comparison.contrasts else "",
        lines.power(comparison),
        *goals.after(findings, context.rounds),
        *lines.selftests(findings),
        lines.jobs(comparison, context),
        *comparison.warnings,
        *differing.every(findings.differences),
        lines.changed(findings),
    ]
    yield bullets([fact for fact in facts if fact])


def _scope(comparison: Comparison, context: Context) -> Iterator[str]:
    yield "## What it is only true for"
    cores = phrases.count(context.cores, "core") if context.cores is not None else ""
    machine = ", ".join(part for part in (context.cpu or "", cores) if part)
    facts = [
        f"Machine: {machine or 'unknown'}",
        *(
            f"{item.identifier}: {title(item)}, Python {item.python}, {_packages(item)}"
            for item in context.environments
        ),
        f"{'Run' if len(comparison.run_ids) == 1 else 'Runs'}: {', '.join(comparison.run_ids)}",
    ]
    yield bullets(facts)


def _packages(item: PlannedEnvironment) -> str:
    """Where the packages of an environment come from; the digest tells when that changes."""
    if item.source:
        return f"packages {lines.found(item)}, digest {item.lock_digest[:12]}"
    image = f", image {item.image_digest}" if item.image_digest else ""
    lock = f"lock {item.lock_digest[:12]}" if item.lock_digest else "no lock: it was not prepared"
    return f"{item.variant} packages of {lock}{image}"
