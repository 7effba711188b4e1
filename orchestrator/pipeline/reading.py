"""`status`, `merge`, `compare` and `report`: what recorded runs say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:


    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record

Runs = list[tuple["Plan", "list[Record]"]]
