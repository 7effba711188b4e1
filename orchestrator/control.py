"""Whether the machine changed speed: a fixed piece of work on the host, between the jobs."""

from __future__ import annotations

import time
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrator.model.control import ChangedBlock
from orchestrator.model.record import Control
from orchestrator.process import Companion
from orchestrator.series import noise, steady

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Self

    import pandas as pd
    from numpy.typing import NDArray

# 6 ms of integers in an interpreter that does nothing else. The fastest of its pieces counts: what
# only interrupts it passes by, what slows the processor down slows every piece. Many short pieces
# vary less than a few long ones of as much work. What is told is the time of 20,000 numbers.
_PIECES: Final = 20
_TOLD: Final = 4  # pieces
WORK: Final = f"""
import sys
from time import perf_counter

def piece():
    start = perf_counter()
    total = 0
    for number in range(5000):
        total = (total * 31 + number) & 0xFFFFFF
    return perf_counter() - start

for _ in iter(sys.stdin.readline, ""):
    print(repr({_TOLD} * min(piece() for _ in range({_PIECES}))), flush=True)
"""
# How much longer the whole work takes than what is told of it, at least.
WHOLE: Final = _PIECES / _TOLD
PATIENCE_S: Final = 10.0
FRESH_S: Final = 0.1  # between two jobs nothing else happens: one reading does for both
# A block is told when it is beyond both: deviations of the readings, and a fraction of the time.
DEVIATIONS: Final = 4.0
FLOOR: Final = float(np.log(1.03))
ENOUGH: Final = 11  # readings, of ten jobs: with fewer nobody knows how much they vary
# A deviation that few readings show is smaller than theirs too often: so it is widened, by more the
# fewer there are. With it one run in a hundred at most is told wrongly (tests/simulation).
UNSURE: Final = 6.0
READINGS: Final = ["control_before_s", "control_after_s"]


class Clock:
    """Times the work whenever it is asked to; in between its process sleeps.

    Its only process lives as long as the run, so that it is the same one for every job. It works
    on `cores`, where the workers are, or on any.
    """

    def __init__(self, work: str = WORK, *, cores: Collection[int] = ()) -> None:
        self._work = work
        self._cores = cores
        self._companion: Companion | None = None
        self._last: tuple[float, float] | None = None  # a reading, and when it was made

    def __enter__(self) -> Self:
        with suppress(OSError):  # a run is not given up for want of a control
            self._companion = Companion(self._work, cores=self._cores)
        return self

    def __exit__(self, *_: object) -> None:
        if self._companion is not None:
            self._companion.close()

    def seconds(self) -> float | None:
        """Seconds that the work takes now; None when there is nobody to do it.

        Asked again at once it tells the same: after one job, and before the next.
        """
        if self._companion is None:
            return None
        if self._last is not None and time.monotonic() - self._last[1] < FRESH_S:
            return self._last[0]
        answer = self._companion.ask(b"", timeout_s=PATIENCE_S)
        self._last = None if answer is None else (float(answer), time.monotonic())
        return None if answer is None else float(answer)


def around(before_s: float | None, after_s: float | None) -> Control | None:
    """The readings just before and just after a job, as its record keeps them."""
    if before_s is None or after_s is None:
        return None
    return Control(before_s=before_s, after_s=after_s)


def spread(frame: pd.DataFrame) -> float | None:
    """Standard deviation of the logarithm of the readings of one run around their levels.

    By their median deviation, so that what was slowed down for a while does not widen it; None
    where there are too few.
    """
    series = _once(np.log(_read(frame)[READINGS].to_numpy(dtype=float)))
    return None if len(series) < ENOUGH else _level(series)[1]


def changed(
    frame: pd.DataFrame, *, spreads: Mapping[str, float] = MappingProxyType({})
) -> tuple[ChangedBlock, ...]:
    """The blocks in which the machine was not as fast as in most of its run, in order of time.

    What it is compared with is the longest stretch of one level: in a run that was slowed down half
    way, the median of all would be neither speed, and its deviation the difference of the two.
    `spreads`: of the readings on machines at rest, by their keys, as `spread` says; where it is not
    known, it is that of the run's own.
    """
    found: list[ChangedBlock] = []
    for (_, _, machine), rows in _read(frame).groupby(["run_id", "node", "machine"], sort=False):
        found += _changed(rows, spreads.get(str(machine)))
    return tuple(found)


def _read(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that have readings, in order of time."""
    first, second = READINGS
    known = frame[first].notna() & frame[second].notna()
    return frame[known.to_numpy(dtype=bool)].sort_values("started_s", kind="stable")


def _once(readings: NDArray[np.float64]) -> NDArray[np.float64]:
    """(readings,): before and after each job, in order; one of two jobs counts once."""
    before, after = readings.T
    own = np.ones(readings.shape, dtype=np.bool_)
    own[1:, 0] = before[1:] != after[:-1]
    return readings[own]


def _changed(rows: pd.DataFrame, rest: float | None) -> Iterator[ChangedBlock]:
    readings = np.log(rows[READINGS].to_numpy(dtype=float))
    series = _once(readings)
    if len(series) < ENOUGH:
        return
    usual, own = _level(series)
    own *= 1 + UNSURE / len(series)
    bound = max(DEVIATIONS * (own if rest is None else rest), FLOOR)
    blocks: dict[tuple[str, int, str], list[NDArray[np.float64]]] = {}
    for run_id, number, case, counts, both in zip(
        rows["run_id"], rows["round"], rows["case"], rows["counts"], readings, strict=True
    ):
        if counts:
            blocks.setdefault((str(run_id), int(number), str(case)), []).append(both)
    for (run_id, number, case), found in blocks.items():
        away = float(np.median(_once(np.array(found)))) - usual
        if abs(away) > bound:
            ratio = float(np.exp(away))
            yield ChangedBlock(run_id=run_id, round=number, case=case, ratio=ratio)


def _level(series: NDArray[np.float64]) -> tuple[float, float]:
    """The level of most readings, and the deviation of all from that of their own stretch."""
    starts = steady.segments(series)
    stretches = np.split(series, starts[1:])
    levels = [float(np.median(stretch)) for stretch in stretches]
    lengths = [len(stretch) for stretch in stretches]
    rest = series - np.repeat(levels, lengths)
    return levels[lengths.index(max(lengths))], float(noise.mad(rest[None, :])[0])
