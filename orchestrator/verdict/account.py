"""The account of every cell and job: what has a number, and what has none, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orchestrator.model import phrases
from orchestrator.model.comparison import Gap, Side

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.paired.cells import Cells


def sides(cells: Cells) -> list[Side]:
    """Every cell's median and variation over its processes, where they ran on one machine."""
    measured = cells.measured
    count = measured.sum(axis=1)
    some = np.maximum(count, 1)
    ranked = np.sort(cells.log_s, axis=1)  # NaN last
    rows = np.arange(len(count))
    middle = np.exp(ranked[rows, (some - 1) // 2]) / 2 + np.exp(ranked[rows, some // 2]) / 2
    # Relative to the longest, so that no square of an absurd time overflows.
    filled = np.where(measured, cells.log_s, -np.inf)
    longest = np.where(count, filled.max(axis=1, initial=-np.inf), 0.0)
    relative = np.exp(filled - longest[:, None])
    mean = relative.sum(axis=1) / some
    squares = np.where(measured, (relative - mean[:, None]) ** 2, 0.0).sum(axis=1)
    spread = np.sqrt(squares / np.maximum(count - 1, 1)) / np.where(count, mean, 1.0)
    machines = np.array(
        [len(np.unique(ran[there])) for ran, there in zip(cells.machine, measured, strict=True)],
        dtype=np.intp,
    )
    alone = machines == 1
    unsettled = (cells.unsettled & measured).sum(axis=1)
    return [
        Side(
            arm=cells.arms[cell],
            case=cells.cases[cell],
            seconds=float(middle[cell]) if np.isfinite(middle[cell]) and alone[cell] else None,
            processes=int(count[cell]),
            spread=float(spread[cell]) if count[cell] > 1 and alone[cell] else None,
            machines=int(machines[cell]),
            unsettled=int(unsettled[cell]),
        )
        for cell in range(len(count))
    ]


def gaps(frame: pd.DataFrame) -> tuple[Gap, ...]:
    """Cells without a single number, with each cause once; the log has the rest of a message."""
    counting = frame[frame["counts"].to_numpy(dtype=bool)]
    numbers = counting.groupby(["arm", "case"], sort=False)["median_s"].transform("count")
    empty = counting[(numbers == 0).to_numpy(dtype=bool)]
    causes = empty.groupby(
        ["arm", "case", "outcome", "failure_kind"], sort=False, dropna=False, as_index=False
    ).agg(reason=("reason", "first"), jobs=("key", "size"))
    return tuple(
        Gap(
            arm=str(arm),
            case=str(case),
            outcome=str(outcome),
            reason=phrases.first_line(reason),
            jobs=int(jobs),
        )
        for arm, case, outcome, reason, jobs in zip(
            causes["arm"],
            causes["case"],
            causes["outcome"],
            causes["reason"],
            causes["jobs"],
            strict=True,
        )
    )


def jobs(frame: pd.DataFrame) -> dict[str, int]:
    """How many jobs were planned, are missing or superseded, and came to each outcome."""
    counts = frame["counts"].to_numpy(dtype=bool)
    outcomes = frame["outcome"][counts].value_counts(sort=False)
    return {
        "planned": int(counts.sum()),
        "missing": 0,
        "superseded": int((~counts).sum()),
        **{str(outcome): int(number) for outcome, number in outcomes.items()},
    }


def warnings(frame: pd.DataFrame) -> tuple[str, ...]:
    """What holds for the runs as a whole, and weakens what is said of them."""
    found = []
    hosts = frame[["device", "machine", "node"]].dropna().drop_duplicates()
    # The key of a machine covers its GPUs for the cases on them alone: one of each is one machine.
    number = max([hosts["node"].nunique(), *hosts["device"].value_counts()])
    if number > 1:
        names = ", ".join(sorted(set(hosts["node"])))
        found.append(
            f"measured on {number} machines ({names}); only processes of one machine are paired"
        )
    return tuple(found)
