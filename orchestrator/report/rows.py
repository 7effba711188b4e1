"""The rows of a table, all of one column in one unit and with one number of digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.report import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.comparison import Contrast
    from orchestrator.model.names import State
    from orchestrator.report.cells import Cell

# Behind a time that is not proven to be one of the GPU.
UNPROVEN: Final = "?"


@dataclass(frozen=True, kw_only=True)
class Row:
    """Labels tell which cells these are; `remarks` is what the cells have no room for."""

    labels: tuple[str, ...]
    cells: tuple[str, ...]
    state: State | None = None
    q: float | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A row before its column is known: cells with their times, and how they compare.

    `verdict` stands where there is no contrast to have one.
    """

    labels: tuple[str, ...]
    times: tuple[Cell | None, ...]
    contrast: Contrast | None = None
    verdict: str = "not compared"


def finished(drafts: Sequence[Draft], *, judged: bool = True) -> tuple[Row, ...]:
    """The rows as they are shown; not `judged`, they have their times alone."""
    columns = zip(*(draft.times for draft in drafts), strict=True)
    times = list(zip(*(_times(column) for column in columns), strict=True))
    if not judged:
        return tuple(
            Row(labels=draft.labels, cells=shown)
            for draft, shown in zip(drafts, times, strict=True)
        )
    decimals = words.decimals([draft.contrast for draft in drafts if draft.contrast])
    return tuple(_row(draft, shown, decimals) for draft, shown in zip(drafts, times, strict=True))


def _times(column: Sequence[Cell | None]) -> list[str]:
    shown = words.times([cell.seconds if cell else None for cell in column])
    return [
        f"{text} {UNPROVEN}" if cell is not None and cell.unproven else text
        for cell, text in zip(column, shown, strict=True)
    ]


def _row(draft: Draft, times: tuple[str, ...], decimals: int | None) -> Row:
    contrast = draft.contrast
    if contrast is None:
        cells = (*times, words.NOTHING, words.NOTHING, draft.verdict)
        return Row(labels=draft.labels, cells=cells)
    # Cells without a number are listed with their reasons, once for all tables.
    both = contrast.candidate.processes > 0 and contrast.reference.processes > 0
    reason = f"{words.verdict(contrast)}, {contrast.reason}" if contrast.reason and both else None
    return Row(
        labels=draft.labels,
        cells=(
            *times,
            words.ratio(contrast, decimals=decimals),
            words.interval(contrast, decimals=decimals),
            words.verdict(contrast),
        ),
        state=contrast.state,
        q=contrast.q,
        remarks=tuple(remark for remark in (reason, *contrast.notes) if remark),
    )
