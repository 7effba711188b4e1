"""A user's own model on real TensorFlow 1.14 and 2.0: raced, compared, broken, with packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator
from orchestrator.store import RunFolder

ROOT = Path(orchestrator.__file__).parent.parent
MODEL = """
import {imported}


def build_model(keras, batch_shape):
    {first}
    model = keras.models.Sequential([keras.layers.Dense(1, input_shape=batch_shape[1:])])
    model.compile("sgd", "mse")
    return model


def make_data(batch_shape, rng):
    return rng.normal(size=batch_shape), rng.normal(size=(batch_shape[0], 1))


BATCH_SHAPES = [(8, 4)]
"""

pytestmark = [pytest.mark.real_tensorflow, pytest.mark.usefixtures("environments")]


def stackrace(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a user's folder; its results stay there."""
    kept = {name: value for name, value in os.environ.items() if name != "STACKRACE_RESULTS"}
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
    )


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Race with one round, a few seconds a process."""
    return stackrace(folder, "run", *words, "--rounds", "1", "--max-job-seconds", "10")


def only_run(folder: Path) -> RunFolder:
    """The one run in a user's folder."""
    (plan,) = folder.glob("results/*/plan.json")
    return RunFolder.open(plan.parent)


def write(path: Path, *, imported: str = "os", first: str = "pass") -> Path:
    """A model of the user's that imports something, and does something before it is built."""
    path.write_text(MODEL.format(imported=imported, first=first))
    return path


def test_the_example_of_init_races(tmp_path: Path) -> None:
    """The file that `init` writes runs with the command that it prints."""
    printed = stackrace(tmp_path, "init").stdout.split()
    assert ["stackrace", "run", "tf114", "tf20", "--workload", "my_model.py"] == printed
    done = run(tmp_path, *printed[2:])
    assert 0 == done.returncode, done.stderr
    folder = only_run(tmp_path)
    assert ["my_model-32x64/given/fit"] == [case.name for case in folder.plan().cases]
    records = folder.records()
    assert 4 == len(records)
    assert {"ok"} == {record.outcome for record in records}
    copy = folder.workload_path("my_model") / "my_model.py"
    assert (tmp_path / "my_model.py").read_bytes() == copy.read_bytes()
    copy.write_text("# edited\n" + copy.read_text())
    again = stackrace(tmp_path, "run", "--resume", str(folder.path))
    assert 2 == again.returncode
    assert "is no longer the workload that this run was started with" in again.stderr


def test_two_files_are_arms(tmp_path: Path) -> None:
    """Is it my change? The files are compared with each other, in each environment."""
    write(tmp_path / "before.py")
    write(tmp_path / "after.py", first="keras.backend.epsilon()")
    words = ("--workload", "before.py", "--workload", "after.py", "--arm", "tf.keras/eager")
    done = run(tmp_path, "tf114", "tf20", *words)
    assert 0 == done.returncode, done.stderr
    folder = only_run(tmp_path)
    assert {
        (f"{environment}/tf.keras/eager/{name}", "workload-8x4/given/fit", "ok")
        for environment in ("tf114", "tf20")
        for name in ("before", "after")
    } == {(record.arm.name, record.case.name, record.outcome) for record in folder.records()}
    summary = json.loads((folder.path / "summary.json").read_text())
    assert "workload" in {item["kind"] for item in summary["comparison"]["contrasts"]}


def test_an_error_in_the_users_file_is_theirs(tmp_path: Path) -> None:
    """It is told as their own traceback, and jobs that failed are exit code 3."""
    write(tmp_path / "mine.py", first="raise ValueError('units must be positive')")
    done = run(tmp_path, "tf114", "tf20", "--arm", "tf.keras/eager", "--workload", "mine.py")
    assert 3 == done.returncode, done.stderr
    assert "units must be positive" in done.stdout
    for record in only_run(tmp_path).records():
        assert "failed" == record.outcome
        assert record.failure is not None
        assert "workload" == record.failure.kind
        traceback = record.failure.traceback or ""
        assert "mine.py" in traceback
        assert "in build_model" in traceback
        assert ".pyz" not in traceback


def test_a_package_is_added(tmp_path: Path) -> None:
    """What the file imports is installed beside TensorFlow, whose own packages stay."""
    write(tmp_path / "mine.py", imported="toolz")
    words = ("--workload", "mine.py", "--arm", "tf.keras/eager")
    done = run(tmp_path, "tf114", "tf20", *words, "--with", "toolz")
    assert 0 == done.returncode, done.stderr
    folder = only_run(tmp_path)
    assert {("toolz",)} == {item.extra for item in folder.plan().environments}
    assert "tf114 = TensorFlow 1.14.0, Keras 2.2.5 + toolz" in done.stdout
    for record in folder.records():
        assert "ok" == record.outcome
        assert record.result is not None
        assert "toolz" in record.result.metadata["packages"]


def test_profiles_are_taken_after_the_rounds(tmp_path: Path) -> None:
    """One a cell, with shares that add up, and kept apart from the timings."""
    write(tmp_path / "mine.py")
    words = ("--workload", "mine.py", "--arm", "tf.keras/eager", "--profile", "--same-weights")
    done = run(tmp_path, "tf20", *words)
    assert 0 == done.returncode, done.stderr
    folder = only_run(tmp_path)
    (timed,) = [item for item in folder.records() if item.round]
    (profiled,) = [item for item in folder.records() if not item.round]
    assert "mine-8x4/given/fit+weights=same" == timed.case.name == profiled.case.name
    assert timed.result is not None
    assert timed.result.profile is None
    assert profiled.result is not None
    profile = profiled.result.profile
    assert profile is not None
    shares = profile.data + profile.training + profile.other + profile.unattributed
    assert 99 <= shares <= 101
    status = stackrace(tmp_path, "status", str(folder.path))
    assert "2 jobs planned: 2 ok; complete" in status.stdout
