"""Three tools that say which of two environments is faster: stackrace, asv and pyperf.

Each gets the same number of processes, and the environments are there already. asv compares
commits, never environments: it is told that the second one is another commit.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import msgspec

from benchmarks import commands, venvs
from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HERE = Path(__file__).resolve().parent
PROCESSES = 6  # of each environment
THRESHOLD = 0.02
ARMS = ("--case", "small-small/numpy/train_on_batch", "--arm", "tf.keras/graph")
PATHS = "PATH,HOME,LD_LIBRARY_PATH"  # what pyperf hands on to its processes

Claim = Literal["faster", "slower", "same", "none"]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool said of the second environment against the first, and how long that took.

    `spread`: what it gives where stackrace gives an interval, in its own words.
    """

    tool: str
    first: str
    second: str
    seconds: float
    ratio: float
    claim: Claim
    low: float | None = None
    high: float | None = None
    spread: str = ""

    @property
    def excludes_one(self) -> bool:
        """Whether its interval, or its own test, says that there is a difference at all."""
        if self.low is not None and self.high is not None:
            return not self.low <= 1 <= self.high
        return self.claim in {"faster", "slower"}


def stackrace(first: str, second: str, work: Path) -> Told:
    """`stackrace run FIRST SECOND`, interleaved: what its summary says."""
    words = ["run", first, second, *ARMS, "--rounds", str(PROCESSES), "--results", str(work)]
    begun = time.perf_counter()
    commands.run([*commands.STACKRACE, *words])
    seconds = time.perf_counter() - begun
    found = commands.comparison(work)["contrasts"]
    contrast = next(item for item in found if item["kind"] == "version")
    claims: dict[str, Claim] = {"faster": "faster", "slower": "slower", "same": "same"}
    return Told(
        tool="stackrace",
        first=first,
        second=second,
        seconds=seconds,
        ratio=contrast["ratio"],
        low=contrast["low"],
        high=contrast["high"],
        claim=claims.get(contrast["state"], "none"),
        spread=f"{contrast['low']:.2f} to {contrast['high']:.2f}",
    )


def asv(first: str, second: str, work: Path) -> Told:
    """`asv run` of one, then of the other as if it were a later commit, and `asv compare`."""
    program = _tool("asv")
    shutil.copytree(HERE / "asv", work)
    git = ["git", "-C", str(work / "repo"), "-c", "user.name=peers", "-c", "user.email=peers@here"]
    commands.run(["git", "init", "--quiet", "-b", "main", work / "repo"])
    own = {"HOME": str(work)}  # it writes what it knows of the machine there
    commands.run([program, "machine", "--yes"], cwd=work, env=own)
    current, commits = work / "current", []
    begun = time.perf_counter()
    for name in (first, second):
        commands.run([*git, "commit", "--quiet", "--allow-empty", "-m", name])
        commits.append(commands.run([*git, "rev-parse", "HEAD"]).strip())
        current.unlink(missing_ok=True)
        current.symlink_to(environment(name))
        commands.run(
            [
                *(program, "run", "-E", f"existing:{current}/bin/python"),
                *("--set-commit-hash", commits[-1], "--record-samples"),
                *("--attribute", f"rounds={PROCESSES}"),
            ],
            cwd=work,
            env=own,
        )
    shown = commands.run(
        [program, "compare", *commits, "--factor", str(1 + THRESHOLD)], cwd=work, env=own
    )
    return read_asv(shown, first=first, second=second, seconds=time.perf_counter() - begun)


def read_asv(shown: str, *, first: str, second: str, seconds: float) -> Told:
    """What the one row of its table says: `| + | 62±3ms | 71±2ms | 1.14 | small... |`."""
    row = next((line for line in shown.splitlines() if "time_train_on_batch" in line), None)
    if row is None:
        raise EnvironmentFailedError("asv compared nothing.", why=shown)
    change, before, after, ratio, _ = [part.strip() for part in row.split("|")[1:-1]]
    claims: dict[str, Claim] = {"+": "slower", "-": "faster"}
    return Told(
        tool="asv",
        first=first,
        second=second,
        seconds=seconds,
        ratio=float(ratio.strip("~")),
        claim=claims.get(change, "none"),
        spread=f"{before} and {after}",
    )


def pyperf(first: str, second: str, work: Path) -> Told:
    """Its script under one interpreter, then under the other, and `pyperf compare_to`."""
    program = _tool("pyperf")
    work.mkdir(parents=True)
    begun = time.perf_counter()
    files = []
    for number, name in enumerate((first, second)):
        files.append(work / f"{number}-{name}.json")
        commands.run(
            [
                *(environment(name) / "bin" / "python", HERE / "small.py", "--quiet"),
                *("--processes", str(PROCESSES), "--inherit-environ", PATHS, "-o", files[-1]),
            ]
        )
    least = str(THRESHOLD * 100)
    shown = commands.run([program, "compare_to", "--min-speed", least, *files])
    return read_pyperf(
        shown,
        [_values(path) for path in files],
        first=first,
        second=second,
        seconds=time.perf_counter() - begun,
    )


def read_pyperf(
    shown: str, values: list[list[float]], *, first: str, second: str, seconds: float
) -> Told:
    """`Mean +- std dev: [a] 63 ms +- 3 ms -> [b] 71 ms +- 2 ms: 1.14x slower`, or nothing."""
    found = re.search(r"Mean.*: [\d.]+x (faster|slower)", shown)
    claim: Claim = "none" if found is None else "faster" if found[1] == "faster" else "slower"
    return Told(
        tool="pyperf",
        first=first,
        second=second,
        seconds=seconds,
        ratio=fmean(values[1]) / fmean(values[0]),
        claim=claim,
        spread=" ".join(shown.split()) if found is None else found[0],
    )


TOOLS: Mapping[str, Callable[[str, str, Path], Told]] = {
    "stackrace": stackrace,
    "asv": asv,
    "pyperf": pyperf,
}


def environment(identifier: str) -> Path:
    """What stackrace's environment holds, and what the peers need inside it."""
    inside = HERE / "requirements-inside.txt"
    return venvs.kept(
        f"{identifier}-peers",
        [venvs.lock(identifier), inside],
        interpreter=venvs.python(),
    )


def programs() -> Path:
    """Where asv and pyperf are installed."""
    requirements = [HERE / "requirements-tools.txt"]
    return venvs.kept("peers", requirements, interpreter=venvs.python("3.11")) / "bin"


def _tool(name: str) -> Path:
    return programs() / name


def _values(path: Path) -> list[float]:
    runs = json.loads(path.read_text(encoding="utf-8"))["benchmarks"][0]["runs"]
    return [value for run in runs for value in run.get("values", ())]
