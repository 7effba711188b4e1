"""Which processes make a pair, and whether two arms were interleaved in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.paired.cells import Cells


def apart(
    cells: Cells, candidates: NDArray[np.intp], references: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which contrasts were not interleaved: all of one arm started before all of the other.

    Looked at on every machine of every run by its own clock, and over everything by the calendar.
    """
    paired = valid_pairs(cells, candidates, references)
    found = _separate(cells.started_wall_s, candidates, references, paired)
    for host in np.unique(cells.host[cells.host >= 0]):
        here = paired & (cells.host[candidates] == host)
        found |= _separate(cells.started_s, candidates, references, here)
    return found


def valid_pairs(
    cells: Cells, candidates: NDArray[np.intp], references: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """(contrasts, rounds): both processes have a number, and ran on one machine.

    A machine that changed while its run was cut is another one: its key says so, but for processes
    on different devices, whose keys are never alike.
    """
    measured, host, machine = cells.measured, cells.host, cells.machine
    device = np.array([key.device for key in cells.keys], dtype=object)
    across = device[candidates] != device[references]
    unchanged = (machine[candidates] == machine[references]) | across[:, None]
    together: NDArray[np.bool_] = (host[candidates] == host[references]) & unchanged
    return together & measured[candidates] & measured[references]


def _separate(
    started: NDArray[np.float64],
    candidates: NDArray[np.intp],
    references: NDArray[np.intp],
    where: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    one, other = started[candidates], started[references]
    first_one, last_one = _ends(one, where)
    first_other, last_other = _ends(other, where)
    enough: NDArray[np.bool_] = where.sum(axis=1) > 1
    separate: NDArray[np.bool_] = (last_one < first_other) | (last_other < first_one)
    return enough & separate


def _ends(
    values: NDArray[np.float64], where: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first = np.where(where, values, np.inf).min(axis=1, initial=np.inf)
    last = np.where(where, values, -np.inf).max(axis=1, initial=-np.inf)
    return first, last
