"""A merged table in, the quantities and findings of each cell out."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model.quantities import Amount, CellQuantities, Finding, Quantities
from orchestrator.quantities.findings import of_cell
from orchestrator.quantities.processes import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

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
        (arm, case): []
        for arm, case in counting[["arm", "case"]].drop_duplicates().itertuples(index=False)
    }
    for place, cell in enumerate(zip(ok["arm"], ok["case"], strict=True)):
        places[cell].append(place)
    columns = {
        name: ok[column].to_numpy(dtype=float, na_value=np.nan) for name, column in COLUMNS.items()
    }
    machines = ok["machine"].to_numpy(dtype=object)
    cells: list[CellQuantities] = []
    findings: list[Finding] = []
    for (arm, case), rows in places.items():
        processes = [shown[row] for row in rows]
        amounts = {name: _amount(values[rows]) for name, values in columns.items()}
        amounts |= _measured(processes)
        if len(set(machines[rows])) > 1:
            amounts = {name: None if name.endswith("_s") else amounts[name] for name in amounts}
        cells.append(
            CellQuantities(
                arm=arm,
                case=case,
                processes=len(rows),
                unsettled=sum(shown.state == "no steady state" for shown in processes),
                **amounts,
            )
        )
        findings += of_cell(arm, case, processes)
    return Quantities(cells=tuple(cells), findings=tuple(findings))


def _measured(processes: Sequence[Shown]) -> dict[str, Amount | None]:
    """What is computed from the values of each process."""
    spikes = [shown.spikes for shown in processes if shown.spikes is not None]
    return {
        "p50_s": _amount(item.p50_s for item in spikes),
        "p95_s": _amount(item.p95_s for item in spikes),
        "p99_s": _amount(item.p99_s for item in spikes),
        "max_s": _amount(item.max_s for item in spikes),
        "slope_s": _amount(shown.time.an_iteration for shown in processes if shown.time),
        "memory_slope_bytes": _amount(
            shown.memory.an_iteration for shown in processes if shown.memory
        ),
    }


def _amount(values: Iterable[float]) -> Amount | None:
    known = [float(value) for value in values if not math.isnan(value)]
    if not known:
        return None
    return Amount(
        median=statistics.median(known), low=min(known), high=max(known), processes=len(known)
    )
