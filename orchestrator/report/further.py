"""The contrasts within an environment, axis by axis: tables, and one line of counts for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.model.cell import split_knobs
from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.model.names import CONTRASTS
from orchestrator.report import words
from orchestrator.report.rows import Draft, finished
from orchestrator.report.tables import Table, group_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.names import ContrastKind
    from orchestrator.report.cells import Cell

# Kinds that the main tables show.
_MAIN: Final[frozenset[ContrastKind]] = frozenset({"as_installed", "version"})
DEFAULT: Final = "default"


class Compared(NamedTuple):
    """A contrast with its cells."""

    candidate: Cell
    reference: Cell
    contrast: Contrast


def level(cell: Cell, contrast: Contrast) -> str:
    """What a cell has in the one thing in which it differs: `eager`, `GPU`, `batch_size=64`."""
    match contrast.kind:
        case "knob":
            value = split_knobs(cell.knobs).get(contrast.knob)
            return f"{contrast.knob}={value or DEFAULT}"
        case "device":
            return cell.device.upper()
        case "as_installed" | "version":
            return cell.environment
        case "mode" | "api" | "workload" | "input" | "method":
            return str(getattr(cell, contrast.kind) or "first")


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
    """A table a reference, size, api and input; each kind that the main tables do not show."""
    groups: dict[tuple[str, str, str], list[Compared]] = {}
    for kind, members in compared(cells, comparison).items():
        for item in members:
            title = ", ".join(word for word in _group(item) if word)
            knob = item.contrast.knob or kind
            key = (knob, level(item.reference, item.contrast), title)
            groups.setdefault(key, []).append(item)
    return [_table(title, members) for (_, _, title), members in groups.items()]


def counts(cells: Sequence[Cell], comparison: Comparison) -> list[str]:
    """`eager against graph: 3 slower, 1 unclear`, one a pair of values."""
    groups: dict[str, list[Contrast]] = {}
    for members in compared(cells, comparison).values():
        for item in members:
            pair = f"{level(item.candidate, item.contrast)} against "
            pair += level(item.reference, item.contrast)
            groups.setdefault(pair, []).append(item.contrast)
    return [f"{pair}: {words.counted(members)}" for pair, members in groups.items()]


def _group(item: Compared) -> tuple[str, ...]:
    """The title: what both cells have in common, beside method, environment and mode."""
    if item.contrast.kind == "knob":
        knobs = split_knobs(item.reference.knobs)
        knobs.pop(item.contrast.knob, None)
        others = "+".join(f"{name}={value}" for name, value in knobs.items())
        return (*group_of(item.reference, without="knobs"), others)
    return group_of(item.reference, without=item.contrast.kind)


def _table(title: str, members: Sequence[Compared]) -> Table:
    kind = members[0].contrast.kind
    reference = level(members[0].reference, members[0].contrast)
    levels = list(dict.fromkeys(level(item.candidate, item.contrast) for item in members))
    alone = len(levels) == 1
    # Whether the candidate's value stands in the header or in every row.
    names = tuple(name for name in ("method", "environment", "mode") if name != kind)
    return Table(
        title=f"{levels[0]} against {reference}: {title}"
        if alone
        else f"against {reference}: {title}",
        labels=names if alone else (kind, *names),
        headers=(reference, levels[0] if alone else "time", "ratio", "95% interval", "verdict"),
        rows=finished(
            [
                Draft(
                    labels=(
                        *(() if alone else (level(item.candidate, item.contrast),)),
                        *(str(getattr(item.reference, name)) for name in names),
                    ),
                    times=(item.reference, item.candidate),
                    contrast=item.contrast,
                )
                for item in members
            ]
        ),
    )
