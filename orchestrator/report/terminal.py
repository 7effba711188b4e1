"""The report on a terminal: the answer first, then the figures, then how far to trust them."""

from __future__ import annotations

import io
import itertools
import re
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from orchestrator.model import phrases
from orchestrator.report import (
    advising,
    agreeing,
    differing,
    further,
    goals,
    lines,
    measured,
    overall,
)
from orchestrator.report.cells import read
from orchestrator.report.further import counts, further_tables
from orchestrator.report.sentences import headline
from orchestrator.report.tables import main_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from orchestrator.model.comparison import Comparison
    from orchestrator.model.findings import Findings
    from orchestrator.report.cells import Cell
    from orchestrator.report.context import Context
    from orchestrator.report.tables import Table

STYLES: Final = {"slower": "bold red", "faster": "bold green", "same": "cyan", "unclear": "yellow"}
# Tables of the reference beyond so many rows stand in report.md alone.
MAIN_ROWS: Final = 60
# More further contrasts than this are counted here and told in full in report.md.
FURTHER_ROWS: Final = 24
# Tables are never cut: a figure that runs over the edge is better than half a figure.
_UNBOUNDED: Final = 1000
_WIDE: Final = 96


def render(
    frame: pd.DataFrame,
    findings: Findings,
    context: Context,
    *,
    width: int = 80,
    colour: bool = False,
) -> str:
    """The whole report as text for a terminal of `width` columns, without a final newline."""
    comparison = findings.comparison
    cells = read(frame, comparison)
    page = _Page(width=width, colour=colour)
    page.say(_versions(context, width), style="bold")
    page.say(lines.place(cells, comparison, context))
    page.gap()
    nothing = lines.unmeasured(cells, comparison)
    if nothing:
        page.say(nothing)
    else:
        _results(page, cells, findings, context)
        seen = [*measured.top(findings.quantities), *agreeing.top(findings.agreements)]
        page.list("What the processes show:", seen)
        page.list("Advice, from what was measured here:", advising.top(findings.advice))
    page.list("No number:", lines.gaps(comparison))
    page.list("Lost jobs:", lines.failures(frame, comparison))
    for item in findings.broken:
        page.quote(f"{lines.broken(item)}:", item.traceback)
    page.gap()
    page.say(lines.rule(comparison) if comparison.contrasts and not nothing else "")
    page.say(lines.power(comparison))
    for line in goals.after(findings, context.rounds):
        page.say(line)
    for line in lines.selftests(findings):
        page.say(line)
    page.say(lines.jobs(comparison, context))
    told = differing.top(findings.differences)
    for warning in (*comparison.warnings, *told, lines.changed(findings)):
        page.say(f"warning: {warning}" if warning else "", style="yellow")
    page.gap()
    for word, text in lines.hints(findings, context):
        page.hint(word, text)
    return page.text()


def _results(page: _Page, cells: Sequence[Cell], findings: Findings, context: Context) -> None:
    comparison = findings.comparison
    for sentence in headline(cells, comparison, findings.advice.ranges):
        page.say(sentence)
    page.list("On average over all cases:", overall.top(findings.advice))
    environments = [item.identifier for item in context.environments]
    told = further.shown(cells, comparison) if _short(further_tables(cells, comparison)) else ()
    drawn = main_tables(cells, comparison, environments, told=frozenset(told))
    shown = _first(drawn)
    for table in drawn[:shown]:
        page.draw(table)
    if shown < len(drawn):
        where = "report.md" if context.folder else "a written report"
        page.say(f"... and {phrases.count(len(drawn) - shown, 'table')} like this in {where}")
    if not drawn:
        _further(page, cells, comparison, context)
    for note in lines.notes(cells, comparison):
        page.say(note, style="dim")
    if drawn:
        _further(page, cells, comparison, context)


def _versions(context: Context, width: int) -> str:
    told = lines.versions(context)
    line = (" " * 5).join(told)
    return line if len(line) <= width else "\n".join(told)


def _first(tables: Sequence[Table]) -> int:
    """How many tables fit a terminal: the first at least."""
    rows = itertools.accumulate(len(table.rows) for table in tables)
    return max(1, sum(number <= MAIN_ROWS for number in rows))


