"""What the user says about containers, apart from all that an engine is told."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ContainerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`--memory`, `--cpus`, `--shm-size`, other bases.

    `bases`: a base image by identifier, instead of the row's own.
    """

    memory_bytes: int | None = None
    cpus: str | None = None  # a CPU set: 0-3,8
    shm_bytes: int | None = None
    bases: Mapping[str, str] = msgspec.field(default_factory=dict)
