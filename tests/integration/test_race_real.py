"""Real TensorFlow 1.14 against real 2.0, as a user races them: through the command line and nox."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import orchestrator
from orchestrator.model import attempts
from orchestrator.store import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.model.execution import Environment

ROOT = Path(orchestrator.__file__).parent.parent
SMOKE_JOBS = 8

pytestmark = [
    pytest.mark.real_tensorflow,
    pytest.mark.measures,
    pytest.mark.usefixtures("environments"),
]


def stackrace(*words: str) -> list[str]:
    """The command, run by this interpreter."""
    return [sys.executable, "-m", "orchestrator", *words]


def nox(*words: str) -> list[str]:
    """The noxfile's command, with what nox is told."""
    return [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), *words]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in the project's folder."""
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)


def start(command: list[str]) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        command,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )


def only_run(results: Path) -> RunFolder:
    """The one run in a results folder."""
    (path,) = (plan.parent for plan in results.glob("*/plan.json"))
    return RunFolder.open(path)


def summary(folder: RunFolder) -> dict[str, object]:
    """The summary that stands in the run folder."""
    found: dict[str, object] = json.loads((folder.path / "summary.json").read_text())
    return found


def running(results: Path) -> list[str]:
    """Command lines of processes that work on this results folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if process.pid != os.getpid() and any(str(results) in word for word in words):
                found.append(" ".join(words))
    return found


def counting(folder: RunFolder) -> Counter[str]:
    """Outcomes of the counting records, after checking that every planned job has one."""
    plan, records = folder.plan(), attempts.by_key(folder.records())
    outcomes: Counter[str] = Counter()
    for block in plan.blocks:
        attempt = attempts.counting_attempt(block, records)
        assert attempt is not None
        outcomes.update(records[job.key][attempt].outcome for job in block.jobs)
    return outcomes


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail(f"{what} did not come")


def records_in(results: Path) -> int:
    """How many records there are by now."""
    return len(list(results.glob("*/records/*.json")))


def test_tf20_as_installed_is_slower(tmp_path: Path) -> None:
    """The known answer: TensorFlow 2.0's eager train_on_batch is far slower than 1.14's graph."""
    done = run(
        stackrace(
            *(
                "run",
                "tf114",
                "tf20",
                "--case",
                "*/numpy/train_on_batch",
                "--results",
                str(tmp_path),
            )
        )
    )
    assert done.returncode == 0, done.stderr
    folder = only_run(tmp_path)
    assert counting(folder) == {"ok": 24}
    comparison = summary(folder)["comparison"]
    assert isinstance(comparison, dict)
    (installed,) = [item for item in comparison["contrasts"] if item["kind"] == "as_installed"]
    assert installed["state"] == "slower"
    assert installed["low"] > 1.5
    assert "tf20 as installed is" in done.stdout
    assert "SLOWER than tf114" in done.stdout
    assert str(folder.path / "report.md") in done.stdout
    assert (folder.path / "timings.parquet").exists()


def test_tf114_against_itself_has_no_winner(tmp_path: Path) -> None:
    """Two copies of one row: neither faster nor slower.

    The threshold is wide because six processes on a shared machine are few: at 2% a false verdict
    is allowed in some percent of such runs, and a test must not draw lots.
    """
    done = run(
        stackrace(
            *(
                "run",
                "tf114",
                "tf114",
                "--case",
                "*/numpy/train_on_batch",
                "--arm",
                "tf.keras/graph",
            ),
            *("--threshold", "10%", "--results", str(tmp_path)),
        )
    )
    assert done.returncode == 0, done.stderr
    comparison = summary(only_run(tmp_path))["comparison"]
    assert isinstance(comparison, dict)
    states = {item["state"] for item in comparison["contrasts"]}
    assert comparison["contrasts"]
    assert not states & {"faster", "slower"}


def test_killed_run_is_resumed(tmp_path: Path) -> None:
    """SIGKILL in the middle, then --resume: every planned job has one counting record."""
    words = ("run", "tf114", "tf20", "--preset", "smoke", "--results", str(tmp_path))
    process = start(stackrace(*words))
    wait_for(lambda: records_in(tmp_path) >= 2, "a second record")
    process.kill()
    process.communicate()
    wait_for(lambda: not running(tmp_path), "the end of the worker")
    folder = only_run(tmp_path)
    measured = records_in(tmp_path)
    assert measured < SMOKE_JOBS
    first = {path: path.read_bytes() for path in (folder.path / "records").iterdir()}
    done = run(stackrace("run", "--resume", str(folder.path)))
    assert done.returncode == 0, done.stderr
    assert counting(folder) == {"ok": SMOKE_JOBS}
    assert first == {path: path.read_bytes() for path in first}
    again = run(stackrace("run", "--resume", str(folder.path)))
    assert again.returncode == 0
    status = run(stackrace("status", str(folder.path)))
    assert "8 jobs planned: 8 ok; complete" in status.stdout


def test_two_folders_are_merged(tmp_path: Path) -> None:
    """Two runs of the same comparison, from two folders, make one table and one report."""
    for name in ("a", "b"):
        words = ("run", "tf114", "tf20", "--preset", "smoke", "--results", str(tmp_path / name))
        assert run(stackrace(*words)).returncode == 0
    runs = [str(only_run(tmp_path / name).path) for name in ("a", "b")]
    output = tmp_path / "both.csv"
    done = run(stackrace("merge", *runs, "-o", str(output)))
    assert done.returncode == 0, done.stderr
    assert f"{2 * SMOKE_JOBS} rows" in done.stderr
    compared = run(stackrace("compare", *runs, "--json"))
    contrasts = json.loads(compared.stdout)["contrasts"]
    assert {4} == {item["pairs"] for item in contrasts}


@pytest.mark.nox
def test_nox_races_once_with_options(tmp_path: Path) -> None:
    """Two bench sessions make one race, which gets what stands behind `--`."""
    done = run(
        nox(
            *("-s", "bench-tf114", "bench-tf20", "--"),
            *("--preset", "smoke", "--rounds", "1", "--results", str(tmp_path)),
        )
    )
    assert done.returncode == 0, done.stderr
    folder = only_run(tmp_path)
    assert [item.identifier for item in folder.plan().environments] == ["tf114", "tf20"]
    assert counting(folder) == {"ok": 4}
    assert "* race: success" in done.stderr


@pytest.mark.nox
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_nox_leaves_nothing_running(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Ctrl-C, or a terminated nox: no process is left, and the run can be resumed."""
    words = ("--preset", "smoke", "--results", str(tmp_path))
    process = start(nox("-s", "bench-tf114", "bench-tf20", "--", *words))
    wait_for(lambda: records_in(tmp_path) >= 1, "a first record")
    if number == signal.SIGINT:  # the terminal sends it to the whole group
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    wait_for(lambda: not running(tmp_path), "the end of everything")
    assert process.returncode != 0
    folder = only_run(tmp_path)
    assert f"stackrace: exit code {code}" in output
    assert f"nox -s race -- --resume {folder.path}" in output
    done = run(nox("-s", "race", "--", "--resume", str(folder.path)))
    assert done.returncode == 0, done.stderr
    assert counting(folder) == {"ok": SMOKE_JOBS}


def test_worker_that_dies_is_a_crash(
    tmp_path: Path, environments: Mapping[str, Environment]
) -> None:
    """A worker killed from outside is `crashed` with the signal; the others have their numbers."""
    assert {"tf114", "tf20"} <= set(environments)
    words = ("run", "tf114", "--preset", "smoke", "--rounds", "1", "--results", str(tmp_path))
    process = start(stackrace(*words))
    worker = []

    def found() -> bool:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if any("workloads-" in word for word in child.cmdline()):
                    worker.append(child)
        return bool(worker)

    wait_for(found, "a worker")
    worker[0].send_signal(signal.SIGSEGV)
    output, _ = process.communicate()
    assert process.returncode == 3
    assert counting(only_run(tmp_path)) == {"ok": 1, "crashed": 1}
    assert "SIGSEGV" in output