def _further(page: _Page, cells: Sequence[Cell], comparison: Comparison, context: Context) -> None:
    tables = further_tables(cells, comparison)
    if _short(tables):
        for table in tables:
            page.draw(table)
        return
    page.list(
        "More in report.md:" if context.folder else "More, in full in a written report:",
        counts(cells, comparison),
    )


def _short(tables: Sequence[Table]) -> bool:
    """Whether the further tables fit a terminal."""
    return sum(len(table.rows) for table in tables) <= FURTHER_ROWS


class _Page:
    """Collects paragraphs, and leaves one empty line between them."""

    def __init__(self, *, width: int, colour: bool) -> None:
        self._width = width
        self._console = Console(
            file=io.StringIO(),
            width=_UNBOUNDED,
            force_terminal=colour,
            color_system="standard" if colour else None,
            highlight=False,
            markup=False,
        )

    def say(self, sentence: str, *, style: str = "") -> None:
        """A line, wrapped between words; nothing for an empty one."""
        if sentence:
            text = Text(sentence, style=style)
            text.highlight_regex(r"\bSLOWER\b", STYLES["slower"])
            text.highlight_regex(r"\bFASTER\b", STYLES["faster"])
            self._console.print(text, width=self._width, soft_wrap=False)

    def gap(self) -> None:
        """An empty line; two in a row become one."""
        self._console.print()

    def list(self, title: str, entries: Sequence[str]) -> None:
        """A title and indented entries, if there are any."""
        if entries:
            self.gap()
            self.say(title)
            for entry in entries:
                self._entry(entry)

    def quote(self, title: str, text: str) -> None:
        """A title and lines as they are, which are never wrapped."""
        self.gap()
        self.say(title)
        for line in text.rstrip().splitlines():
            self._console.print(Text(f"  {line}"), soft_wrap=True)

    def hint(self, word: str, text: str) -> None:
        """A word and a command or path, which are never wrapped: people copy them."""
        self._console.print(Text(f"{word:<13}{text}"), soft_wrap=True)

    def draw(self, table: Table) -> None:
        """A table and its remarks."""
        self.gap()
        labels = _aligned(table)
        room = max(len(label) for label in labels)
        inside = len(table.title) <= room
        if not inside:
            self.say(table.title, style="bold")
        drawn = RichTable(box=None, pad_edge=False, padding=(0, self._padding(), 0, 0))
        drawn.add_column(table.title if inside else "", no_wrap=True, header_style="bold")
        *figures, last = table.headers
        numeric = "verdict" in table.headers
        for header in figures:
            drawn.add_column(header, justify="right", no_wrap=True)
        drawn.add_column(last, justify="left" if numeric else "right", no_wrap=True)
        for label, row in zip(labels, table.rows, strict=True):
            *cells, verdict = row.cells
            drawn.add_row(label, *cells, Text(verdict, style=STYLES.get(row.state or "", "")))
        self._console.print(drawn)
        for remark in table.remarks():
            self._entry(remark)

    def text(self) -> str:
        """All of it, without trailing blanks."""
        file = self._console.file
        written = file.getvalue() if isinstance(file, io.StringIO) else ""
        stripped = "\n".join(line.rstrip() for line in written.splitlines())
        return re.sub(r"\n{3,}", "\n\n", stripped).strip("\n")

    def _entry(self, entry: str) -> None:
        self._console.print(Padding(Text(entry), (0, 0, 0, 2)), width=self._width)

    def _padding(self) -> int:
        return 3 if self._width >= _WIDE else 2


def _aligned(table: Table) -> list[str]:
    """One text a row out of its labels; a label that repeats the one above is left out."""
    widths = [
        max(len(row.labels[place]) for row in table.rows) for place in range(len(table.labels))
    ]
    found, above = [], ("",) * len(table.labels)
    for row in table.rows:
        parts, repeated = [], True
        for label, last, room in zip(row.labels, above, widths, strict=True):
            repeated = repeated and label == last
            parts.append(f"{'' if repeated else label:<{room}}")
        found.append("  ".join(parts).rstrip())
        above = row.labels
    return found
