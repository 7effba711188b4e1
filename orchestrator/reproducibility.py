"""Compares the losses of processes with the same seeds: within a cell, and across its arms."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from orchestrator.model.cell import split_knobs
from orchestrator.model.reproducibility import HALF_TOLERANCE, TOLERANCE, Agreement, Agreements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.model.reproducibility import AgreementState, Scope

HALVES: Final = frozenset({"mixed_float16", "mixed_bfloat16", "float16", "bfloat16"})
# What two arms may differ in, all else being equal.
SCOPES: Final[dict[Scope, str]] = {"version": "environment", "mode": "mode", "api": "api"}
_PARTS: Final = ("environment", "api", "mode", "workload")
_AT_ONCE: Final = 1_000  # groups of histories


class _Row(NamedTuple):
    """What is read of one process, by the names of the columns."""

    arm: str
    case: str
    knobs: str
    environment: str
    api: str
    mode: str
    workload: str | None
    run_id: str
    round: int
    losses: NDArray[np.float64]
    warmup_s: NDArray[np.float64]
    timing_source: str | None
    timing_batch: int
    iterations_done: int | None


class _History(NamedTuple):
    """The losses of one process; the first follows `before` iterations, each is of `every`."""

    block: tuple[str, int]
    before: int
    losses: NDArray[np.float64]
    source: str | None
    steps: int | None
    every: int = 1

    @property
    def shape(self) -> tuple[object, ...]:
        """Two of one shape are alike, and have the same iterations."""
        return self.before, len(self.losses), self.every, self.source, self.steps

    def alike(self, other: _History) -> bool:
        """Whether places in both are iterations in both.

        A call that covers many steps has one loss: it is that of the same step only if both made
        the same calls.
        """
        if (self.every, other.every) != (1, 1):
            return (self.before, self.every) == (other.before, other.every)
        if "whole" not in {self.source, other.source}:
            return True
        return (self.before, self.steps) == (other.before, other.steps)


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One cell and its histories, by run and round."""

    arm: str
    case: str
    parts: tuple[str | None, ...]
    tolerance: float
    histories: dict[tuple[str, int], _History]


@dataclass(frozen=True)
class _Asked:
    """What is compared with what; `groups`: histories that belong together, compared as one."""

    scope: Scope
    cell: _Cell
    other: _Cell
    groups: list[list[_History]]
    count: int
    reason: str | None


class _Span(NamedTuple):
    """So many histories from the iteration after `start` others to `end`."""

    histories: int
    start: int
    end: int
    every: int

    def of(self, history: _History) -> NDArray[np.float64]:
        return history.losses[self.start - history.before : self.end - history.before]


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """How a few histories differ."""

    first_differing: int | None
    diverges_at: int | None
    largest: float | None
    begins: int
    iterations: int


def of(frame: pd.DataFrame) -> Agreements:
    """Every cell with itself; then each arm with the first that differs in one thing only."""
    cells = list(_cells(frame))
    asked = [_within(cell) for cell in cells]
    for scope, part in SCOPES.items():
        asked += [_across(scope, *pair) for pair in _pairs(cells, _PARTS.index(part))]
    compared = iter(_compare([(one, item.cell.tolerance) for item in asked for one in item.groups]))
    return Agreements(
        items=tuple(_agreement(item, list(islice(compared, len(item.groups)))) for item in asked)
    )


def _cells(frame: pd.DataFrame) -> Iterator[_Cell]:
    counting = frame.loc[frame["counts"].to_numpy(dtype=bool), list(_Row._fields)]
    counting = counting.assign(timing_batch=counting["timing_batch"].fillna(1)).astype(object)
    found: dict[tuple[str, str], _Cell] = {}
    for row in map(_Row._make, counting.itertuples(index=False, name=None)):
        cell = found.get((row.arm, row.case))
        if cell is None:
            half = split_knobs(row.knobs).get("precision") in HALVES
            cell = found[row.arm, row.case] = _Cell(
                arm=row.arm,
                case=row.case,
                parts=tuple(getattr(row, part) for part in _PARTS),
                tolerance=HALF_TOLERANCE if half else TOLERANCE,
                histories={},
            )
        if len(row.losses):
            block = row.run_id, row.round
            cell.histories[block] = _History(
                block=block,
                before=len(row.warmup_s),
                losses=row.losses,
                source=row.timing_source,
                steps=row.iterations_done,
                every=row.timing_batch,
            )
    yield from found.values()


def _pairs(cells: Sequence[_Cell], part: int) -> Iterator[tuple[_Cell, _Cell]]:
    """Each cell, and the first one that differs from it in this part of its arm only."""
    first: dict[tuple[object, ...], _Cell] = {}
    for cell in cells:
        rest = (cell.case, *cell.parts[:part], *cell.parts[part + 1 :])
        other = first.setdefault(rest, cell)
        if other is not cell:
            yield cell, other


