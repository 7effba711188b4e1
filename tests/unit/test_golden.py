"""Files that earlier versions wrote stay readable. The folder is only added to, never changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model import codec
from orchestrator.model.plan import PLAN_SCHEMA, Plan
from orchestrator.model.record import RECORD_SCHEMA, Record

GOLDEN = Path(__file__).parent.parent / "golden"


def kept(now: Any, then: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """What is there now of what was written then; later versions only add fields."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {name: kept(now[name], value) for name, value in then.items() if name in now}
    return now


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("record-*.json")), ids=lambda path: path.stem)
def test_golden_records_are_read(path: Path) -> None:
    """Every golden record decodes, and holds what it held when it was written."""
    raw = path.read_bytes()
    record = codec.decode(raw, Record, source=path, schema=RECORD_SCHEMA)
    written = json.loads(raw)
    assert kept(json.loads(codec.encode(record)), written) == written
    if record.outcome == "ok":
        assert record.result is not None
        assert record.result.values_s == tuple(written["result"]["values_s"])
    else:
        assert record.failure is not None
        assert record.failure.message == written["failure"]["message"]


def test_golden_plans_are_read() -> None:
    """The golden plan decodes to the jobs that it planned."""
    path = GOLDEN / "plan-1.json"
    plan = codec.decode(path.read_bytes(), Plan, source=path, schema=PLAN_SCHEMA)
    assert {"tf114/keras/eager", "tf114/tf.keras/eager"} == {job.arm.name for job in plan.jobs}


def test_there_are_golden_records_of_both_kinds() -> None:
    """A measured and an unsupported record of the first format are kept."""
    names = {path.name for path in GOLDEN.iterdir()}
    assert names >= {
        "record-1-ok.json",
        "record-1-unsupported.json",
        "record-1-ok-dataset-fit.json",
    }
