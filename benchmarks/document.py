"""docs/performance.md, from what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.figures import Figure, Measured

HEAD = """# What stackrace costs

Written by `nox -s benchmarks` from `benchmarks/results.json`; do not edit. One of them alone:
`nox -s benchmarks -- NAME`. Each figure is the middle one of its repetitions, in brackets the least
and the most; a ratio is made within one run, so that both sides saw the same machine. No test
asserts any of them: other machines, other figures.
"""


def text(measured: Mapping[str, Measured], titles: Mapping[str, str]) -> str:
    """The whole page: a section for each benchmark that was run, in the order of `titles`."""
    sections = [section(name, titles[name], measured[name]) for name in titles if name in measured]
    return "\n".join([HEAD, *sections])


def section(name: str, title: str, found: Measured) -> str:
    """What one benchmark found, as a table."""
    rows = [row(figure) for figure in found.figures]
    remarks = [figure.remark for figure in found.figures if figure.remark]
    lines = [
        f"## {title}",
        "",
        f"`nox -s benchmarks -- {name}`, {found.date}, {found.machine}, load {found.load:.1f}",
        "",
        "| what | measured | times | goal | |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *(line for remark in remarks for line in (remark, "")),
    ]
    return "\n".join(lines)


def row(figure: Figure) -> str:
    """One figure: what, how much, how often, what it should be, and whether it is."""
    shown = f"**{amount(figure.value, figure)}**"
    if len(figure.values) > 1:
        shown += f" ({amount(min(figure.values), figure)} to {amount(max(figure.values), figure)})"
    goal, met = "", ""
    if figure.goal is not None:
        goal = f"{'>=' if figure.at_least else '<='} {amount(figure.goal, figure)}"
        met = "met" if figure.met else "not met"
    return f"| {figure.title} | {shown} | {len(figure.values)} | {goal} | {met} |"


def amount(value: float, figure: Figure) -> str:
    """With its unit, and no more digits than it deserves."""
    match figure.unit:
        case "x":
            return f"{value:.2f} x"
        case "ms" | "s":
            return f"{value:.1f} {figure.unit}"
        case "MiB":
            return f"{value:,.0f} MiB"
        case "%":
            return f"{value:.1f}%"
        case "count":
            return f"{value:.0f}"


def unmet(measured: Mapping[str, Measured]) -> Sequence[str]:
    """The titles of what misses its goal."""
    return [
        figure.title
        for found in measured.values()
        for figure in found.figures
        if figure.met is False
    ]
