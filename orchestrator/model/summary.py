"""`summary.json`: how a run ended, and everything that its report says."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orchestrator.model.advice import Advice
from orchestrator.model.comparability import Difference
from orchestrator.model.comparison import Comparison
from orchestrator.model.control import ChangedBlock
from orchestrator.model.findings import Broken, Profiled
from orchestrator.model.noise import Noise
from orchestrator.model.precision import Precision
from orchestrator.model.quantities import Quantities
from orchestrator.model.reproducibility import Agreements

SUMMARY_SCHEMA: Final = "stackrace.summary/1"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The exit code as stackrace gave it (a launcher may turn it into another)."""

    schema: Literal["stackrace.summary/1"] = SUMMARY_SCHEMA
    exit_code: int
    comparison: Comparison
    advice: Advice = Advice()
    quantities: Quantities = Quantities(cells=(), findings=())
    agreements: Agreements = Agreements(items=())
    changed: tuple[ChangedBlock, ...] = ()
    profiles: tuple[Profiled, ...] = ()
    broken: tuple[Broken, ...] = ()
    differences: tuple[Difference, ...] = ()
    noise: tuple[Noise, ...] = ()
    precision: Precision | None = None
    ended: str = ""  # why a run with a goal got no more rounds
