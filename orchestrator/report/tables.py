"""What stands in the tables of a report, whether they are drawn in a terminal or in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.model.cell import split_knobs
from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.report import words
from orchestrator.report.rows import Draft, finished

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.report.cells import Cell
    from orchestrator.report.rows import Row

# Only two environments fit side by side.
SIDE_BY_SIDE: Final = 2
DEFAULT: Final = "default"  # a knob that is not turned


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
    cells: Sequence[Cell],
    comparison: Comparison,
    environments: Sequence[str],
    *,
    told: AbstractSet[tuple[str, str]] = frozenset(),
) -> list[Table]:
    """Every measured cell with its contrast against the reference: a table a size, api, input.

    `told`: arm and case of cells that stand in other tables as well. Where none is compared with
    the reference, a table of such cells alone would say nothing new.
    """
    contrasts = _against_reference(comparison)
    if comparison.contrasts and not contrasts and len(environments) > 1:
        return []  # only other kinds were asked for, and they have tables of their own
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(group_of(cell), []).append(cell)
    if not contrasts:
        groups = {
            group: members
            for group, members in groups.items()
            if any((cell.arm, cell.case) not in told for cell in members)
        }
    shown = [name for name in environments if any(cell.environment == name for cell in cells)]
    # The reference stands to the left, as in `right time / left time`.
    shown.sort(key=lambda name: name != comparison.reference)
    side_by_side = len(shown) == SIDE_BY_SIDE and comparison.reference in shown
    build = _side_by_side if side_by_side else _below_each_other
    return [
        *_across_apis(cells, comparison),
        *(
            build(titled(group, members), members, contrasts, comparison, shown)
            for group, members in groups.items()
        ),
    ]


def _across_apis(cells: Sequence[Cell], comparison: Comparison) -> Iterator[Table]:
    """As installed, where an environment without tf.keras meets the reference in another api."""
    by_name = {(cell.arm, cell.case): cell for cell in cells}
    groups: dict[tuple[str, ...], list[Draft]] = {}
    for contrast in comparison.contrasts:
        candidate = by_name[contrast.candidate.arm, contrast.candidate.case]
        reference = by_name[contrast.reference.arm, contrast.reference.case]
        if contrast.kind == "as_installed" and candidate.api != reference.api:
            row = Draft(
                labels=(candidate.method, f"{candidate.environment} {candidate.api}"),
                times=(reference, candidate),
                contrast=contrast,
            )
            name = f"{reference.environment} {reference.api}"
            shared = (*group_of(reference, without="api"), words.knobs(reference.knobs))
            groups.setdefault((name, *shared), []).append(row)
    for (name, *group), rows in groups.items():
        yield Table(
            title=f"as installed: {', '.join(part for part in group if part)}",
            labels=("method", "environment"),
            headers=(name, "time", *judgement(comparison)),
            rows=finished(rows),
        )


def judgement(comparison: Comparison) -> tuple[str, str, str]:
    """The headers of what a contrast shows."""
    return "ratio", f"{words.coverage(comparison.alpha)} interval", "verdict"


def group_of(cell: Cell, *, without: str = "") -> tuple[str, ...]:
    """What the title of a table says: all but method, environment, mode and what varies in it."""
    parts = {
        "size": f"{cell.model}-{cell.data}",
        "api": cell.api,
        "input": cell.input,
        "device": "" if cell.device == "cpu" else cell.device,
        "workload": cell.workload or "",
    }
    return tuple(value for name, value in parts.items() if name != without)


def titled(group: Sequence[str], members: Sequence[Cell]) -> str:
    """A group, and the knobs that all of its cells have turned alike."""
    return ", ".join(part for part in (*group, words.knobs(shared_knobs(members))) if part)


def shared_knobs(members: Sequence[Cell]) -> str:
    """The knobs that all of these cells have turned alike: `batches=50+compiled=no`."""
    first, *others = [split_knobs(cell.knobs).items() for cell in members]
    return "+".join(f"{name}={value}" for name, value in first if _in_all((name, value), others))


def own_knobs(members: Sequence[Cell]) -> Callable[[Cell], tuple[str, ...]]:
    """The label of each of these cells by its own knobs; none where all have the same."""
    if len({item.knobs for item in members}) == 1:
        return lambda _: ()
    shared = split_knobs(shared_knobs(members))

    def label(cell: Cell) -> tuple[str, ...]:
        turned = split_knobs(cell.knobs).items()
        own = [f"{name}={value}" for name, value in turned if name not in shared]
        return (words.knobs("+".join(own)) or DEFAULT,)

    return label


def label_names(members: Sequence[Cell]) -> tuple[str, ...]:
    """What the first labels of a row of these cells are: the method, and the knobs if they vary."""
    return ("method", "knobs") if len({cell.knobs for cell in members}) > 1 else ("method",)


def _in_all(item: tuple[str, str], others: Sequence[Collection[tuple[str, str]]]) -> bool:
    return all(item in other for other in others)


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

    labels: tuple[str, ...]  # the method, and the knobs where cells differ in them
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
    own_label = own_knobs(members)
    lines: dict[tuple[str, str], list[Cell]] = {}
    for cell in members:
        lines.setdefault((cell.method, cell.knobs), []).append(cell)
    for (method, _), here in lines.items():
        labels = (method, *own_label(here[0]))
        native = {cell.environment: cell for cell in here if cell.native}
        own = native[reference].mode if installed and reference in native else None
        both = {key for key, cell in native.items() if cell.mode == own} - {reference}
        apart = native.keys() - both - {reference}
        if own and apart:
            cells = {key: cell for key, cell in native.items() if key not in both}
            yield _Line(labels=labels, what="as installed *", installed=True, cells=cells)
        if both:
            cells = {key: cell for key, cell in native.items() if key not in apart}
            yield _Line(labels=labels, what=f"as installed, {own} *", installed=True, cells=cells)
        for mode in dict.fromkeys(cell.mode for cell in here):
            told = both if mode == own else set()
            cells = {cell.environment: cell for cell in here if cell.mode == mode}
            left = {key: cell for key, cell in cells.items() if key not in told}
            if not told or left.keys() - {reference}:
                yield _Line(labels=labels, what=mode, installed=False, cells=left)


def _side_by_side(
    title: str,
    members: Sequence[Cell],
    contrasts: Mapping[tuple[str, str, bool], Contrast],
    comparison: Comparison,
    environments: Sequence[str],
) -> Table:
    other = next(name for name in environments if name != comparison.reference)
    drafts = []
    for line in _lines(members, comparison):
        candidate = line.cells.get(other)
        key = (candidate.arm, candidate.case, line.installed) if candidate else None
        drafts.append(
            Draft(
                labels=(*line.labels, line.what),
                times=tuple(line.cells.get(name) for name in environments),
                contrast=contrasts.get(key) if key else None,
            )
        )
    return Table(
        title=title,
        labels=(*label_names(members), "mode"),
        headers=(*environments, *judgement(comparison)),
        rows=finished(drafts),
    )


def _below_each_other(
    title: str,
    members: Sequence[Cell],
    contrasts: Mapping[tuple[str, str, bool], Contrast],
    comparison: Comparison,
    environments: Sequence[str],
) -> Table:
    drafts = []
    for line in _lines(members, comparison):
        for name in environments:
            cell = line.cells.get(name)
            if cell is None:
                continue
            contrast = contrasts.get((cell.arm, cell.case, line.installed))
            refers = comparison.reference in {name, cell.arm} and contrast is None
            drafts.append(
                Draft(
                    labels=(*line.labels, line.what, name),
                    times=(cell,),
                    contrast=contrast,
                    verdict="reference" if refers else "not compared",
                )
            )
    judged = bool(contrasts)
    return Table(
        title=title,
        labels=(*label_names(members), "mode", "environment"),
        headers=("time", *judgement(comparison)) if judged else ("time",),
        rows=finished(drafts, judged=judged),
    )
