"""Everything that a report says, in one piece: each part comes from a stage of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from orchestrator.model.result import Profile

if TYPE_CHECKING:
    from orchestrator.model.advice import Advice
    from orchestrator.model.comparability import Difference
    from orchestrator.model.comparison import Comparison
    from orchestrator.model.control import ChangedBlock
    from orchestrator.model.noise import Noise
    from orchestrator.model.precision import Precision
    from orchestrator.model.quantities import Quantities
    from orchestrator.model.reproducibility import Agreements


class Profiled(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of a cell, which is never one of its timings; or why there is none."""

    arm: str
    case: str
    profile: Profile | None = None
    folder: str = ""  # below the run folder, where the framework's own trace is
    reason: str | None = None


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong in a user's own file, once for all jobs that it happened to."""

    traceback: str  # from the file's own first line on
    arms: tuple[str, ...]
    jobs: int


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the stages found in recorded runs."""

    comparison: Comparison
    advice: Advice
    quantities: Quantities
    agreements: Agreements
    changed: tuple[ChangedBlock, ...] = ()
    profiles: tuple[Profiled, ...] = ()
    broken: tuple[Broken, ...] = ()
    differences: tuple[Difference, ...] = ()  # between runs and machines, none of them blocking
    precision: Precision | None = None  # of one run that was asked for one
    ended: str = ""  # why one run with a goal got no more rounds
    noise: tuple[Noise, ...] = ()  # the newest selftest of each machine that was used
