"""What the host adds to a race: its own time between jobs, and a whole race against its workers."""

from __future__ import annotations

import json
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import commands, venvs
from benchmarks.figures import Figure, Measured
from orchestrator.control import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

STUBS = commands.ROOT / "tests" / "contract" / "stubs"
ROUNDS = 20
HOST_MS = 30.0
RACE = 1.05


class Life(NamedTuple):
    """When a worker lived, on the monotonic clock, and what the control around it took, seconds."""

    start: float
    end: float
    before_s: float
    after_s: float


def host_time() -> Measured:
    """Workers that do next to nothing, with a framework that is none: what lies between them."""
    with tempfile.TemporaryDirectory(prefix="stackrace-host-") as name:
        place = Path(name)
        python = _stub(place / "stub")
        words = ["run", "stub", "--python", f"stub={python}", "--case", "tiny-tiny/numpy/fit"]
        commands.run(
            [*commands.STACKRACE, *words, "--rounds", str(ROUNDS), "--results", place / "results"]
        )
        lives = _lives(place / "results")
    beside = [1000 * seconds for seconds in gaps(lives)]
    control = [1000 * seconds for seconds in controls(lives)]
    return Measured(
        figures=(
            Figure(
                title="host time a job, outside the worker's life",
                unit="ms",
                values=tuple(beside),
                goal=HOST_MS,
            ),
            Figure(
                title="of it, the control of the machine's speed", unit="ms", values=tuple(control)
            ),
        ),
        raw={"gap_ms": beside},
    )


def quick() -> Measured:
    """`stackrace run tf114 tf20`, the environments there already, from its start to its end."""
    with tempfile.TemporaryDirectory(prefix="stackrace-quick-") as name:
        results = Path(name)
        words = ("run", "tf114", "tf20", "--results", results)
        seconds = commands.seconds([*commands.STACKRACE, *words])
        lives = _lives(results)
    alive = sum(life.end - life.start for life in lives)
    return Measured(
        figures=(
            Figure(
                title=f"a quick race of tf114 and tf20 ({len(lives)} jobs, {seconds:.0f} s), "
                "against the sum of its workers' lives",
                unit="x",
                values=(seconds / alive,),
                goal=RACE,
            ),
        ),
        raw={"race_s": seconds, "alive_s": alive, "jobs": len(lives)},
    )


def gaps(lives: Sequence[Life]) -> list[float]:
    """Seconds from the end of each worker to the start of the next one."""
    return [after.start - before.end for before, after in pairwise(lives)]


def controls(lives: Sequence[Life]) -> list[float]:
    """Seconds of it between each worker and the next: one reading, or two if they lay apart."""
    return [
        before.after_s + (after.before_s if after.before_s != before.after_s else 0.0)
        for before, after in pairwise(lives)
    ]


def _stub(place: Path) -> Path:
    """An interpreter whose TensorFlow is the one of the contract tests, and does nothing."""
    commands.run([*venvs.UV, "venv", "--quiet", "--python", venvs.python("3.11"), place])
    (packages,) = place.glob("lib/python3*/site-packages")
    for path in STUBS.glob("*.py"):
        shutil.copy(path, packages)
    return place / "bin" / "python"


def _lives(results: Path) -> list[Life]:
    found = []
    for path in results.glob("*/records/*.json"):
        record = json.loads(path.read_bytes())
        control = record["control"] or {"before_s": 0.0, "after_s": 0.0}
        found.append(
            Life(
                start=record["start"]["monotonic"],
                end=record["end"]["monotonic"],
                before_s=WHOLE * control["before_s"],
                after_s=WHOLE * control["after_s"],
            )
        )
    return sorted(found)
