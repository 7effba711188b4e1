"""Which way through its framework each of two cells took, where the ways differ."""

from __future__ import annotations

from functools import lru_cache
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
        self._known: dict[tuple[int, bytes], tuple[str, ...]] = {}

    def of(self, cell: int, paired: NDArray[np.bool_]) -> tuple[str, ...]:
        """All the ways in the rounds that gave a pair, as PATHS; of numbers their median."""
        which = cell, paired.tobytes()
        found = self._known.get(which)
        if found is None:
            every = (self._cells.paths[aspect][cell, paired] for aspect in PATHS)
            found = self._known[which] = tuple(_way(tuple(values.tolist())) for values in every)
        return found


def differing(ways: Ways, pair: Pairing, paired: NDArray[np.bool_]) -> dict[str, tuple[str, str]]:
    """Each aspect in which the two cells went different ways; what was not observed is no way."""
    both = zip(ways.of(pair.candidate, paired), ways.of(pair.reference, paired), strict=True)
    return {
        aspect: (one, other)
        for aspect, (one, other) in zip(PATHS, both, strict=True)
        if one and other and one != other
    }


def notes(cells: Cells, pair: Pairing, differing: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """`ran as function / op by op`, candidate first: that explains more than a version number.

    Two modes are executed differently by definition, which needs no note.
    """
    modes = {cells.keys[cell].mode for cell in (pair.candidate, pair.reference)}
    for aspect in _NOTED:
        if aspect in differing and not (aspect == "executed_as" and len(modes) > 1):
            yield f"{PATHS[aspect]} {' / '.join(differing[aspect])}"


@lru_cache(maxsize=1024)
def _way(values: tuple[str | int | None, ...]) -> str:
    """All the ways that the processes of a cell went; of numbers their median."""
    seen = [value for value in values if value is not None]
    words = sorted({value for value in seen if isinstance(value, str)})
    numbers = [value for value in seen if not isinstance(value, str)]
    return " or ".join(words) if words else f"{np.median(numbers):g}" if numbers else ""
