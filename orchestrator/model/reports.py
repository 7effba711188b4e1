"""Public reports of slowness (`examples/reports.toml`): what was said, and what to run here."""

from __future__ import annotations

from typing import Literal

import msgspec

# Of one process: seconds a step or of a phase; retraces a step; MB that a hundred steps leave; how
# long a step of the last quarter takes, in steps of the first.
Quantity = Literal["step", "import", "first_call", "retraces", "memory", "drift"]
RATIOS: tuple[Quantity, ...] = ("step", "import", "first_call")


class Cell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tf20/tf.keras/eager` and `small-small/numpy/fit`, of the report's run."""

    arm: str
    case: str


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that a report says, in numbers that can be measured.

    With `reference`, the ratio of the two cells; else the candidate's own amount. `expected`: the
    sign that was reported, or `above`/`below` the `limit` for an amount.
    """

    says: str
    candidate: Cell
    reference: Cell | None = None
    quantity: Quantity = "step"
    expected: Literal["slower", "faster", "same", "above", "below"]
    limit: float = 0.0


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One report. `run`: what stands behind `stackrace run`. `finding`: in prose, by a person."""

    title: str
    source: str
    said: str
    run: str
    claims: tuple[Claim, ...]
    finding: str = ""


class Reports(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them, by identifier."""

    report: dict[str, Report]
