"""The report as Markdown: all that the terminal says, and what has no room there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from orchestrator.model import phrases
from orchestrator.model.matrix import title
from orchestrator.report import lines, words
from orchestrator.report.cells import PHASES, read
from orchestrator.report.sentences import headline
from orchestrator.report.tables import Table, further_tables, main_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.plan import PlannedEnvironment
    from orchestrator.report.cells import Cell
    from orchestrator.report.context import Context

_METHOD: Final = (
    "One process is one observation: the median of its timed iterations. A ratio is taken within "
    "each block, of processes that ran one after the other in random order, and the interval is "
    "Student's over the blocks' log ratios."
)
_CORRECTION: Final = (
    "q is p after Benjamini-Hochberg over the comparisons of one kind; as installed and version "
    "count as one kind, and two rows of the same cells as one comparison."
)
# More arms than this do not fit a page side by side: 3 environments in 2 modes do.
MOST_COLUMNS: Final = 6
_PHASE_NAMES: Final = ("import", "data", "build + compile", "first call")


def render(frame: pd.DataFrame, comparison: Comparison, context: Context) -> str:
    """The whole report as one Markdown page that ends with a newline."""
    cells = read(frame, comparison)
    sections = (
        _opening(cells, comparison, context),
        _results(cells, comparison, context),
        _seconds(cells, comparison, context),
        _missing(frame, comparison),
        _phases(cells),
        _trust(comparison, context),
        _scope(comparison, context),
    )
    return "\n\n".join(block for section in sections for block in section) + "\n"


def _opening(cells: Sequence[Cell], comparison: Comparison, context: Context) -> Iterator[str]:
    others = [
        item.identifier for item in context.environments if item.identifier != comparison.reference
    ]
    against = [words.listed(others)] if others else []
    yield f"# {_text(' against '.join([*against, comparison.reference]))}"
    yield _bullets(lines.versions(context))
    yield _text(lines.place(cells, comparison, context)) + "."
    if not lines.unmeasured(cells, comparison):
        told = (f"**{_text(sentence)}**  " for sentence in headline(cells, comparison))
        yield "\n".join(told).rstrip()


def _results(cells: Sequence[Cell], comparison: Comparison, context: Context) -> Iterator[str]:
    nothing = lines.unmeasured(cells, comparison)
    if nothing:
        yield _text(nothing)
        return
    yield "## Results"
    environments = [item.identifier for item in context.environments]
    for table in main_tables(cells, comparison, environments):
        yield from _table(table)
    for note in lines.notes(cells, comparison):
        yield _text(note)
    for tables in further_tables(cells, comparison).values():
        for table in tables:
            yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"### {_text(table.title)}"
    judged = "verdict" in table.headers
    *figures, last = table.headers
    yield _grid(
        (*table.labels, *figures, *(["q"] if judged else []), last),
        [
            (*row.labels, *row.cells[:-1], *([words.q(row.q)] if judged else []), row.cells[-1])
            for row in table.rows
        ],
        left=len(table.labels),
    )
    remarks = table.remarks()
    if remarks:
        yield _bullets(remarks)


def _seconds(cells: Sequence[Cell], comparison: Comparison, context: Context) -> Iterator[str]:
    """Seconds and percents as the first benchmarks of this question printed them."""
    if lines.unmeasured(cells, comparison):
        return
    environments = [item.identifier for item in context.environments]
    arms = list(dict.fromkeys((cell.environment, cell.mode) for cell in cells))
    arms.sort(key=lambda arm: environments.index(arm[0]))
    found = _percents(comparison, {"as_installed", "version", "mode"})
    gaps = {(gap.arm, gap.case): words.plain(gap.outcome) for gap in reversed(comparison.gaps)}
    yield "## Seconds per iteration, and percents"
    if len(arms) > MOST_COLUMNS:
        yield _stacked(cells, found, gaps)
    else:
        yield _wide(cells, found, gaps, arms)
    if found:
        yield (
            "Percents are (1 - longer / shorter) * 100 as a magnitude: `+` where the newer version "
            "(graph, in graph against eager) is faster, `-` where it is slower."
        )


def _wide(
    cells: Sequence[Cell],
    found: Sequence[Contrast],
    gaps: Mapping[tuple[str, str], str],
    arms: Sequence[tuple[str, str]],
) -> str:
    """A row a case: columns of seconds, then of percents."""
    percents = list(dict.fromkeys(_pair(item, cells) for item in found))
    rows = []
    keys = dict.fromkeys((cell.case, cell.api, cell.workload) for cell in cells)
    for case, api, workload in keys:
        here = [
            cell for cell in cells if (cell.case, cell.api, cell.workload) == (case, api, workload)
        ]
        seconds = {(cell.environment, cell.mode): _exact(cell, gaps) for cell in here}
        names = {cell.arm for cell in here}
        told = {
            _pair(item, cells): words.signed(item.origin_percent)
            for item in found
            if item.candidate.case == case
            and {item.candidate.arm, item.reference.arm} <= names
            and item.origin_percent is not None
        }
        rows.append(
            (
                case,
                ", ".join(part for part in (api, workload) if part),
                *(seconds.get(arm, words.NOTHING) for arm in arms),
                *(told.get(pair, words.NOTHING) for pair in percents),
            )
        )
    return _grid(("case", "api", *(" ".join(arm) for arm in arms), *percents), rows, left=2)


def _stacked(
    cells: Sequence[Cell], found: Sequence[Contrast], gaps: Mapping[tuple[str, str], str]
) -> str:
    """A row a cell, for more arms than a page is wide: each percent beside its candidate."""
    told: dict[tuple[str, str], list[str]] = {}
    for item in found:
        if item.origin_percent is not None:
            side = item.candidate
            told.setdefault((side.arm, side.case), []).append(
                f"{words.signed(item.origin_percent)} {_pair(item, cells)}"
            )
    return _grid(
        ("case", "arm", "percents", "seconds"),
        [
            (
                cell.case,
                cell.arm,
                ", ".join(dict.fromkeys(told.get((cell.arm, cell.case), [words.NOTHING]))),
                _exact(cell, gaps),
            )
            for cell in cells
        ],
        left=3,
    )


def _percents(comparison: Comparison, kinds: Iterable[str]) -> list[Contrast]:
    return [contrast for contrast in comparison.contrasts if contrast.kind in kinds]


def _pair(contrast: Contrast, cells: Sequence[Cell]) -> str:
    """The column that a percent stands in: `tf20 vs tf114 graph`, `tf114 graph vs eager`."""
    by_arm = {cell.arm: cell for cell in cells}
    candidate, reference = by_arm[contrast.candidate.arm], by_arm[contrast.reference.arm]
    if contrast.kind == "mode":
        return f"{reference.environment} graph vs eager"
    if candidate.mode == reference.mode:  # as installed as well, perhaps: the same cells
        return f"{candidate.environment} vs {reference.environment} {candidate.mode}"
    if contrast.kind == "as_installed":
        return f"{candidate.environment} vs {reference.environment} as installed"
    return f"{candidate.environment} {candidate.mode} vs {reference.environment} {reference.mode}"


def _missing(frame: pd.DataFrame, comparison: Comparison) -> Iterator[str]:
    gaps, failures = lines.gaps(comparison), lines.failures(frame, comparison)
    if gaps:
        yield "## Cells without a number"
        yield _bullets(gaps)
    if failures:
        yield "## Lost jobs"
        yield _bullets(failures)


def _phases(cells: Sequence[Cell]) -> Iterator[str]:
    """Seconds apart from the iterations, and what really ran: the mode does not decide it alone."""
    measured = [cell for cell in cells if cell.seconds is not None]
    if not measured:
        return
    yield "## Where the time goes"
    yield _grid(
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


def _trust(comparison: Comparison, context: Context) -> Iterator[str]:
    yield "## How far to trust it"
    facts = [
        _METHOD,
        lines.rule(comparison) if comparison.contrasts else "",
        _CORRECTION if comparison.contrasts else "",
        lines.power(comparison),
        lines.jobs(comparison, context),
        *comparison.warnings,
    ]
    yield _bullets([fact for fact in facts if fact])


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
    yield _bullets(facts)


def _packages(item: PlannedEnvironment) -> str:
    """Where the packages of an environment come from; the digest tells when that changes."""
    if item.source:
        return f"packages {lines.found(item)}, digest {item.lock_digest[:12]}"
    image = f", image {item.image_digest}" if item.image_digest else ""
    lock = f"lock {item.lock_digest[:12]}" if item.lock_digest else "no lock: it was not prepared"
    return f"{item.variant} packages of {lock}{image}"


def _exact(cell: Cell, gaps: Mapping[tuple[str, str], str]) -> str:
    """Seconds without a unit, so that columns compare; where there are none, what happened."""
    if cell.seconds is None:
        return gaps.get((cell.arm, cell.case), words.NOTHING)
    return f"{cell.seconds:.3g}"


def _grid(headers: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """A Markdown table; the first `left` columns are text, the others stand to the right."""
    marks = [":--" if place < left else "--:" for place in range(len(headers))]
    return "\n".join(
        "| " + " | ".join(_text(cell) for cell in row) + " |" for row in (headers, marks, *rows)
    )


def _bullets(entries: Iterable[str]) -> str:
    return "\n".join(f"- {_text(entry)}" for entry in entries)


def _text(text: str) -> str:
    """Text that Markdown takes as it stands."""
    return re.sub(r"[\\|*`]|<(?=[A-Za-z/!])", r"\\\g<0>", text)
