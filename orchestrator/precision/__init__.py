"""How many rounds: what a run will see, and which cases get another round until it has."""

from __future__ import annotations

from orchestrator.precision.widths import (
    LEAST_PAIRS,
    asking,
    detectable,
    half_widths,
    rounds_for,
    spread,
)

__all__ = ["LEAST_PAIRS", "asking", "detectable", "half_widths", "rounds_for", "spread"]
