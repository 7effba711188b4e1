"""Compares the losses of processes with the same seeds: within a cell, and across its arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
_COLUMNS: Final = [
    *("arm", "case", "knobs", *_PARTS),
    *("run_id", "round", "losses", "warmup_s", "timing_source", "timing_batch"),
    "iterations_done",
]


@dataclass(frozen=True, kw_only=True)
class _History:
    """The losses of one process; the first follows `before` iterations, each is of `every`."""

    block: tuple[str, int]
    before: int
    losses: NDArray[np.float64]
    source: str | None
    steps: int | None
    every: int = 1

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
    items = [_within(cell) for cell in cells]
    for scope, part in SCOPES.items():
        items += [_across(scope, *pair) for pair in _pairs(cells, _PARTS.index(part))]
    return Agreements(items=tuple(items))


def _cells(frame: pd.DataFrame) -> Iterator[_Cell]:
    counting = frame.loc[frame["counts"].to_numpy(dtype=bool), _COLUMNS]
    for (arm, case), rows in counting.groupby(["arm", "case"], sort=False):
        first = rows.iloc[0]
        half = split_knobs(first["knobs"]).get("precision") in HALVES
        yield _Cell(
            arm=str(arm),
            case=str(case),
            parts=tuple(first[part] for part in _PARTS),
            tolerance=HALF_TOLERANCE if half else TOLERANCE,
            histories={history.block: history for history in _histories(rows)},
        )


def _histories(rows: pd.DataFrame) -> Iterator[_History]:
    for run_id, number, losses, warmup, source, batch, steps in zip(
        rows["run_id"],
        rows["round"],
        rows["losses"],
        rows["warmup_s"],
        rows["timing_source"],
        rows["timing_batch"].fillna(1),
        rows["iterations_done"].astype(object),
        strict=True,
    ):
        if len(losses):
            yield _History(
                block=(str(run_id), int(number)),
                before=len(warmup),
                losses=np.array(losses, dtype=float),  # None becomes NaN
                source=source,
                steps=steps,
                every=int(batch),
            )


def _pairs(cells: Sequence[_Cell], part: int) -> Iterator[tuple[_Cell, _Cell]]:
    """Each cell, and the first one that differs from it in this part of its arm only."""
    first: dict[tuple[object, ...], _Cell] = {}
    for cell in cells:
        rest = (cell.case, *cell.parts[:part], *cell.parts[part + 1 :])
        other = first.setdefault(rest, cell)
        if other is not cell:
            yield cell, other


def _within(cell: _Cell) -> Agreement:
    histories = list(cell.histories.values())
    reason = _too_few(len(histories))
    compared = [] if reason else [_compare(histories, cell.tolerance)]
    return _agreement("processes", cell, cell, compared, count=len(histories), reason=reason)


def _too_few(histories: int) -> str | None:
    if histories == 0:
        return "no losses"
    return "one process only: nothing can be said" if histories == 1 else None


def _across(scope: Scope, cell: _Cell, other: _Cell) -> Agreement:
    """Process by process: those of one round."""
    shared = [block for block in cell.histories if block in other.histories]
    pairs = [(cell.histories[block], other.histories[block]) for block in shared]
    compared = [_compare(pair, cell.tolerance) for pair in pairs]
    reason = None if pairs else "no round in which both have losses"
    return _agreement(scope, cell, other, compared, count=len(pairs), reason=reason)


def _agreement(
    scope: Scope,
    cell: _Cell,
    other: _Cell,
    compared: Sequence[_Compared | None],
    *,
    count: int,
    reason: str | None,
) -> Agreement:
    """The worst of what was compared."""
    usable = [item for item in compared if item is not None]
    if not usable and reason is None:
        reason = "they did not compute the losses of the same iterations"
    differing = [item.first_differing for item in usable if item.first_differing is not None]
    diverging = [item.diverges_at for item in usable if item.diverges_at is not None]
    state: AgreementState = "diverging" if diverging else "close" if differing else "equal"
    sizes = [item.largest for item in usable]
    return Agreement(
        scope=scope,
        case=cell.case,
        arm=cell.arm,
        other=other.arm,
        state=state if usable else None,
        reason=reason,
        begins=min((item.begins for item in usable), default=None),
        first_differing=min(differing, default=None),
        diverges_at=min(diverging, default=None),
        largest=max((size for size in sizes if size is not None), default=None)
        if None not in sizes
        else None,
        tolerance=cell.tolerance,
        histories=count,
        iterations=min((item.iterations for item in usable), default=0),
    )


def _compare(histories: Sequence[_History], tolerance: float) -> _Compared | None:
    """How far apart they are at each iteration that all of them have; None where there is none.

    Two losses that are both no number agree; one that is none differs from every number.
    """
    first = histories[0]
    start = max(history.before for history in histories)
    end = min(history.before + len(history.losses) for history in histories)
    if end <= start or not all(first.alike(history) for history in histories):
        return None
    losses = np.array(
        [history.losses[start - history.before : end - history.before] for history in histories]
    )
    lost = np.isnan(losses)
    torn = lost.any(axis=0) & ~lost.all(axis=0)
    filled = np.where(lost, 0.0, losses)
    width = np.ptp(filled, axis=0)
    size = np.abs(filled).max(axis=0)
    relative = np.divide(width, size, out=np.zeros_like(width), where=size > 0)
    relative[torn] = np.inf
    return _Compared(
        first_differing=_first(relative > 0, start, first.every),
        diverges_at=_first(relative > tolerance, start, first.every),
        largest=None if torn.any() else float(relative.max()),
        begins=start + 1,
        iterations=end - start,
    )


def _first(where: NDArray[np.bool_], start: int, every: int) -> int | None:
    return start + (int(where.argmax()) + 1) * every if where.any() else None
