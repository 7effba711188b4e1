"""What weakens a ratio although it is one: how it was timed, where, and in which state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model import phrases
from orchestrator.model.comparison import ENOUGH_VALUES, INDICATIVE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.paired.cells import Cells
    from orchestrator.verdict.contrasts import Pairing

# Of the processes of a side: from there on the ratio is not one of steady states.
MANY: Final = 0.5


def notes(cells: Cells, pairing: Pairing, paired: NDArray[np.bool_]) -> tuple[str, ...]:
    """What a reader must know of the processes that gave the pairs, marked in `paired`."""
    if not paired.any():
        return ()
    both = (pairing.candidate, pairing.reference)
    found = [
        *(_unsettled(cells, cell, paired, name) for cell, name in _named(cells, pairing)),
        _batches(cells, pairing, paired),
        _few_batches(cells, both, paired),
        _machines(cells, pairing.candidate, paired),
    ]
    return tuple(note for note in found if note)


def _named(cells: Cells, pairing: Pairing) -> tuple[tuple[int, str], tuple[int, str]]:
    """Both cells, each by the least that tells it from the other."""
    one, other = pairing.candidate, pairing.reference
    if cells.keys[one].environment != cells.keys[other].environment:
        return (one, cells.keys[one].environment), (other, cells.keys[other].environment)
    names = cells.arms if cells.arms[one] != cells.arms[other] else cells.cases
    return (one, names[one]), (other, names[other])


def _unsettled(cells: Cells, cell: int, paired: NDArray[np.bool_], name: str) -> str | None:
    """`no steady state in 4 of 6 processes of tf20: the ratio is that of the timed window`."""
    number, every = int(cells.unsettled[cell, paired].sum()), int(paired.sum())
    if number <= MANY * every:
        return None
    return (
        f"no steady state in {number} of {every} processes of {name}: "
        "the ratio is that of the timed window"
    )


def _batches(cells: Cells, pairing: Pairing, paired: NDArray[np.bool_]) -> str | None:
    """`timed in batches of 50 calls`; where the sides differ, `tf20 ..., tf114 call by call`."""
    told = {name: _sizes(cells.batch[cell, paired]) for cell, name in _named(cells, pairing)}
    if not any(told.values()):
        return None
    if len(set(told.values())) == 1:
        return f"timed in {next(iter(told.values()))}"
    sides = [
        f"{name} in {sizes}" if sizes else f"{name} call by call" for name, sizes in told.items()
    ]
    return f"timed differently: {', '.join(sides)}; both are seconds a call"


def _sizes(batch: NDArray[np.float64]) -> str:
    """`batches of 20 to 50 calls`; empty where no process was timed so."""
    if not (batch > 1).any():
        return ""
    most = int(np.nanmax(batch))
    least = int(np.nanmin(batch, initial=most))
    return f"batches of {most} calls" if least == most else f"batches of {least} to {most} calls"


def _few_batches(cells: Cells, both: tuple[int, int], paired: NDArray[np.bool_]) -> str | None:
    """`indicative: 6 values`: a median of few, however many calls they cover."""
    batch = cells.batch[list(both)][:, paired]
    if not (batch > 1).any():
        return None
    values = np.where(batch > 1, cells.iterations[list(both)][:, paired] / batch, np.inf)
    least = float(np.nanmin(values, initial=np.inf))
    if least >= ENOUGH_VALUES:
        return None
    return f"{INDICATIVE}{phrases.count(round(least), 'value')}"


def _machines(cells: Cells, candidate: int, paired: NDArray[np.bool_]) -> str | None:
    """Pairs are made on one machine; of several kinds their ratios stand side by side."""
    number = len(set(cells.machine[candidate, paired].tolist()))
    return f"from {number} kinds of machine, paired within each" if number > 1 else None
