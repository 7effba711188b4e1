"""Series of one length together, so that a table of thousands of processes takes few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


def by_length(
    every: Sequence[Sequence[float]], *, enough: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Places in `every`, and their values as (series, iterations); those that are too short never.

    The values are numbers; what is no number must have been left out before.
    """
    lengths = np.array([len(values) for values in every], dtype=np.intp)
    for length in np.unique(lengths[lengths >= enough]):
        places = np.flatnonzero(lengths == length)
        yield places, np.array([every[int(place)] for place in places], dtype=np.float64)
