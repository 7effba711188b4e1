"""The cells of a merged table, each with its time, in the order in which they are shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.model.comparison import Comparison

_IDENTITY = ["environment", "api", "mode", "workload", "native"]
_CASE = ["model", "data", "input", "method", "device", "knobs"]
PHASES = ["import_s", "data_s", "build_s", "first_call_s"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One arm of one case.

    `seconds`: median over processes; None where there is no number, or several machines had a part.
    """

    arm: str
    case: str
    environment: str
    api: str
    mode: str
    workload: str | None
    native: bool
    model: str
    data: str
    input: str
    method: str
    device: str
    knobs: str
    processes: int  # with a number
    seconds: float | None
    phases_s: tuple[float | None, ...]  # as PHASES, median over processes
    executed_as: str | None
    gpu: str  # its name, where the case asks for one and a record tells it
    unproven: bool  # it has a number, and at least one of its processes may not have used the GPU


def read(frame: pd.DataFrame, comparison: Comparison) -> tuple[Cell, ...]:
    """Every planned cell, in the order of the table; its seconds are those of the comparison."""
    counting = frame[frame["counts"].to_numpy(dtype=bool)]
    ok = counting[counting["outcome"] == "ok"]
    times = ok.groupby(["arm", "case"], sort=False)[PHASES].median()
    sides = {(side.arm, side.case): side for side in comparison.cells}
    phases = {
        key: [_number(value) for value in row]
        for key, row in zip(times.index, times.to_numpy(), strict=True)
        if sides[key].machines == 1
    }
    loops = dict(zip(zip(ok["arm"], ok["case"], strict=True), ok["executed_as"], strict=True))
    on_gpu = ok[ok["device"] == "gpu"]
    names = dict(zip(zip(on_gpu["arm"], on_gpu["case"], strict=True), on_gpu["gpu"], strict=True))
    doubtful = on_gpu[on_gpu["proof"] != "gpu"]
    unproven = set(zip(doubtful["arm"], doubtful["case"], strict=True))
    first = counting.drop_duplicates(["arm", "case"])
    columns = ["arm", "case", *_IDENTITY, *_CASE]
    cells = []
    for values in zip(*(first[column] for column in columns), strict=True):
        facts = dict(zip(columns, values, strict=True))
        place = (facts["arm"], facts["case"])
        cells.append(
            Cell(
                **facts,
                processes=sides[place].processes,
                seconds=sides[place].seconds,
                phases_s=tuple(phases.get(place, [None] * len(PHASES))),
                executed_as=loops.get(place),
                gpu=names.get(place) or "",
                unproven=place in unproven,
            )
        )
    return tuple(cells)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
