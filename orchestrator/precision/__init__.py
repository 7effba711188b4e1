"""How many rounds: what a run will see, and which cases get another round until it has."""

from __future__ import annotations

from orchestrator.precision.decision import (
    MOST,
    PILOT,
    Decision,
    decide,
    expected,
    forecast,
    most,
    pilot,
    reached,
)
from orchestrator.precision.measured import Measured, measured
from orchestrator.precision.widths import (
    LEAST_PAIRS,
    asking,
    detectable,
    half_widths,
    rounds_for,
    spread,
)

__all__ = [
    "LEAST_PAIRS",
    "MOST",
    "PILOT",
    "Decision",
    "Measured",
    "asking",
    "decide",
    "detectable",
    "expected",
    "forecast",
    "half_widths",
    "measured",
    "most",
    "pilot",
    "reached",
    "rounds_for",
    "spread",
]
