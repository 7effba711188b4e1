"""What a report says that is neither in the table nor in the comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.plan import PlannedEnvironment


@dataclass(frozen=True, kw_only=True)
class Context:
    """The circumstances of a run, or of several that were merged."""

    environments: tuple[PlannedEnvironment, ...]  # in the order of the plan
    rounds: int  # over all runs
    cpu: str | None = None  # None: no record says
    cores: int | None = None
    pin: tuple[int, ...] = ()  # the cores that workers were bound to; empty: to none, or to several
    preparing_s: float | None = None
    folder: Path | None = None  # where the reports are written
    command: str | None = None  # measures more rounds
    command_s: float | None = None  # about how long that takes
    own_model: bool = False  # the user's own workload was raced
    selftest: bool = False  # an environment was raced against a copy of itself
