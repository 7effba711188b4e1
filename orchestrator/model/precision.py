"""How precise a run is expected to be, and whether it became as precise as was asked."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is expected of a run: its rounds, and what they will show."""

    rounds: int  # in all
    seconds: float  # of measuring, in all
    detectable: float | None  # the smallest ratio - 1 that they show in four runs of five
    short_of: int | None = None  # the rounds that the precision takes, when these do not reach it


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """How wide the intervals of a run are that was asked for a precision.

    Widths are how far an interval reaches from its ratio to either side, as a fraction: 0.02.
    """

    asked: float
    reached: bool
    widest: float | None  # None: no comparison has two pairs
    rounds: int | None = None  # how many it would take in all, about; None: none would help
    seconds: float | None = None  # of measuring, for those that are still to come
    lost: int = 0  # comparisons wider than asked whose last rounds gave no pair: none would help
