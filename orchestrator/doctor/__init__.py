"""What this machine can run, and what mends it: from facts alone, nothing is looked at here."""

from orchestrator.doctor.cells import (
    NO_GPU,
    NO_TOOLKIT,
    blockers,
    cells,
    elsewhere,
    failing,
    slow_starts,
)
from orchestrator.doctor.checks import checks, hints
from orchestrator.doctor.fitness import Fit, fit

__all__ = [
    "NO_GPU",
    "NO_TOOLKIT",
    "Fit",
    "blockers",
    "cells",
    "checks",
    "elsewhere",
    "failing",
    "fit",
    "hints",
    "slow_starts",
]