def _within(cell: _Cell) -> _Asked:
    histories = list(cell.histories.values())
    reason = _too_few(len(histories))
    groups = [] if reason else [histories]
    return _Asked("processes", cell, cell, groups, count=len(histories), reason=reason)


def _too_few(histories: int) -> str | None:
    if histories == 0:
        return "no losses"
    return "one process only: nothing can be said" if histories == 1 else None


def _across(scope: Scope, cell: _Cell, other: _Cell) -> _Asked:
    """Process by process: those of one round."""
    shared = [block for block in cell.histories if block in other.histories]
    pairs = [[cell.histories[block], other.histories[block]] for block in shared]
    reason = None if pairs else "no round in which both have losses"
    return _Asked(scope, cell, other, pairs, count=len(pairs), reason=reason)


def _agreement(asked: _Asked, compared: Sequence[_Compared | None]) -> Agreement:
    """The worst of what was compared."""
    cell, reason = asked.cell, asked.reason
    usable = [item for item in compared if item is not None]
    if not usable and reason is None:
        reason = "they did not compute the losses of the same iterations"
    differing = [item.first_differing for item in usable if item.first_differing is not None]
    diverging = [item.diverges_at for item in usable if item.diverges_at is not None]
    state: AgreementState = "diverging" if diverging else "close" if differing else "equal"
    sizes = [item.largest for item in usable]
    return Agreement(
        scope=asked.scope,
        case=cell.case,
        arm=cell.arm,
        other=asked.other.arm,
        state=state if usable else None,
        reason=reason,
        begins=min((item.begins for item in usable), default=None),
        first_differing=min(differing, default=None),
        diverges_at=min(diverging, default=None),
        largest=max((size for size in sizes if size is not None), default=None)
        if None not in sizes
        else None,
        tolerance=cell.tolerance,
        histories=asked.count,
        iterations=min((item.iterations for item in usable), default=0),
    )


def _compare(groups: Sequence[tuple[Sequence[_History], float]]) -> list[_Compared | None]:
    """How far apart the histories of each group are; groups of one span are looked at together.

    None for a group without an iteration that all of its histories have.
    """
    found: list[_Compared | None] = [None] * len(groups)
    spans: dict[_Span, list[int]] = {}
    for place, (histories, _) in enumerate(groups):
        span = _span(histories)
        if span is not None:
            spans.setdefault(span, []).append(place)
    for span, alike in spans.items():
        for first in range(0, len(alike), _AT_ONCE):
            places = alike[first : first + _AT_ONCE]
            losses = np.array([[span.of(one) for one in groups[place][0]] for place in places])
            tolerances = np.array([groups[place][1] for place in places])
            for place, one in zip(places, _apart(losses, tolerances, span), strict=True):
                found[place] = one
    return found


def _span(histories: Sequence[_History]) -> _Span | None:
    """The iterations that all of them have; None where there are none."""
    first = histories[0]
    if all(history.shape == first.shape for history in histories):
        return _Span(len(histories), first.before, first.before + len(first.losses), first.every)
    start = max(history.before for history in histories)
    end = min(history.before + len(history.losses) for history in histories)
    if end <= start or not all(first.alike(history) for history in histories):
        return None
    return _Span(len(histories), start, end, first.every)


def _apart(
    losses: NDArray[np.float64], tolerances: NDArray[np.float64], span: _Span
) -> Iterator[_Compared]:
    """Of (groups, histories, iterations), a group each.

    Two losses that are both no number agree; one that is none differs from every number.
    """
    lost = np.isnan(losses)
    torn = lost.any(axis=1) & ~lost.all(axis=1)
    filled = np.where(lost, 0.0, losses)
    width = np.ptp(filled, axis=1)
    size = np.abs(filled).max(axis=1)
    relative = np.divide(width, size, out=np.zeros_like(width), where=size > 0)
    relative[torn] = np.inf
    differing = _firsts(relative > 0, span)
    diverging = _firsts(relative > tolerances[:, None], span)
    largest = relative.max(axis=1)
    for first_differing, diverges_at, most in zip(differing, diverging, largest, strict=True):
        yield _Compared(
            first_differing=first_differing,
            diverges_at=diverges_at,
            largest=float(most) if np.isfinite(most) else None,
            begins=span.start + span.every,
            iterations=span.end - span.start,
        )


def _firsts(where: NDArray[np.bool_], span: _Span) -> list[int | None]:
    """(groups,): the first iteration at which it holds, counted from 1."""
    firsts, found = where.argmax(axis=1), np.asarray(where.any(axis=1))
    return [
        span.start + (int(place) + 1) * span.every if some else None
        for place, some in zip(firsts, found, strict=True)
    ]
