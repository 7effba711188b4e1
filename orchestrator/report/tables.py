"""What stands in the tables of a report, whether they are drawn in a terminal or in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.report import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.names import ContrastKind, State
    from orchestrator.report.cells import Cell

# Only two environments fit side by side.
SIDE_BY_SIDE: Final = 2
# Behind a time that is not proven to be one of the GPU.
UNPROVEN: Final = "?"
# Kinds with tables of their own, each called like the part in which its two cells differ.
FURTHER: Final[tuple[ContrastKind, ...]] = (
    "mode",
    "api",
    "input",
    "method",
    "device",
    "workload",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Labels tell which cells these are; `remarks` is what the cells have no room for."""

    labels: tuple[str, ...]
    cells: tuple[str, ...]
    state: State | None = None
    q: float | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Table:
    """Headers name the labels, then the cells."""

    title: str
    labels: tuple[str, ...]
    headers: tuple[str, ...]
    rows: tuple[Row, ...]

    def remarks(self) -> list[str]:
        """Each remark once, with the rows that it is about."""
        about: dict[str, list[str]] = {}
        for row in self.rows:
            for remark in row.remarks:
                about.setdefault(remark, []).append(
                    " ".join(label for label in row.labels if label)
                )
        return [
            f"{'all rows' if len(rows) == len(self.rows) > 1 else ', '.join(rows)}: {remark}"
            for remark, rows in about.items()
        ]


def main_tables(
    cells: Sequence[Cell], comparison: Comparison, environments: Sequence[str]
) -> list[Table]:
    """Every measured cell with its contrast against the reference: a table a size, api, input."""
    contrasts = _against_reference(comparison)
    if comparison.contrasts and not contrasts and len(environments) > 1:
        return []  # only other kinds were asked for, and they have tables of their own
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_group(cell), []).append(cell)
    shown = [name for name in environments if any(cell.environment == name for cell in cells)]
    # The reference stands to the left, as in `right time / left time`.
    shown.sort(key=lambda name: name != comparison.reference)
    side_by_side = len(shown) == SIDE_BY_SIDE and comparison.reference in shown
    build = _side_by_side if side_by_side else _below_each_other
    return [
        *_across_apis(cells, comparison),
        *(
            build(", ".join(part for part in group if part), members, contrasts, comparison, shown)
            for group, members in groups.items()
        ),
    ]


def _across_apis(cells: Sequence[Cell], comparison: Comparison) -> Iterator[Table]:
    """As installed, where an environment without tf.keras meets the reference in another api."""
    by_name = {(cell.arm, cell.case): cell for cell in cells}
    groups: dict[tuple[str, ...], list[Row]] = {}
    for contrast in comparison.contrasts:
        candidate = by_name[contrast.candidate.arm, contrast.candidate.case]
        reference = by_name[contrast.reference.arm, contrast.reference.case]
        if contrast.kind == "as_installed" and candidate.api != reference.api:
            row = _row(
                (candidate.method, f"{candidate.environment} {candidate.api}"),
                [_time(reference), _time(candidate)],
                contrast,
            )
            name = f"{reference.environment} {reference.api}"
            groups.setdefault((name, *_group(reference, without="api")), []).append(row)
    for (name, *group), rows in groups.items():
        yield Table(
            title=f"as installed: {', '.join(part for part in group if part)}",
            labels=("method", "environment"),
            headers=(name, "time", "ratio", "95% interval", "verdict"),
            rows=tuple(rows),
        )


def further_tables(
    cells: Sequence[Cell], comparison: Comparison
) -> dict[ContrastKind, list[Table]]:
    """The contrasts within an environment, kind by kind."""
    by_name = {(cell.arm, cell.case): cell for cell in cells}
    environments = {cell.environment for cell in cells}
    found: dict[ContrastKind, list[Table]] = {}
    for kind in FURTHER:
        if kind in BETWEEN_ARMS and comparison.reference not in environments:
            continue  # the main tables compare all arms with that one
        groups: dict[str, list[tuple[Cell, Cell, Contrast]]] = {}
        for contrast in comparison.contrasts:
            if contrast.kind == kind:
                candidate = by_name[contrast.candidate.arm, contrast.candidate.case]
                reference = by_name[contrast.reference.arm, contrast.reference.case]
                title = ", ".join(word for word in _group(reference, without=kind) if word)
                groups.setdefault(title, []).append((candidate, reference, contrast))
        tables = [_further(kind, title, members) for title, members in groups.items()]
        if tables:
            found[kind] = tables
    return found


def _group(cell: Cell, *, without: str = "") -> tuple[str, ...]:
    """What the title of a table says: all but method, environment and mode."""
    parts = {
        "size": f"{cell.model}-{cell.data}",
        "api": cell.api,
        "input": cell.input,
        "device": "" if cell.device == "cpu" else cell.device,
        "knobs": cell.knobs,
        "workload": cell.workload or "",
    }
    return tuple(value for name, value in parts.items() if name != without)


def _against_reference(comparison: Comparison) -> dict[tuple[str, str, bool], Contrast]:
    """Contrasts by candidate's arm, case, and whether it is the one as installed.

    An arm that is the reference meets every other arm once, so that the two lookups agree.
    """
    by_arm = "/" in comparison.reference
    found = {}
    for contrast in comparison.contrasts:
        side = contrast.candidate
        if by_arm and contrast.kind in BETWEEN_ARMS:
            found[side.arm, side.case, False] = contrast
        elif contrast.kind in {"as_installed", "version"}:
            found[side.arm, side.case, contrast.kind == "as_installed"] = contrast
    return found


