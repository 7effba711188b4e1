"""The contrasts within an environment, axis by axis: tables, and one line of counts for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.model import axes
from orchestrator.model.cell import split_knobs
from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.model.names import CONTRASTS
from orchestrator.report import words
from orchestrator.report.rows import Draft, finished
from orchestrator.report.tables import DEFAULT, Table, group_of, judgement, own_knobs, titled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.names import ContrastKind
    from orchestrator.report.cells import Cell

# Kinds that the main tables show.
_MAIN: Final[frozenset[ContrastKind]] = frozenset({"as_installed", "version"})


class Compared(NamedTuple):
    """A contrast with its cells."""

    candidate: Cell
    reference: Cell
    contrast: Contrast


def level(cell: Cell, contrast: Contrast) -> str:
    """What a cell has in the one thing in which it differs: `eager`, `GPU`, `batch_size=64`."""
    own = value(cell, contrast)
    match contrast.kind:
        case "knob":
            return words.knobs(f"{contrast.knob}={own or DEFAULT}")
        case "device":
            return own.upper()
        case _:
            return own or "first"


def value(cell: Cell, contrast: Contrast) -> str:
    """The same as the advice names it: empty for a knob that is not turned, or the first file."""
    return axes.values(cell).get(axes.of_contrast(contrast), "")


def compared(cells: Sequence[Cell], comparison: Comparison) -> dict[ContrastKind, list[Compared]]:
    """The contrasts that the main tables do not show, kind by kind."""
    by_name = {(cell.arm, cell.case): cell for cell in cells}
    environments = {cell.environment for cell in cells}
    found: dict[ContrastKind, list[Compared]] = {}
    for kind in CONTRASTS:
        if kind in _MAIN or (kind in BETWEEN_ARMS and comparison.reference not in environments):
            continue  # the main tables compare all arms with an arm that is the reference
        members = [
            Compared(
                by_name[contrast.candidate.arm, contrast.candidate.case],
                by_name[contrast.reference.arm, contrast.reference.case],
                contrast,
            )
            for contrast in comparison.contrasts
            if contrast.kind == kind
        ]
        if members:
            found[kind] = members
    return found


def further_tables(cells: Sequence[Cell], comparison: Comparison) -> list[Table]:
    """A table a reference, size, api and input; each kind that the main tables do not show.

    Cases that differ in knobs alone stand in one table.
    """
    groups: dict[tuple[str, ...], list[Compared]] = {}
    for kind, members in compared(cells, comparison).items():
        for item in members:
            if kind == "knob":
                against = item.reference.knobs
            else:
                against = level(item.reference, item.contrast)
            group = group_of(item.reference, without=kind)
            groups.setdefault((kind, against, *group), []).append(item)
    return [_table(members, comparison) for members in groups.values()]


def shown(cells: Sequence[Cell], comparison: Comparison) -> set[tuple[str, str]]:
    """Arm and case of every cell that stands in one of the further tables."""
    return {
        (side.arm, side.case)
        for members in compared(cells, comparison).values()
        for item in members
        for side in (item.candidate, item.reference)
    }


def counts(cells: Sequence[Cell], comparison: Comparison) -> list[str]:
    """`eager against graph: 3 slower, 1 unclear`, one a pair of values."""
    groups: dict[str, list[Contrast]] = {}
    for members in compared(cells, comparison).values():
        for item in members:
            pair = f"{level(item.candidate, item.contrast)} against "
            pair += level(item.reference, item.contrast)
            groups.setdefault(pair, []).append(item.contrast)
    return [f"{pair}: {words.counted(members)}" for pair, members in groups.items()]


def _table(members: Sequence[Compared], comparison: Comparison) -> Table:
    kind = members[0].contrast.kind
    references = [item.reference for item in members]
    against = _against(members)
    levels = list(dict.fromkeys(level(item.candidate, item.contrast) for item in members))
    alone = len(levels) == 1
    # Whether the candidate's value stands in the header or in every row.
    parts = [name for name in ("method", "environment", "mode") if name != kind]
    turned = kind != "knob" and len({cell.knobs for cell in references}) > 1
    own_label = own_knobs(references)
    rows = []
    for item in members:
        labels = [str(getattr(item.reference, name)) for name in parts]
        if turned:
            labels[1:1] = own_label(item.reference)
        if not alone:
            labels.insert(0, level(item.candidate, item.contrast))
        rows.append(
            Draft(
                labels=tuple(labels),
                times=(item.reference, item.candidate),
                contrast=item.contrast,
            )
        )
    if turned:
        parts.insert(1, "knobs")
    title = f"{levels[0]} against {against}" if alone else f"against {against}"
    return Table(
        title=f"{title}: {_title(members)}",
        labels=tuple(parts) if alone else (kind, *parts),
        headers=(against, levels[0] if alone else "time", *judgement(comparison)),
        rows=finished(rows),
    )


def _against(members: Sequence[Compared]) -> str:
    """The reference's value: of one knob, or of all that the candidates turn."""
    first = members[0]
    names = {item.contrast.knob for item in members}
    if len(names) == 1:
        return level(first.reference, first.contrast)
    turned = split_knobs(first.reference.knobs)
    return "+".join(f"{name}={turned[name]}" for name in turned if name in names) or DEFAULT


def _title(members: Sequence[Compared]) -> str:
    """What both cells of all contrasts have in common, beside what the rows say."""
    kind = members[0].contrast.kind
    references = [item.reference for item in members]
    if kind != "knob":
        return titled(group_of(references[0], without=kind), references)
    names = {item.contrast.knob for item in members}
    turned = split_knobs(references[0].knobs)
    others = "+".join(f"{name}={turned[name]}" for name in turned if name not in names)
    return ", ".join(part for part in (*group_of(references[0]), words.knobs(others)) if part)
