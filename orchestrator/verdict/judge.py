"""From numbers to words: the state of a contrast, or the reason why there is none."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model import phrases
from orchestrator.model.comparison import ENOUGH_BLOCKS, ENOUGH_VALUES, INDICATIVE, OTHER_WORK
from orchestrator.model.knobs import OF_WORK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from orchestrator.model.names import State
    from orchestrator.paired.cells import Cells
    from orchestrator.verdict.contrasts import Pairing

_WHOLE_FROM: Final = 10
NOT_INTERLEAVED: Final = "not interleaved in time: all of one was measured before all of the other"


def state(
    *, low: float, high: float, q: float, threshold: float, alpha: float
) -> tuple[State, str | None]:
    """The verdict, and what can still be said where it is `unclear`.

    The band of the threshold is symmetrical in the logarithm: from 1 / (1 + threshold), where the
    reference is slower by the threshold, to 1 + threshold.
    """
    slower, faster = low > 1 + threshold, high < 1 / (1 + threshold)
    if q < alpha and slower:
        return "slower", None
    if q < alpha and faster:
        return "faster", None
    if low >= 1 / (1 + threshold) and high <= 1 + threshold:
        return "same", None
    reason = at_most(low, high)
    if slower or faster:
        reason += f"; q = {q:.3g} is not below {alpha:g}"
    return "unclear", reason


def across(ratios: Sequence[float]) -> str:
    """Each machine has a ratio of its own, and their mean is that of none."""
    each = ", ".join(f"{phrases.significant(ratio)}x" for ratio in ratios)
    return f"no verdict across {len(ratios)} kinds of machine, whose ratios are {each}"


def at_most(low: float, high: float) -> str:
    """`at most 12% slower or 3% faster`, from an interval; rounded outwards, so that it holds.

    Both are read off the interval: 0.97 is 3% faster, it takes 3% less time.
    """
    slower, faster = f"{_up((high - 1) * 100)}% slower", f"{_up((1 - low) * 100)}% faster"
    if low >= 1:
        return f"at most {slower}, not faster"
    if high <= 1:
        return f"at most {faster}, not slower"
    return f"at most {slower} or {faster}"


def _up(percent: float) -> str:
    """Tenths below ten, then whole; rounded up. The ninth decimal is noise of the arithmetic."""
    tenths = math.ceil(round(percent * 10, 8)) / 10
    return f"{tenths:g}" if tenths < _WHOLE_FROM else f"{math.ceil(round(percent, 9))}"


def too_few(pairs: int, unit: str) -> str | None:
    """Why so few pairs give no verdict; None when there are enough."""
    if pairs >= ENOUGH_BLOCKS:
        return None
    return f"{INDICATIVE}{phrases.count(pairs, unit)}, a verdict needs {ENOUGH_BLOCKS}"


def notes(cells: Cells, pairing: Pairing, paired: NDArray[np.bool_], unit: str) -> tuple[str, ...]:
    """What a reader must know beside the numbers; `paired` marks the rounds that gave a pair."""
    both = [pairing.candidate, pairing.reference]
    found = [_dropped(cells, both, paired, unit)]
    iterations = cells.iterations[both][:, paired]
    if (iterations < ENOUGH_VALUES).any():
        found.append(f"{INDICATIVE}{phrases.count(int(np.nanmin(iterations)), 'iteration')}")
    if pairing.knob in OF_WORK:
        found.append(f"{OTHER_WORK}: {pairing.knob}")
    candidate, reference = (cells.python[cell] for cell in both)
    if candidate != reference:
        found.append(f"confounded: Python {candidate} against {reference}")
    candidate, reference = (cells.backend[cell] for cell in both)
    if candidate != reference:
        found.append(f"confounded: {candidate} against {reference}")
    return tuple(note for note in found if note)


def _dropped(cells: Cells, both: list[int], paired: NDArray[np.bool_], unit: str) -> str | None:
    """`2 of 6 blocks dropped: tf20/tf.keras/eager crashed`."""
    planned = cells.planned[both].all(axis=0)
    lost = planned & ~paired
    if not paired.any() or not lost.any():
        return None
    causes = Counter(
        f"{cells.arms[cell]} {outcome if outcome != 'ok' else 'ok without a time'}"
        for cell in both
        for outcome, log_s in zip(cells.outcome[cell, lost], cells.log_s[cell, lost], strict=True)
        if outcome != "ok" or not np.isfinite(log_s)
    )
    dropped = f"{int(lost.sum())} of {phrases.count(int(planned.sum()), unit)} dropped"
    if all(outcome == "missing" for cell in both for outcome in cells.outcome[cell, lost]):
        return f"{dropped}: not measured"  # whichever the arms
    words = [cause if count == 1 else f"{cause} ({count})" for cause, count in causes.items()]
    return f"{dropped}: {', '.join(words) or 'not on one machine'}"
