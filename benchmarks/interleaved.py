"""A version against a copy of itself in one run: twenty comparisons, corrected together."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import Any, Final

from benchmarks import commands
from benchmarks.against_itself import BESIDE, ENVIRONMENT
from benchmarks.figures import Figure, Measured

SIZES: Final = ("small-small", "mlp-small", "lstm-small", "embedding-small")
METHODS: Final = ("train_on_batch", "fit", "evaluate", "predict", "predict_on_batch")
ROUNDS: Final = 6
VERDICTS: Final = frozenset({"faster", "slower"})


def measure() -> Measured:
    """`stackrace selftest` of these cases: how many intervals lie beside 1, and how many verdicts.

    Every block holds both copies, in random order.
    """
    cases = [f"{size}/numpy/{method}" for size, method in product(SIZES, METHODS)]
    with tempfile.TemporaryDirectory(prefix="stackrace-interleaved-") as place:
        words = ["selftest", ENVIRONMENT, "--rounds", str(ROUNDS), "--results", place]
        commands.run([*commands.STACKRACE, *words, *(f"--case={case}" for case in cases)])
        comparison = commands.comparison(Path(place))
    contrasts = of_versions(comparison)
    return Measured(
        figures=figures(contrasts),
        raw={"contrasts": contrasts, "measuring_s": comparison["measuring_s"]},
    )


def of_versions(comparison: dict[str, Any]) -> list[dict[str, Any]]:
    """What was found for each case, of a summary."""
    return [
        {
            "case": item["candidate"]["case"],
            **{name: item[name] for name in ("ratio", "low", "high", "q", "state", "pairs")},
        }
        for item in comparison["contrasts"]
        if item["kind"] == "version"
    ]


def figures(contrasts: list[dict[str, Any]]) -> tuple[Figure, ...]:
    """How many of them are false; one without an interval is, for it was to have one."""
    known = [item for item in contrasts if item["low"] is not None]
    beside = sum(not item["low"] <= 1 <= item["high"] for item in known)
    missing = len(SIZES) * len(METHODS) - len(known)
    ratios = [item["ratio"] for item in known]
    return (
        Figure(
            title=f"verdicts in one run of {ENVIRONMENT} against itself, {len(contrasts)} cases, "
            f"{ROUNDS} rounds",
            unit="count",
            values=(float(sum(item["state"] in VERDICTS for item in contrasts)),),
            goal=0.0,
        ),
        Figure(
            title="raw 95% intervals of these that lie beside 1, or are missing",
            unit="count",
            values=(float(beside + missing),),
            goal=float(BESIDE),
        ),
        Figure(title="the ratios of these", unit="x", values=tuple(ratios)),
    )
