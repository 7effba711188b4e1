"""In what runs and machines differ, and what that forbids: each difference names its field."""

from __future__ import annotations

from typing import Literal

import msgspec

# `blocking`: never in one table. `no_verdict`: ratios may stand side by side, times may not be
# pooled, and no contrast crosses it. `warning`: told. What is ignored is not told at all.
Grade = Literal["blocking", "no_verdict", "warning"]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One field that is not the same everywhere.

    `values`: each value, as people read it -> the runs, or machines of runs, that have it.
    """

    grade: Grade
    field: str  # `kernel`, `guest_digest`, `CPU`, `Python of tf114`
    values: dict[str, tuple[str, ...]]
