"""Whether two cells compute the same: what does something else is not slower or faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from orchestrator.model import phrases
from orchestrator.model.cell import split_knobs
from orchestrator.model.reproducibility import HALF_TOLERANCE, TOLERANCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.paired.cells import Cells
    from orchestrator.verdict.contrasts import Pairing

# Beside the tolerance, relative to the largest output: one that is nearly 0 holds the rounding of
# all others.
_NEAR_ZERO: Final = 0.01
# With another value of these the first batch is another one, and so are its outputs.
_DATA: Final = frozenset({"batch_size", "shape", "dtype", "batches"})
_NO_NUMBER: Final = "the outputs of one of them are no numbers"


class Agreement(NamedTuple):
    """`different`: why there is no verdict; `unknown`: what could not be compared."""

    different: str | None = None
    unknown: str | None = None


def agreement(cells: Cells, pair: Pairing, paired: NDArray[np.bool_]) -> Agreement:
    """What the first batch's outputs before timing say, over the rounds that gave a pair.

    Only cells with the knob `weights=same` start from the same weights.
    """
    both = (pair.candidate, pair.reference)
    same = all(split_knobs(cells.keys[cell].knobs).get("weights") == "same" for cell in both)
    if not same or pair.knob in _DATA or not paired.any():
        return Agreement()
    rounds = np.flatnonzero(paired)
    silent = [cell for cell in both if not any(cells.outputs[cell, rounds])]
    if silent:
        names = ", ".join(dict.fromkeys(cells.arms[cell] for cell in silent))
        return Agreement(unknown=f"unknown whether outputs agree: {names} left none")
    found = [
        difference(
            cells.outputs[both[0], place],
            cells.outputs[both[1], place],
            tolerance=HALF_TOLERANCE if cells.half[list(both), place].any() else TOLERANCE,
        )
        for place in rounds
        if cells.outputs[both[0], place] and cells.outputs[both[1], place]
    ]
    if _NO_NUMBER in found:
        return Agreement(different=f"different: {_NO_NUMBER}")
    sizes = [item for item in found if isinstance(item, str)]
    if sizes:
        return Agreement(different=f"different: {sizes[0]}")
    worst = max((item for item in found if isinstance(item, float)), default=0.0)
    if worst:
        return Agreement(different=f"different: outputs differ by up to {_percent(worst)}")
    return Agreement()


def difference(one: list[float], other: list[float], *, tolerance: float) -> float | str:
    """The largest |a - b| / max(|a|, |b|) of outputs beyond the tolerance; 0 when all agree.

    A text where that is no number: another count of outputs, or NaN on one side only.
    """
    if len(one) != len(other):
        return f"{len(one)} outputs against {len(other)}"
    first, second = np.array(one, dtype=float), np.array(other, dtype=float)
    if (np.isfinite(first) != np.isfinite(second)).any():
        return _NO_NUMBER
    finite = np.isfinite(first)
    first, second = first[finite], second[finite]
    larger = np.maximum(np.abs(first), np.abs(second))
    apart = np.abs(first - second)
    beyond = apart > tolerance * (larger + _NEAR_ZERO * larger.max(initial=0.0))
    return float((apart[beyond] / larger[beyond]).max(initial=0.0))


def _percent(fraction: float) -> str:
    """Three digits: `0.0213%`, `3.1%`, `200%`."""
    return f"{phrases.significant(fraction * 100)}%"
