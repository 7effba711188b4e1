"""What a run has measured so far, as its rounds are decided by it: contrasts and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.paired import blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.paired.cells import Cells
    from orchestrator.paired.intervals import Floats

# A contrast of which so many rounds in a row gave no pair will hardly give another.
_LOST: Final = 3


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The contrasts of a run that more rounds can narrow, and how long its blocks take."""

    log_ratios: Floats  # (contrasts, rounds), NaN where there is no pair
    cases: tuple[frozenset[str], ...]  # of each contrast: one, or the two that it is between
    lost: Floats  # as `log_ratios`, of those that came to give no more pairs
    block_s: Mapping[str, float]  # by case, the mean; what had to be done again is in it
    spent_s: float  # of measuring

    def seconds(self, cases: Iterable[str]) -> float:
        """How long a round of these cases takes."""
        return sum(self.block_s.get(case, 0.0) for case in cases)

    @property
    def compared(self) -> frozenset[str]:
        """The cases that more rounds can say more about."""
        return frozenset().union(*self.cases)


def measured(frame: pd.DataFrame, cells: Cells, contrasts: Sequence[tuple[int, int]]) -> Measured:
    """Read off a merged table. `contrasts`: candidate and reference, as places in `cells`.

    One whose cells are unsupported, or fail every time, is left out; one that has pairs, but none
    in its last rounds, is lost.
    """
    places = np.array(contrasts, dtype=np.intp).reshape(-1, 2)
    candidates, references = places[:, 0], places[:, 1]
    paired = blocks.valid_pairs(cells, candidates, references)
    planned = cells.planned[candidates] & cells.planned[references]
    ratios = np.where(paired, cells.log_s[candidates] - cells.log_s[references], np.nan)
    alive = _alive(paired, planned)
    took = frame["ended_s"] - frame["started_s"]
    whole, rounds = took.groupby(frame["case"]).sum(), frame.groupby("case")["round"].nunique()
    return Measured(
        log_ratios=ratios[alive],
        lost=ratios[~alive & paired.any(axis=1)],
        cases=tuple(
            frozenset((cells.cases[candidate], cells.cases[reference]))
            for candidate, reference in places[alive]
        ),
        block_s={str(case): float(each) for case, each in (whole / rounds).items()},
        spent_s=float(took.sum()),
    )


def _alive(paired: NDArray[np.bool_], planned: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which contrasts have a pair among the last rounds in which both cells were planned."""
    after = planned[:, ::-1].cumsum(axis=1)[:, ::-1]  # this round and those behind it
    return np.asarray((paired & (after <= _LOST)).any(axis=1), dtype=np.bool_)
