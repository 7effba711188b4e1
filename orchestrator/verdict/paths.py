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


def differing(cells: Cells, pair: Pairing, paired: NDArray[np.bool_]) -> dict[str, tuple[str, str]]:
    """Each aspect in which the two cells went different ways; what was not observed is no way."""
    found = {}
    for aspect in PATHS:
        ways = [
            _way(cells.paths[aspect][cell, paired]) for cell in (pair.candidate, pair.reference)
        ]
        if all(ways) and ways[0] != ways[1]:
            found[aspect] = (ways[0], ways[1])
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
