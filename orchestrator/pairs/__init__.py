"""Any pair on the fly: what a user writes becomes a row, or a refusal with the nearest that can."""

from __future__ import annotations

from orchestrator.pairs.request import Pair, parse
from orchestrator.pairs.rows import complete, rows
from orchestrator.pairs.sharing import advice

__all__ = ["Pair", "advice", "complete", "parse", "rows"]
