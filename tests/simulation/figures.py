"""What the tests found, as a page: each target with its figures, made by the tests themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TARGETS: Final = {
    "R1": "A version against itself: the raw 95% interval excludes 1 in 5% ± 1 point of "
    "comparisons, over at least 10,000 of each kind.",
    "R2": "The interval holds the true ratio in 93.5 to 97% of comparisons.",
    "R3": "A grid of 200 comparisons without any difference: at most 1% of grids have any "
    "`faster` or `slower`.",
    "R4": "A grid in which 20 of 200 cells differ, threshold 2%, 10 rounds: at most 6% of what "
    "is called is false, at least 60% of the differences of 5% are called, and 99% of those of "
    "10%. Of bimodal processes ten rounds show less, whatever the rule: there the correction costs "
    "ten points at most.",
    "R5": "The smallest detectable effect is told before the run, within 25% of the simulated one.",
    "R6": "Arms that were not interleaved get no verdict, only the reason.",
    "R7": "`--precision` and `--budget` stop when they do without inventing differences: of "
    "intervals of a version with itself at most 5.5% exclude 1.",
    "R8": "Rising time or memory: at most 0.5% false alarms, at least 99% found (10% over 200 "
    "iterations, 1 MB in 100 iterations).",
    "R9": "Steady state: at most 2% of steady processes have a warm-up, none is called steady more "
    "than 5 iterations too early, a late step is found in at least 95%.",
    "R10": "Reading the clock and storing a value cost at most 1 µs an iteration, measured by "
    "every worker; nothing else is inside the timed region.",
    "R11": "Real processes that sleep, ratios 1.00, 1.02, 1.05, 1.10 and 2.0: 44 of 50 intervals "
    "hold the true ratio, and 93% of 500 at the full size.",
    "R12": "What goes wrong in a run makes no verdict where the true ratio is 1.",
}
CHOICE: Final = "choice"
NAIVE: Final = "naive"
_INTRODUCTION: Final = """\
Written by the tests themselves (`nox -s rigour`); nothing here was typed in. Every figure comes
through the code that merges and judges real runs: only times are drawn, or not even these (R10,
R11). Seeds are fixed."""
_NOISE: Final = """\
Log time of a process = process effect (sd 2%) + what 30 noisy iterations leave in a median (sd 1%).
`bimodal`: a quarter of the processes takes 6% longer. `drifting`: the machine's speed moves by 1%
from process to process, too. `rho`: how much an iteration depends on the one before."""
_NAIVE_HEAD: Final = """\
## What other rules would say

How often a version is called different from itself, where 5% is meant, with 5, 10 and 20 processes
of 30 iterations: drifting noise, each iteration depends on the one before by 0.3, one in a hundred
is a spike of 40%.

| rule | all of A, then all of B | blocks of A and B in random order | races |
|---|---|---|---|"""
_CHOICE_HEAD: Final = """\
## Why this correction

Drifting noise, 10 rounds. Whichever the rule, `slower` and `faster` also need the whole interval
beyond 2%. The last one is stackrace's; `orchestrator/paired/families.py` has the reason.

| rule | grids of 200 without a difference that have a verdict | differences of 5% found among 200 \
| over |
|---|---|---|---|"""
_HEAD: Final = "| what | bound | measured | over | holds |\n|---|---|---|---|---|"


class Figure(NamedTuple):
    """One figure of a test: what was looked at, its bound, what came out, and of how many."""

    target: str
    what: str
    bound: str
    found: str
    size: str


class Keep(Protocol):
    """Keep a figure for the page; the test asserts by itself that it is within its bound."""

    def __call__(self, target: str, what: str, *, bound: str, found: str, size: str) -> None:
        """`target`: `R1`, `choice`, or `naive`."""


def percent(share: float) -> str:
    """A share with two digits behind the point where it is small: `0.21%`, `5.1%`, `98%`."""
    return f"{share * 100:.{2 if share < 0.02 else 1}f}%"


def page(kept: Iterable[tuple[Figure, bool]], *, how: str) -> str:
    """The whole document. `kept`: figures, and whether their test passed. `how`: command, size."""
    # Tests that run side by side end in any order.
    figures = sorted(kept, key=lambda item: _place(item[0]))
    parts = [
        "# Rigour: what a verdict withstands",
        f"{_INTRODUCTION} {how}",
        _NOISE,
        _summary(figures),
        *(_section(target, text, figures) for target, text in TARGETS.items()),
        _naive([figure for figure, _ in figures if figure.target == NAIVE]),
        _choice([figure for figure, _ in figures if figure.target == CHOICE]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _place(figure: Figure) -> tuple[int, list[tuple[float, str]]]:
    """By target, then by what was looked at, 5 before 10; other rules as their test has them."""
    if figure.target not in TARGETS:
        return len(TARGETS), []
    parts = re.findall(r"([0-9.]*)([^0-9.]*)", figure.what)
    numbered = [(float(number.strip(".") or 0), text) for number, text in parts]
    return list(TARGETS).index(figure.target), numbered


def _summary(figures: Sequence[tuple[Figure, bool]]) -> str:
    lines = ["| target | | figures | holds |", "|---|---|---|---|"]
    for target, text in TARGETS.items():
        own = [passed for figure, passed in figures if figure.target == target]
        state = "not measured" if not own else "yes" if all(own) else "**no**"
        lines.append(f"| {target} | {text} | {len(own)} | {state} |")
    return "\n".join(lines)


def _section(target: str, text: str, figures: Sequence[tuple[Figure, bool]]) -> str:
    own = [(figure, passed) for figure, passed in figures if figure.target == target]
    if not own:
        return ""
    rows = [_row(*figure[1:], "yes" if passed else "**no**") for figure, passed in own]
    return "\n".join([f"## {target}\n", f"{text}\n", _HEAD, *rows])


def _naive(figures: Sequence[Figure]) -> str:
    return _rules(_NAIVE_HEAD, figures)


def _choice(figures: Sequence[Figure]) -> str:
    return _rules(_CHOICE_HEAD, figures)


def _rules(head: str, figures: Sequence[Figure]) -> str:
    rows = [_row(*item[1:]) for item in figures]
    return "\n".join([head, *rows]) if rows else ""


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
