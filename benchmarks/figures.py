"""What a benchmark found, as results.json keeps it."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

Unit = Literal["x", "ms", "s", "MiB", "%", "count"]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity, once for each repetition; the middle one is shown.

    `goal`: the most that it should be, or the least where `at_least`; none: it is only told.
    """

    title: str
    unit: Unit
    values: tuple[float, ...]
    goal: float | None = None
    at_least: bool = False
    remark: str = ""

    @property
    def value(self) -> float:
        """The middle one."""
        return median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one benchmark found, when and where; `raw`: the seconds that its figures are made of."""

    figures: tuple[Figure, ...]
    raw: dict[str, Any] = {}
    date: str = ""
    machine: str = ""
    load: float = 0.0


def ratios(candidate: Sequence[float], reference: Sequence[float]) -> tuple[float, ...]:
    """Pair by pair, in the order in which they were measured: both saw the same machine."""
    return tuple(one / other for one, other in zip(candidate, reference, strict=True))
