"""Whether processes with the same seeds compute the same: their loss histories side by side."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

# What float32 and half precision leave after a few steps of another order of sums, relative.
TOLERANCE: Final = 1e-4
HALF_TOLERANCE: Final = 1e-2
# `equal`: bit by bit. `close`: within the tolerance. `diverging`: beyond it from an iteration on.
AgreementState = Literal["equal", "close", "diverging"]
Scope = Literal["processes", "version", "mode", "api"]


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two cells of one case, or one cell with itself (`processes`).

    Iterations count from 1, warm-up included. Where there is no `state`, `reason` says why.
    """

    scope: Scope
    case: str
    arm: str
    other: str  # the same arm, within a cell
    state: AgreementState | None = None
    reason: str | None = None
    begins: int | None = None  # the first iteration of which all have the loss
    first_differing: int | None = None  # iteration; None when they are equal
    diverges_at: int | None = None  # the first iteration beyond the tolerance
    largest: float | None = None  # relative difference; None where one is no number
    tolerance: float
    histories: int  # compared with each other, or pairs of them
    iterations: int  # of the shortest one

    @property
    def at_once(self) -> bool:
        """They diverge in the first loss that they share: nothing grew from the last bits."""
        return self.diverges_at is not None and self.diverges_at == self.begins


class Agreements(msgspec.Struct, frozen=True, kw_only=True):
    """Within each cell, then across versions, modes and apis, in the order of the table."""

    items: tuple[Agreement, ...]

    def within(self, arm: str, case: str) -> Agreement | None:
        """How the processes of one cell agree."""
        wanted = ("processes", arm, case)
        return next(
            (item for item in self.items if (item.scope, item.arm, item.case) == wanted), None
        )
