"""The pure parts of the benchmarks: ratios, what other tools print, the page that is written."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as command
from benchmarks import against_itself, document, interleaved
from benchmarks.figures import Figure, Measured, ratios
from benchmarks.peers import tools
from benchmarks.racing import Life, controls, gaps

if TYPE_CHECKING:
    from pathlib import Path

WHO = {"first": "tf114", "second": "tf114", "seconds": 9.0}
ASV = """
All benchmarks:

| Change | Before [821cc01f] <main~1> | After [f4c70dba] <main> | Ratio | Benchmark (Parameter) |
|--------|----------------------------|-------------------------|-------|-----------------------|
| {mark} | 62.3±20ms | 71±2ms | {ratio} | small.Small.time_train_on_batch |
"""
# What `--help`, `list` and completion must never wait for.
HEAVY = ("pandas", "scipy", "pyarrow", "docker", "numpy", "requests")


@pytest.mark.parametrize(
    ("goal", "at_least", "met"),
    [
        (None, False, None),
        (2.0, False, True),
        (1.9, False, False),
        (2.0, True, True),
        (3, True, False),
    ],
)
def test_the_middle_value_meets_the_goal(
    *,
    goal: float | None,
    at_least: bool,
    met: bool | None,
) -> None:
    """The least or the most, as the goal says; without a goal there is nothing to meet."""
    figure = Figure(title="it", unit="x", values=(9.0, 2.0, 1.0), goal=goal, at_least=at_least)
    assert (2.0, met) == (figure.value, figure.met)


def test_ratios_pair_what_was_measured_together() -> None:
    """A machine that slows down for one repetition slows down both of its sides."""
    assert (2.0, 2.0) == ratios([2.0, 20.0], [1.0, 10.0])


def test_the_host_works_between_two_workers() -> None:
    """From the end of one to the start of the next, in the order in which they lived."""
    lives = [Life(0.0, 1.0, 0.1, 0.2), Life(1.5, 2.0, 0.2, 0.3), Life(2.25, 3.0, 0.4, 0.5)]
    assert [0.5, 0.25] == gaps(lives)
    assert [0.2, 0.7] == pytest.approx(controls(lives))  # the second time it was read anew


@pytest.mark.parametrize(
    ("mark", "ratio", "claim"),
    [("+", "1.14", "slower"), ("-", "0.88", "faster"), (" ", "~2.57", "none")],
)
def test_what_asv_says(mark: str, ratio: str, claim: str) -> None:
    """Its mark is its claim; a tilde before the ratio says that it is not sure."""
    told = tools.read_asv(ASV.format(mark=mark, ratio=ratio), **WHO)  # type: ignore[arg-type]
    assert (claim, float(ratio.strip("~")), "62.3±20ms and 71±2ms") == (
        told.claim,
        told.ratio,
        told.spread,
    )


@pytest.mark.parametrize(
    ("shown", "claim"),
    [
        ("Mean +- std dev: [a] 63 ms +- 3 ms -> [b] 71 ms +- 2 ms: 1.14x slower", "slower"),
        ("Mean +- std dev: [a] 63 ms +- 3 ms -> [b] 50 ms +- 2 ms: 1.26x faster", "faster"),
        ("Benchmark hidden because not significant (1): train_on_batch", "none"),
    ],
)
def test_what_pyperf_says(shown: str, claim: str) -> None:
    """What it hides is no claim; the ratio is that of the means either way."""
    told = tools.read_pyperf(shown, [[1.0, 3.0], [3.0, 3.0]], **WHO)  # type: ignore[arg-type]
    assert (claim, 1.5) == (told.claim, told.ratio)


def test_false_claims_are_counted_by_tool() -> None:
    """An interval beside 1 is one thing, a verdict of faster or slower another."""
    rest = {"first": "tf114", "second": "tf114", "seconds": 60.0, "ratio": 1.1}
    found = [
        tools.Told(tool="stackrace", low=1.01, high=1.2, claim="none", **rest),  # type: ignore[arg-type]
        tools.Told(tool="stackrace", low=0.9, high=1.2, claim="none", **rest),  # type: ignore[arg-type]
        tools.Told(tool="asv", claim="slower", **rest),  # type: ignore[arg-type]
    ]
    ours = against_itself.figures("stackrace", found)
    assert [0.0, 1.0] == [figure.value for figure in ours]
    assert [1.0] == [figure.value for figure in against_itself.figures("asv", found)]
    assert [] == against_itself.figures("pyperf", found)


def test_a_row_says_how_much_how_often_and_whether_that_is_enough() -> None:
    """Least and most in brackets, where there are several."""
    figure = Figure(title="starting", unit="x", values=(8.0, 9.0, 12.0), goal=10.0)
    assert "| starting | **9.00 x** (8.00 x to 12.00 x) | 3 | <= 10.00 x | met |" == document.row(
        figure
    )
    once = Figure(title="memory", unit="MiB", values=(2000.0,), goal=1536.0)
    assert "| memory | **2,000 MiB** | 1 | <= 1,536 MiB | not met |" == document.row(once)


def test_the_page_has_what_was_measured_in_the_order_of_the_benchmarks(tmp_path: Path) -> None:
    """What was kept comes back, one benchmark does not touch another, and remarks stand below."""
    kept = tmp_path / "results.json"
    missed = Figure(title="b", unit="ms", values=(3.0,), goal=1.0, remark="Because of that.")
    command.keep("second", Measured(figures=(missed,), date="2026-11-30"), kept)
    command.keep("first", Measured(figures=(), date="2026-11-29"), kept)
    found = command.read(kept)
    assert ["b"] == document.unmet(found)
    page = document.text(found, {"first": "One", "second": "Two", "third": "Three"})
    assert page.index("## One") < page.index("## Two") < page.index("Because of that.")
    assert "Three" not in page


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--help"], {}),
        (["run", "--help"], {}),
        (["list"], {}),
        (
            [],
            {
                "_STACKRACE_COMPLETE": "bash_complete",
                "COMP_WORDS": "stackrace run --pre",
                "COMP_CWORD": "2",
            },
        ),
    ],
)
def test_nothing_heavy_lies_on_the_way_to_help(words: list[str], variables: dict[str, str]) -> None:
    """What takes longer to import than to say is imported by the commands that need it."""
    code = (
        "import sys\nfrom orchestrator import __main__\n__main__.run(sys.argv[1:])\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **variables},
    )
    assert done.stdout
    assert "[]" == done.stderr.splitlines()[-1]


def test_false_findings_of_one_run_are_counted() -> None:
    """Verdicts, and intervals beside 1; a case that has no interval is not passed over."""

    def contrast(low: float | None, high: float | None, state: str | None) -> dict[str, object]:
        ratio = None if low is None or high is None else (low * high) ** 0.5
        return {"case": "c", "ratio": ratio, "low": low, "high": high, "q": None, "state": state}

    beside, missing = contrast(1.01, 1.1, "unclear"), contrast(None, None, None)
    wrong = contrast(0.7, 0.9, "faster")
    found = [*([contrast(0.9, 1.1, "unclear")] * 17), beside, missing, wrong]
    verdicts, intervals, ratios = interleaved.figures(found)
    assert (1.0, 3.0, 19) == (verdicts.value, intervals.value, len(ratios.values))
    assert verdicts.met is False
    assert interleaved.figures([contrast(0.9, 1.1, "unclear")] * 20)[0].met


def test_of_a_summary_only_versions_are_counted() -> None:
    """As installed, the same two cells are compared a second time."""
    numbers = {"ratio": 1.0, "low": 0.9, "high": 1.1, "q": 1.0, "state": "unclear", "pairs": 6}
    side = {"arm": "tf114#2/tf.keras/graph", "case": "small-small/numpy/fit"}
    every = [{"kind": kind, "candidate": side, **numbers} for kind in ("as_installed", "version")]
    assert [{"case": side["case"], **numbers}] == interleaved.of_versions({"contrasts": every})
