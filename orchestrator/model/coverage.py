"""Which combinations run where (`stackrace.coverage/1`): the data behind the grid's table."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orchestrator.model.names import Api, Mode, Outcome

COVERAGE_SCHEMA: Final = "stackrace.coverage/1"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why some combinations have no number. `example`: the first of them, as a case is named."""

    outcome: Outcome
    message: str
    cells: int
    example: str


class Covered(msgspec.Struct, frozen=True, kw_only=True):
    """One api and mode of an environment: how many combinations came out how."""

    api: Api
    mode: Mode
    outcomes: dict[str, int]
    reasons: tuple[Reason, ...] = ()


class RowCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """One environment. `skipped`: why it was not swept."""

    title: str
    date: str  # of the sweep, ISO 8601
    python: str = ""
    guest_digest: str = ""
    skipped: str | None = None
    covered: tuple[Covered, ...] = ()


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Every environment that was swept, by identifier."""

    schema: Literal["stackrace.coverage/1"] = COVERAGE_SCHEMA
    rows: dict[str, RowCoverage] = {}
