"""A claim against the merged table of a run: an amount, its interval, and whether it agrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd
from scipy import stats

from orchestrator.errors import InputError
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.model.reports import RATIOS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from orchestrator.model.reports import Cell, Claim, Quantity

CONFIDENCE: Final = 0.95
_MB = 1e6
_QUARTERS = 4

Answer = Literal["agrees", "contradicts", "unclear", "not measured"]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a claim comes to. `middle`: a ratio, or an amount; NaN where nothing was measured."""

    claim: Claim
    middle: float
    low: float
    high: float
    processes: int
    answer: Answer
    reason: str = ""


def check(claim: Claim, frame: pd.DataFrame, *, threshold: float) -> Checked:
    """The claim's ratio or amount over the counting rows of a merged table.

    A ratio is paired by round, as the geometric mean of the rounds' ratios; an amount is a mean.
    The intervals are Student's t, at 95%.
    """
    found = _by_round(claim.candidate, claim.quantity, frame)
    reason = _reason(claim.candidate, frame)
    if claim.reference is not None:
        other = _by_round(claim.reference, claim.quantity, frame)
        reason = reason or _reason(claim.reference, frame)
        ratios = [found[key] / other[key] for key in found.keys() & other.keys() if other[key] > 0]
        middle, low, high = np.exp(_interval(np.log(ratios)))
        number = len(ratios)
    else:
        middle, low, high = _interval(np.array(list(found.values())))
        number = len(found)
    answer: Answer = "unclear" if number > 1 else "not measured"
    if number >= ENOUGH_BLOCKS:
        answer = _answer(claim, low, high, threshold)
    elif number > 1:
        reason = f"{reason}, and {number} are too few" if reason else f"{number} are too few"
    return Checked(
        claim=claim,
        middle=float(middle),
        low=float(low),
        high=float(high),
        processes=number,
        answer=answer,
        reason=reason,
    )


def amounts(cell: Cell, frame: pd.DataFrame) -> dict[Quantity, float]:
    """The median over processes of every quantity that the cell has."""
    found = {name: list(_by_round(cell, name, frame).values()) for name in _READ}
    return {name: float(np.median(values)) for name, values in found.items() if values}


def rows_of(cell: Cell, frame: pd.DataFrame) -> pd.DataFrame:
    """The counting rows of a cell; InputError when the run has no such cell."""
    rows = frame[(frame["arm"] == cell.arm) & (frame["case"] == cell.case) & frame["counts"]]
    if rows.empty:
        raise InputError(f"The run has no cell {cell.arm} {cell.case}.")
    return rows


def _answer(claim: Claim, low: float, high: float, threshold: float) -> Answer:
    """Beyond the threshold as a whole, or inside it; or, of an amount, beyond its limit."""
    if claim.quantity in RATIOS and claim.reference is not None:
        found = (
            "slower"
            if low > 1 + threshold
            else "faster"
            if high < 1 / (1 + threshold)
            else "same"
            if low >= 1 / (1 + threshold) and high <= 1 + threshold
            else None
        )
    else:
        found = "above" if low > claim.limit else "below" if high < claim.limit else None
    if found is None:
        return "unclear"
    return "agrees" if found == claim.expected else "contradicts"


def _interval(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean, and the ends of its interval."""
    if len(values) == 0:
        return np.full(3, np.nan)
    mean = values.mean()
    if len(values) == 1:
        return np.array([mean, np.nan, np.nan])
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * stats.sem(values)
    return np.array([mean, mean - reach, mean + reach])


def _by_round(cell: Cell, quantity: Quantity, frame: pd.DataFrame) -> dict[tuple[str, int], float]:
    """The amount of each process that was measured, by run and round."""
    rows = rows_of(cell, frame)
    found = {}
    for _, row in rows[rows["outcome"] == "ok"].iterrows():
        amount = _READ[quantity](row)
        if amount is not None and np.isfinite(amount):
            found[(str(row["run_id"]), int(row["round"]))] = amount
    return found


def _reason(cell: Cell, frame: pd.DataFrame) -> str:
    """What became of the cell's processes without a number: `1 of 5 timed_out`."""
    rows = rows_of(cell, frame)
    bad = rows[rows["outcome"] != "ok"]
    outcomes = ", ".join(dict.fromkeys(bad["outcome"]))
    return "" if bad.empty else f"{len(bad)} of {len(rows)} {outcomes}"


def _number(name: str) -> Callable[[pd.Series], float | None]:
    return lambda row: None if pd.isna(row[name]) else float(row[name])


def _retraces(row: pd.Series) -> float | None:
    """How many of the timed steps made a graph anew."""
    found, done = row["retraces"], row["iterations_done"]
    return None if pd.isna(found) or pd.isna(done) else float(found) / float(done)


def _memory(row: pd.Series) -> float | None:
    """MB that a hundred steps leave, of the second half: the first still fills caches."""
    samples, done = np.asarray(row["rss_bytes"], dtype=float), float(row["iterations_done"])
    half = len(samples) // 2
    if half < 2 or row["timing_source"] != "call":  # noqa: PLR2004 (two points make a slope)
        return None
    per_sample = done / (len(samples) - 1)
    slope = stats.theilslopes(samples[half:]).slope / per_sample
    return float(slope * 100 / _MB)


def _drift(row: pd.Series) -> float | None:
    values = np.asarray(row["values_s"], dtype=float)
    quarter = len(values) // _QUARTERS
    return float(np.median(values[-quarter:]) / np.median(values[:quarter])) if quarter else None


_READ: Mapping[Quantity, Callable[[pd.Series], float | None]] = {
    "step": _number("median_s"),
    "import": _number("import_s"),
    "first_call": _number("first_call_s"),
    "retraces": _retraces,
    "memory": _memory,
    "drift": _drift,
}
