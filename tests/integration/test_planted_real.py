"""Faults planted in users' files, on real TensorFlow: each is found, the clean file is clean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator
from orchestrator import quantities, reproducibility
from orchestrator.merge import merge
from orchestrator.store import RunFolder

ROOT = Path(orchestrator.__file__).parent.parent
PLANTED = ROOT / "tests" / "workloads"
FILES = ("clean", "leaking", "slowing", "spiking", "nondeterministic")
# What takes milliseconds cannot be seen where others take turns on the same cores.
BUSY = 1.5

pytestmark = [
    pytest.mark.real_tensorflow,
    pytest.mark.measures,
    pytest.mark.usefixtures("environments"),
]


def test_each_planted_fault_is_found_and_nothing_else(tmp_path: Path) -> None:
    """Three processes of each file, interleaved, on TensorFlow 1.14."""
    load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    if load > BUSY and os.environ.get("STACKRACE_REQUIRE_ALL") != "1":
        pytest.skip(f"the machine is busy: load {load:.1f} a core")
    words = [word for name in FILES for word in ("--workload", str(PLANTED / f"{name}.py"))]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "orchestrator", "run", "tf114", *words),
            *("--arm", "tf.keras/graph", "--rounds", "3", "--max-job-seconds", "20"),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "STACKRACE_RESULTS": str(tmp_path)},
    )
    assert 0 == done.returncode, done.stderr
    (plan,) = tmp_path.glob("*/plan.json")
    folder = RunFolder.open(plan.parent)
    frame = merge([(folder.plan(), folder.records())])
    assert (frame["control_before_s"] > 0).all()
    found: dict[str, set[str]] = {name: set() for name in FILES}
    for item in quantities.of(frame).findings:
        rhythm = " in a rhythm" if item.periodic else ""
        found[item.arm.rpartition("/")[2]].add(f"{item.kind}{rhythm}")
    agreeing = {
        item.arm.rpartition("/")[2]: item.state
        for item in reproducibility.of(frame).items
        if item.scope == "processes"
    }
    assert "memory grows" in found["leaking"]
    assert "gets slower" in found["slowing"]
    assert "spikes in a rhythm" in found["spiking"]
    assert "diverging" == agreeing["nondeterministic"]
    assert "equal" == agreeing["clean"]
    # Others on the same cores make any process uneven, without a rhythm: then that is the truth.
    assert set() == found["clean"] - {"spikes", "no steady state"}
