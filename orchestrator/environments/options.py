"""What all environments of one command share."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.environments import locks
from orchestrator.model.container_options import ContainerOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Backend


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One environment to prepare. `source`: the interpreter or image that the user named for it."""

    row: Row
    backend: Backend = "venv"
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Where environments are kept, from what they are made, and what they may use.

    `cache`: stackrace's cache folder. `interpreters`: paths by version, from the user's settings.
    `gpus`: UUIDs of the GPUs that jobs of GPU cases get. `cores`: those that workers outside
    containers are bound to; a container's are in `containers.cpus`.
    """

    cache: Path
    interpreters: Mapping[str, Path]
    locks: Path = locks.LOCKS
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free
    gpus: tuple[str, ...] = ()
    cores: tuple[int, ...] = ()
    containers: ContainerOptions = field(default_factory=ContainerOptions)
