"""Puts runs together in one table: a row a planned job, whatever became of it."""

from orchestrator.merge.cache import load, save
from orchestrator.merge.checks import check_together
from orchestrator.merge.comparability import differences
from orchestrator.merge.export import export
from orchestrator.merge.parts import Run, take_apart
from orchestrator.merge.table import NO_BLOCK, NO_RECORD, join, merge

__all__ = [
    "NO_BLOCK",
    "NO_RECORD",
    "Run",
    "check_together",
    "differences",
    "export",
    "join",
    "load",
    "merge",
    "save",
    "take_apart",
]
