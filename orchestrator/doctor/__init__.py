"""What this machine can run, and what mends it: from facts alone, nothing is looked at here."""

from orchestrator.doctor.cells import NO_GPU, blockers, cells, elsewhere, failing, slow_starts
from orchestrator.doctor.checks import checks
from orchestrator.doctor.fitness import Fit, fit

__all__ = [
    "NO_GPU",
    "Fit",
    "blockers",
    "cells",
    "checks",
    "elsewhere",
    "failing",
    "fit",
    "slow_starts",
]
