"""What environments cost: made by stackrace, by bare uv and by venv + pip; and found again."""

from __future__ import annotations

import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks import commands, venvs
from benchmarks.figures import Figure, Measured, ratios
from orchestrator import guest, matrix
from orchestrator.environments import probe
from orchestrator.environments.venv import VenvEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = ("tf114", "tf20")
REPEATS = 3
AGAINST_PIP = 5.0
AGAINST_UV = 1.2
FOUND_MS = 50.0
FINDS = 11
WHY = """pip compiles as well, and compiling takes most of uv's time on few cores: what is quicker
than pip is the rest."""
FIND = f"""
import time
from orchestrator import config
from orchestrator.pipeline import preparing
begun = time.perf_counter()
preparing.prepare(config.load(config.Flags(environments=({NAMES[0]!r},))))
print(time.perf_counter() - begun)
"""


def making(repeats: int = REPEATS) -> Measured:
    """tf114 and tf20 from warm caches, byte-compiled; pip once, because it takes minutes.

    stackrace makes both at once, as it does for a race; so do the others.
    """
    python = venvs.python()
    place = venvs.folder() / "installing"  # on the disk of uv's cache: its files are linked
    raw: dict[str, list[float]] = {"stackrace": [], "probe": [], "uv": [], "uncompiled": []}
    try:
        _uv(place, python)  # fills the cache
        for _ in range(repeats):
            raw["uv"].append(_uv(place, python))
            raw["uncompiled"].append(_uv(place, python, compiled=False))
            made, probe = _stackrace(place)
            raw["stackrace"].append(made)
            raw["probe"].append(probe)
        _pip(place, python)  # the same
        raw["pip"] = [_pip(place, python)]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    bare = [whole - probe for whole, probe in zip(raw["stackrace"], raw["probe"], strict=True)]
    return Measured(
        figures=(
            Figure(
                title="making tf114 and tf20: `python -m venv` and `pip install` of the same "
                "locks, against stackrace",
                unit="x",
                values=ratios(raw["pip"] * repeats, raw["stackrace"]),
                goal=AGAINST_PIP,
                at_least=True,
                remark=WHY,
            ),
            Figure(
                title="making tf114 and tf20: stackrace without its probe, against bare uv with "
                "--compile-bytecode",
                unit="x",
                values=ratios(bare, raw["uv"]),
                goal=AGAINST_UV,
            ),
            Figure(
                title="of bare uv's time, byte-compiling",
                unit="%",
                values=tuple(100 * (1 - bare) for bare in ratios(raw["uncompiled"], raw["uv"])),
            ),
            Figure(
                title="of the time of stackrace, its probe: each imports TensorFlow and trains",
                unit="%",
                values=tuple(100 * share for share in ratios(raw["probe"], raw["stackrace"])),
            ),
        ),
        raw=raw,
    )


def finding(finds: int = FINDS) -> Measured:
    """`stackrace prepare` of one that is there, in a fresh process, after its imports."""
    commands.run([*commands.STACKRACE, "prepare", NAMES[0]])
    seconds = [float(commands.run([sys.executable, "-c", FIND])) for _ in range(finds)]
    return Measured(
        figures=(
            Figure(
                title="finding a prepared environment",
                unit="ms",
                values=tuple(1000 * one for one in seconds),
                goal=FOUND_MS,
            ),
        ),
        raw={"find_s": seconds},
    )


def _both(way: Callable[[str], None]) -> float:
    """The seconds that both environments take, made at once."""
    begun = time.perf_counter()
    with ThreadPoolExecutor() as pool:
        list(pool.map(way, NAMES))
    return time.perf_counter() - begun


def _uv(place: Path, python: Path, *, compiled: bool = True) -> float:
    def one(name: str) -> None:
        venvs.uv(place / name, [venvs.lock(name)], interpreter=python, compiled=compiled)

    shutil.rmtree(place, ignore_errors=True)
    return _both(one)


def _pip(place: Path, python: Path) -> float:
    def one(name: str) -> None:
        commands.run([python, "-m", "venv", place / name])
        pip = place / name / "bin" / "pip"
        # What came with Python 3.7 knows neither the wheels' tags nor this resolver.
        commands.run([pip, "install", "--quiet", "--upgrade", "pip", "setuptools", "wheel"])
        commands.run([pip, "install", "--quiet", "--no-deps", "-r", venvs.lock(name)])

    shutil.rmtree(place, ignore_errors=True)
    return _both(one)


def _stackrace(place: Path) -> tuple[float, float]:
    """Seconds of `stackrace prepare` with an empty cache of its own, and of the probes in it."""
    shutil.rmtree(place, ignore_errors=True)
    own = {"STACKRACE_CACHE": str(place)}
    made = commands.seconds([*commands.STACKRACE, "prepare", *NAMES], env=own)
    rows = matrix.load().rows
    found = {row: next(place.glob(f"environments/{row}-cpu-*")) for row in NAMES}

    def one(name: str) -> None:
        environment = VenvEnvironment(
            identifier=name,
            lock_digest="",
            python="",
            folder=found[name],
            guest=guest.build(place / "guest").path,
        )
        probe.probe(environment, rows[name], log=place / f"{name}.log")

    return made, _both(one)
