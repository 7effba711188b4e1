"""How far a run is: the data behind `stackrace status`."""

from __future__ import annotations

import msgspec

from orchestrator.model.plan import Goal


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Counting jobs by outcome; `missing` ones have no counting record yet.

    `begun`: records of blocks that are not complete. They count once every arm has one, unless the
    run is cut before: then the block is done again, whole, and they are superseded.
    """

    run_id: str
    created: str
    environments: tuple[str, ...]
    rounds: int  # planned so far
    goal: Goal | None = None  # rounds may be added until it is reached
    planned: int
    outcomes: dict[str, int]
    missing: int
    begun: int = 0
    superseded: int
