"""Which way through its framework each of two cells took, where the ways differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.paired.cells import PATHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from orchestrator.paired.cells import Cells
    from orchestrator.verdict.contrasts import Pairing

# What is short enough for a note below a table.
_NOTED: Final = ("executed_as", "kernel", "retraces")


class Ways:
    """Which way the processes of each cell went; asked for many times, looked up once."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._known: dict[tuple[str, int, bytes], str] = {}

    def of(self, aspect: str, cell: int, paired: NDArray[np.bool_]) -> str:
        """All the ways in the rounds that gave a pair; of numbers their median."""
        which = aspect, cell, paired.tobytes()
        found = self._known.get(which)
        if found is None:
            found = self._known[which] = _way(self._cells.paths[aspect][cell, paired])
        return found


def differing(ways: Ways, pair: Pairing, paired: NDArray[np.bool_]) -> dict[str, tuple[str, str]]:
    """Each aspect in which the two cells went different ways; what was not observed is no way."""
    found = {}
    for aspect in PATHS:
        one = ways.of(aspect, pair.candidate, paired)
        other = ways.of(aspect, pair.reference, paired)
        if one and other and one != other:
            found[aspect] = (one, other)
    return found


def notes(cells: Cells, pair: Pairing, differing: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """`ran as function / op by op`, candidate first: that explains more than a version number.

    Two modes are executed differently by definition, which needs no note.
    """
    modes = {cells.keys[cell].mode for cell in (pair.candidate, pair.reference)}
    for aspect in _NOTED:
        if aspect in differing and not (aspect == "executed_as" and len(modes) > 1):
            yield f"{PATHS[aspect]} {' / '.join(differing[aspect])}"


def _way(values: NDArray[np.object_]) -> str:
    """All the ways that the processes of a cell went; of numbers their median."""
    seen = [value for value in values if value is not None]
    words = sorted({value for value in seen if isinstance(value, str)})
    numbers = [value for value in seen if not isinstance(value, str)]
    return " or ".join(words) if words else f"{np.median(numbers):g}" if numbers else ""
