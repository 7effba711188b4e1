"""Puts runs together in one table: a row a planned job, whatever became of it."""

from orchestrator.merge.comparability import differences
from orchestrator.merge.export import export
from orchestrator.merge.parts import take_apart
from orchestrator.merge.table import NO_BLOCK, NO_RECORD, join, merge

__all__ = [
    "NO_BLOCK",
    "NO_RECORD",
    "differences",
    "export",
    "join",
    "merge",
    "take_apart",
]
