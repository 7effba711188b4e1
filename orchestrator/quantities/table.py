"""A merged table in, the quantities and findings of each cell out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model.quantities import Amount, CellQuantities, Finding, Quantities
from orchestrator.quantities.findings import of_cell
from orchestrator.quantities.processes import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.quantities.processes import Shown

# Quantities that a column has as they are, and the columns.
COLUMNS: Final = {
    "import_s": "import_s",
    "data_s": "data_s",
    "build_s": "build_s",
    "first_call_s": "first_call_s",
    "warmup_iterations": "warmup_iterations",
    "steady_s": "median_s",
    "peak_rss_bytes": "peak_rss_bytes",
    "traces": "traces",
    "retraces": "retraces",
}


def of(frame: pd.DataFrame) -> Quantities:
    """Quantities and findings over the counting processes of each cell that are `ok`."""
    counting = frame[frame["counts"].to_numpy(dtype=bool)]
    ok = counting[(counting["outcome"] == "ok").to_numpy(dtype=bool)]
    shown = look(ok)
    places: dict[tuple[str, str], list[int]] = {
        cell: [] for cell in dict.fromkeys(zip(counting["arm"], counting["case"], strict=True))
    }
    for place, cell in enumerate(zip(ok["arm"], ok["case"], strict=True)):
        places[cell].append(place)
    groups = list(places.values())
    columns = {
        name: ok[column].to_numpy(dtype=float, na_value=np.nan) for name, column in COLUMNS.items()
    }
    amounts = {
        name: _amounts(values, groups) for name, values in (columns | _measured(shown)).items()
    }
    machines = ok["machine"].to_numpy(dtype=object)
    cells: list[CellQuantities] = []
    findings: list[Finding] = []
    for number, ((arm, case), rows) in enumerate(places.items()):
        processes = [shown[row] for row in rows]
        several = len(set(machines[rows])) > 1
        own = {
            name: None if several and name.endswith("_s") else each[number]
            for name, each in amounts.items()
        }
        cells.append(
            CellQuantities(
                arm=arm,
                case=case,
                processes=len(rows),
                unsettled=sum(one.state == "no steady state" for one in processes),
                **own,
            )
        )
        findings += of_cell(arm, case, processes)
    return Quantities(cells=tuple(cells), findings=tuple(findings))


def _measured(shown: Sequence[Shown]) -> dict[str, NDArray[np.float64]]:
    """(processes,): what is computed from the values of each; NaN where that was not possible."""
    spikes = np.array([one.spikes[:4] if one.spikes else (np.nan,) * 4 for one in shown])
    names = ("p50_s", "p95_s", "p99_s", "max_s")  # as they stand first
    slopes = {
        "slope_s": [one.time.an_iteration if one.time else np.nan for one in shown],
        "memory_slope_bytes": [one.memory.an_iteration if one.memory else np.nan for one in shown],
    }
    return {
        **dict(zip(names, spikes.reshape(-1, len(names)).T, strict=True)),
        **{name: np.array(values, dtype=float) for name, values in slopes.items()},
    }


def _amounts(values: NDArray[np.float64], groups: Sequence[Sequence[int]]) -> list[Amount | None]:
    """Of the processes of each cell that have a value; None where none has."""
    places = np.concatenate([np.array(group, dtype=np.intp) for group in groups])
    cell = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    known = ~np.isnan(values[places])
    places, cell = places[known], cell[known]
    ranked = values[places][np.lexsort((values[places], cell))]
    count = np.bincount(cell, minlength=len(groups))
    start = np.cumsum(count) - count
    some = np.flatnonzero(count)
    first, number = start[some], count[some]
    middle = (ranked[first + (number - 1) // 2] + ranked[first + number // 2]) / 2
    found: list[Amount | None] = [None] * len(groups)
    each = (some, middle, ranked[first], ranked[first + number - 1], number)
    for place, median, low, high, processes in zip(*(one.tolist() for one in each), strict=True):
        found[place] = Amount(median=median, low=low, high=high, processes=processes)
    return found
