"""The grid's cover: few enough combinations to run them all, chosen so that every pair meets."""

from __future__ import annotations

from orchestrator.cover.design import PROCESSES, beside, first, second, third
from orchestrator.cover.outcomes import failed, judge, tally
from orchestrator.cover.table import table

__all__ = ["PROCESSES", "beside", "failed", "first", "judge", "second", "table", "tally", "third"]
