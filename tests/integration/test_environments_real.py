"""More environments with real TensorFlow: Keras 3, a pair on the fly, one of the user's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import orchestrator
from orchestrator.store import RunFolder

if TYPE_CHECKING:
    from orchestrator.environments.venv import VenvEnvironment
    from orchestrator.model.record import Record

ROOT = Path(orchestrator.__file__).parent.parent

pytestmark = [pytest.mark.real_tensorflow, pytest.mark.usefixtures("environments")]


def race(results: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Race on the tiny model, one round."""
    told = ["--preset", "smoke", "--rounds", "1", "--device", "cpu", "--results", str(results)]
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", "run", *words, *told],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def records(results: Path) -> dict[str, Record]:
    """The records of the only run, by arm; of one case."""
    (path,) = (plan.parent for plan in results.glob("*/plan.json"))
    return {record.arm.name: record for record in RunFolder.open(path).records()}


def test_keras_3_is_raced_with_what_it_can(tmp_path: Path) -> None:
    """tf218 runs Keras 3 eagerly and tf_keras both ways; what it cannot is data, not a failure."""
    done = race(tmp_path, "tf218", "--arm", "*")
    assert (0, "") == (done.returncode, done.stderr if done.returncode else "")
    found = records(tmp_path)
    assert {
        "tf218/keras/eager": "ok",
        "tf218/tf.keras/eager": "ok",
        "tf218/tf_keras/eager": "ok",
        "tf218/tf_keras/graph": "ok",
        "tf218/tf.python.keras/graph": "ok",
        "tf218/tf.python.keras/eager": "ok",
        **{
            f"tf218/{api}/run_eagerly": "ok"
            for api in ("keras", "tf.keras", "tf_keras", "tf.python.keras")
        },
        "tf218/keras/graph": "unsupported",
        "tf218/tf.keras/graph": "unsupported",
    } == {name: record.outcome for name, record in found.items()}
    for record in found.values():
        if record.outcome == "ok":
            assert record.result is not None
            assert 609 == record.result.parameters
            assert record.result.outputs is not None
            assert record.result.outputs.digest
        else:
            assert record.failure is not None
            assert "graph" in record.failure.message or "eager" in record.failure.message


def test_pair_on_the_fly_shares_the_python(tmp_path: Path) -> None:
    """A pair that no row has is resolved and raced on the Python of the others, and kept."""
    done = race(tmp_path, "tf114", "tensorflow==2.1.1", "--arm", "tf.keras/graph")
    assert (0, "") == (done.returncode, done.stderr if done.returncode else "")
    found = records(tmp_path)
    assert Counter({"ok": 2}) == Counter(record.outcome for record in found.values())
    pythons = set()
    versions = set()
    for record in found.values():
        assert record.result is not None
        pythons.add(record.result.metadata["python"]["version"])
        versions.add(record.result.metadata["tensorflow"]["version"])
    assert {"1.14.0", "2.1.1"} == versions
    assert 1 == len(pythons)


def test_own_interpreter_is_raced_untouched(
    tmp_path: Path, environments: dict[str, VenvEnvironment]
) -> None:
    """`--python NAME=PATH` races what is there, writes nothing into it, and tells what differs."""
    folder = environments["tf20"].folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    done = race(
        tmp_path,
        "tf20",
        *("--python", f"tf114={folder / 'bin' / 'python'}"),
        *("--arm", "tf.keras/eager"),
    )
    assert (0, "") == (done.returncode, done.stderr if done.returncode else "")
    assert "tf114: TensorFlow 2.0.0 where tf114 has TensorFlow 1.14.0" in done.stderr
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    found = records(tmp_path)
    assert {"ok"} == {record.outcome for record in found.values()}
    (path,) = tmp_path.glob("*/plan.json")
    planned = {item["identifier"]: item for item in json.loads(path.read_text())["environments"]}
    assert ("existing", "venv") == (planned["tf114"]["backend"], planned["tf20"]["backend"])
    assert "2.0.0" == planned["tf114"]["tensorflow"]
