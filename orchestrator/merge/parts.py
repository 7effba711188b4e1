"""Records taken apart: their series as arrays, and all else, kept once where many have it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record
    from orchestrator.model.result import Result

T = TypeVar("T")


NO_NUMBERS: Final = np.empty(0)


class Series(NamedTuple):
    """The numbers of one process, in order; NaN where a loss was none."""

    seconds: NDArray[np.float64]  # every iteration, warm-up first
    warmups: int  # so many of these
    losses: NDArray[np.float64]
    rss_bytes: NDArray[np.float64]

    @property
    def warmup_s(self) -> NDArray[np.float64]:
        """The untimed iterations."""
        return self.seconds[: self.warmups]

    @property
    def values_s(self) -> NDArray[np.float64]:
        """The timed ones."""
        return self.seconds[self.warmups :]

    def equals(self, other: Series) -> bool:
        """Whether every number is the same."""
        pairs = (
            (self.seconds, other.seconds),
            (self.losses, other.losses),
            (self.rss_bytes, other.rss_bytes),
        )
        return self.warmups == other.warmups and all(
            np.array_equal(one, two, equal_nan=True) for one, two in pairs
        )


NONE: Final = Series(NO_NUMBERS, 0, NO_NUMBERS, NO_NUMBERS)


class Run(NamedTuple):
    """One run; `records` have no series: those stand beside them, by key and attempt.

    Of the outputs after training they keep the digest.
    """

    plan: Plan
    records: list[Record]
    series: dict[tuple[str, int], Series]

    def numbers(self, which: tuple[str, int]) -> Series:
        """The series of one record; empty ones where it has no result."""
        return self.series.get(which, NONE)


def take_apart(plan: Plan, records: Iterable[Record]) -> Run:
    """A run whose records come one by one; an array takes a fourth of what its objects take."""
    run = Run(plan, [], {})
    kept = _Kept(plan)
    for record in records:
        if record.result is not None:
            run.series[record.key, record.attempt] = _series(record.result)
        run.records.append(kept.without_series(record))
    return run


class _Kept:
    """What many records have alike: a hundred thousand copies of it would fill the memory."""

    def __init__(self, plan: Plan) -> None:
        self._cases = {case.name: case for case in plan.cases}
        self._known: dict[tuple[str, str], object] = {}

    def without_series(self, record: Record) -> Record:
        case = self._cases.get(record.case.name)
        result = record.result
        return msgspec.structs.replace(
            record,
            arm=self._once("arm", record.arm.name, record.arm),
            case=case if case == record.case else record.case,
            host=self._once("host", record.host.machine, record.host),
            guest_digest=self._once("guest", "", record.guest_digest),
            lock_digest=self._once("lock", record.arm.environment, record.lock_digest),
            engine=self._once("engine", "", record.engine),
            result=result and self._of_result(record.arm.environment, result),
        )

    def _of_result(self, environment: str, result: Result) -> Result:
        return msgspec.structs.replace(
            result,
            warmup_s=(),
            values_s=(),
            losses=(),
            rss_bytes=(),
            metadata=self._once("metadata", environment, result.metadata),
            # Its digest is that of all of them.
            outputs=result.outputs
            and msgspec.structs.replace(result.outputs, values=(), summary={}),
        )

    def _once(self, what: str, whose: str, part: T) -> T:
        """The part that was the last of this kind, where it is equal."""
        known = self._known.get((what, whose))
        if isinstance(known, type(part)) and known == part:
            return known
        self._known[what, whose] = part
        return part


def _series(result: Result) -> Series:
    return Series(
        seconds=_array((*result.warmup_s, *result.values_s)),
        warmups=len(result.warmup_s),
        losses=_array(result.losses),
        rss_bytes=_array(result.rss_bytes),
    )


def _array(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)  # None becomes NaN