@dataclass(frozen=True, kw_only=True)
class _Line:
    """Cells of one method that stand together, by environment."""

    method: str
    what: str  # the mode, or that they are as installed, or both
    installed: bool
    cells: Mapping[str, Cell]


def _lines(members: Sequence[Cell], comparison: Comparison) -> Iterator[_Line]:
    """As installed first, then each mode; no two cells are compared in two lines.

    Environments that start in the reference's own mode meet it in the same cells as installed and
    in that mode: one line says both.
    """
    reference = comparison.reference
    installed = any(contrast.kind == "as_installed" for contrast in comparison.contrasts)
    for method in dict.fromkeys(cell.method for cell in members):
        here = [cell for cell in members if cell.method == method]
        native = {cell.environment: cell for cell in here if cell.native}
        own = native[reference].mode if installed and reference in native else None
        both = {key for key, cell in native.items() if cell.mode == own} - {reference}
        apart = native.keys() - both - {reference}
        if own and apart:
            cells = {key: cell for key, cell in native.items() if key not in both}
            yield _Line(method=method, what="as installed *", installed=True, cells=cells)
        if both:
            cells = {key: cell for key, cell in native.items() if key not in apart}
            yield _Line(method=method, what=f"as installed, {own} *", installed=True, cells=cells)
        for mode in dict.fromkeys(cell.mode for cell in here):
            told = both if mode == own else set()
            cells = {cell.environment: cell for cell in here if cell.mode == mode}
            left = {key: cell for key, cell in cells.items() if key not in told}
            if not told or left.keys() - {reference}:
                yield _Line(method=method, what=mode, installed=False, cells=left)


def _side_by_side(
    title: str,
    members: Sequence[Cell],
    contrasts: Mapping[tuple[str, str, bool], Contrast],
    comparison: Comparison,
    environments: Sequence[str],
) -> Table:
    other = next(name for name in environments if name != comparison.reference)
    rows = []
    for line in _lines(members, comparison):
        candidate = line.cells.get(other)
        key = (candidate.arm, candidate.case, line.installed) if candidate else None
        times = [_time(line.cells.get(name)) for name in environments]
        rows.append(_row((line.method, line.what), times, contrasts.get(key) if key else None))
    return Table(
        title=title,
        labels=("method", "mode"),
        headers=(*environments, "ratio", "95% interval", "verdict"),
        rows=tuple(rows),
    )


def _below_each_other(
    title: str,
    members: Sequence[Cell],
    contrasts: Mapping[tuple[str, str, bool], Contrast],
    comparison: Comparison,
    environments: Sequence[str],
) -> Table:
    rows = []
    for line in _lines(members, comparison):
        for name in environments:
            cell = line.cells.get(name)
            if cell is None:
                continue
            labels = (line.method, line.what, name)
            contrast = contrasts.get((cell.arm, cell.case, line.installed))
            if comparison.reference in {name, cell.arm} and contrast is None:
                rows.append(
                    Row(
                        labels=labels,
                        cells=(_time(cell), words.NOTHING, words.NOTHING, "reference"),
                    )
                )
            else:
                rows.append(_row(labels, [_time(cell)], contrast))
    alone = not contrasts
    return Table(
        title=title,
        labels=("method", "mode", "environment"),
        headers=("time",) if alone else ("time", "ratio", "95% interval", "verdict"),
        rows=tuple(Row(labels=row.labels, cells=row.cells[:1]) for row in rows)
        if alone
        else tuple(rows),
    )


def _further(
    kind: ContrastKind, title: str, members: Iterable[tuple[Cell, Cell, Contrast]]
) -> Table:
    labels = tuple(name for name in ("method", "environment", "mode") if name != kind)
    members = list(members)
    candidate, reference, _ = members[0]
    return Table(
        title=f"{words.KINDS[kind]}: {title}",
        labels=labels,
        headers=(
            str(getattr(reference, kind) or "first"),
            str(getattr(candidate, kind) or "other"),
            "ratio",
            "95% interval",
            "verdict",
        ),
        rows=tuple(
            _row(
                tuple(str(getattr(reference, name)) for name in labels),
                [_time(reference), _time(candidate)],
                contrast,
            )
            for candidate, reference, contrast in members
        ),
    )


def _time(cell: Cell | None) -> str:
    shown = words.seconds(cell.seconds if cell else None)
    return f"{shown} {UNPROVEN}" if cell is not None and cell.unproven else shown


def _row(labels: tuple[str, ...], times: Sequence[str], contrast: Contrast | None) -> Row:
    if contrast is None:
        return Row(labels=labels, cells=(*times, words.NOTHING, words.NOTHING, "not compared"))
    # Cells without a number are listed with their reasons, once for all tables.
    both = contrast.candidate.processes > 0 and contrast.reference.processes > 0
    reason = f"{words.verdict(contrast)}, {contrast.reason}" if contrast.reason and both else None
    return Row(
        labels=labels,
        cells=(*times, words.ratio(contrast), words.interval(contrast), words.verdict(contrast)),
        state=contrast.state,
        q=contrast.q,
        remarks=tuple(remark for remark in (reason, *contrast.notes) if remark),
    )
