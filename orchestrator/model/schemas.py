"""The published JSON Schemas, generated: `python -m orchestrator.model.schemas DIR`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from orchestrator.model.coverage import COVERAGE_SCHEMA, Coverage
from orchestrator.model.health import HEALTH_SCHEMA, Health
from orchestrator.model.noise import NOISE_SCHEMA, Noise
from orchestrator.model.plan import PLAN_SCHEMA, ROUNDS_SCHEMA, AddedRounds, Plan
from orchestrator.model.record import RECORD_SCHEMA, Record
from orchestrator.model.request import REQUEST_SCHEMA, Request
from orchestrator.model.result import RESULT_SCHEMA, Result
from orchestrator.model.summary import SUMMARY_SCHEMA, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping

PUBLISHED: Mapping[str, type[msgspec.Struct]] = {
    PLAN_SCHEMA: Plan,
    ROUNDS_SCHEMA: AddedRounds,
    NOISE_SCHEMA: Noise,
    REQUEST_SCHEMA: Request,
    RESULT_SCHEMA: Result,
    RECORD_SCHEMA: Record,
    SUMMARY_SCHEMA: Summary,
    HEALTH_SCHEMA: Health,
    COVERAGE_SCHEMA: Coverage,
}


def files() -> dict[str, str]:
    """File name -> text of every schema: `record-1.json` for `stackrace.record/1`."""
    return {
        f"{label.removeprefix('stackrace.').replace('/', '-')}.json": (
            json.dumps({"title": label, **msgspec.json.schema(kind)}, indent=2) + "\n"
        )
        for label, kind in PUBLISHED.items()
    }


if __name__ == "__main__":
    for name, text in files().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
