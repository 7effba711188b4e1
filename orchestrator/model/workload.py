"""A user's own model, as the host knows it: its files, and what they say without being run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.model.plan import PlannedWorkload

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One file, or a folder with `workload.py` in it.

    `files`: all that it consists of, as it was read, by the path below its folder, with `/`.
    `entry`: the one to import. `digest`: sha256 over the names and bytes of all files, in order.
    """

    name: str
    entry: str
    digest: str
    files: Mapping[str, bytes]
    shapes: tuple[tuple[int, ...], ...] = ()  # its BATCH_SHAPES
    has_step: bool = False

    @property
    def planned(self) -> PlannedWorkload:
        """What the plan keeps of it."""
        return PlannedWorkload(name=self.name, entry=self.entry, digest=self.digest)
