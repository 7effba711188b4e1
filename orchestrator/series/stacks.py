"""Series of one length together, so that a table of thousands of processes takes few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_AT_ONCE: Final = 5_000


def by_length(
    every: Sequence[Sequence[float] | NDArray[np.float64]], *, enough: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Places in `every`, and their values as (series, iterations); those that are too short never.

    The values are numbers; what is no number must have been left out before. There are so many
    series at a time at most that what is computed of them takes some megabytes.
    """
    lengths = np.array([len(values) for values in every], dtype=np.intp)
    for length in np.unique(lengths[lengths >= enough]):
        alike = np.flatnonzero(lengths == length)
        for first in range(0, len(alike), _AT_ONCE):
            places = alike[first : first + _AT_ONCE]
            yield places, np.array([every[place] for place in places.tolist()], dtype=np.float64)
