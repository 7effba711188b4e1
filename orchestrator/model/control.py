"""Blocks during which the machine itself was faster or slower than usual."""

from __future__ import annotations

import msgspec


class ChangedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One block; `ratio`: seconds of the host's fixed work in it, over those of most of the run."""

    run_id: str
    round: int
    case: str
    ratio: float
