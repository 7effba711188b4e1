"""Commands of other people, and ours, timed: the only door to processes of the benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
STACKRACE = (sys.executable, "-m", "orchestrator")
# What was installed has been compiled; a developer's shell may forbid that here.
SURROUNDINGS = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def run(
    words: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> str:
    """Its stdout. EnvironmentFailedError, with its last lines, when it ends with another code."""
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**SURROUNDINGS, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in codes:
        raise EnvironmentFailedError(
            f"{Path(words[0]).name} failed with exit code {done.returncode}.",
            why="\n".join([*done.stdout.splitlines()[-5:], *done.stderr.splitlines()[-15:]]),
            fix=" ".join(map(str, words)),
        )
    return done.stdout


def seconds(
    words: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> float:
    """How long it takes, from its start to its end."""
    begun = time.perf_counter()
    run(words, cwd=cwd, env=env, codes=codes)
    return time.perf_counter() - begun


def comparison(results: Path) -> dict[str, Any]:
    """What the only run in a results folder says, as its summary.json has it."""
    (summary,) = results.glob("*/summary.json")
    found: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))["comparison"]
    return found


def in_turn(
    ways: Mapping[str, Callable[[], float]], *, repeats: int, warmups: int = 1
) -> dict[str, list[float]]:
    """The seconds of each way, one after the other and then again, so that all see one machine."""
    for _ in range(warmups):
        for way in ways.values():
            way()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            found[name].append(way())
    return found
