"""The ratios of three and more versions in order of release, so that a step is seen."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from orchestrator.report import words
from orchestrator.report.marks import grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.plan import PlannedEnvironment
    from orchestrator.report.cells import Cell

LEAST: Final = 3  # two versions are a contrast, not a trend
_COLUMNS: Final = 6
_MARKS: Final = {"slower": " +", "faster": " -", "same": " =", "unclear": " ?"}


def section(
    cells: Sequence[Cell], comparison: Comparison, environments: Sequence[PlannedEnvironment]
) -> Iterator[str]:
    """A row a case and form: time of each version over that of the first one."""
    released = in_order(environments)
    if len(released) < LEAST or "/" in comparison.reference:
        return
    rows = trends(cells, comparison, released)
    if not rows:
        return
    yield "## Trend over the versions"
    yield (
        f"Time over that of {released[0]}, in order of release; verdicts against "
        f"{comparison.reference}: + slower, - faster, = same, ? unclear."
    )
    for start in range(0, len(released), _COLUMNS):
        shown = range(start, min(start + _COLUMNS, len(released)))
        last = shown[-1] == len(released) - 1
        yield grid(
            (
                "case",
                "as",
                *(released[place] for place in shown),
                *(["largest step"] if last else []),
            ),
            [
                (case, form, *(texts[place] for place in shown), *([step] if last else []))
                for case, form, texts, step in rows
            ],
            left=2,
        )


def in_order(environments: Sequence[PlannedEnvironment]) -> list[str]:
    """By version of TensorFlow, then of Keras; what has no TensorFlow comes last."""

    def age(item: PlannedEnvironment) -> tuple[bool, Version, Version]:
        return (
            not item.tensorflow,
            Version(item.tensorflow or item.jax or item.torch or "0"),
            Version(item.keras or "0"),
        )

    return [item.identifier for item in sorted(environments, key=age)]


def trends(
    cells: Sequence[Cell], comparison: Comparison, released: Sequence[str]
) -> list[tuple[str, str, list[str], str]]:
    """Case, form, one text a version, and the largest step between neighbours."""
    by_name = {(cell.arm, cell.case): cell for cell in cells}
    found: dict[tuple[str, str], dict[str, Contrast]] = {}
    for contrast in comparison.contrasts:
        candidate = by_name[contrast.candidate.arm, contrast.candidate.case]
        forms = [f"{candidate.api}/{candidate.mode}"] if contrast.kind == "version" else []
        if contrast.kind == "as_installed":
            forms = ["as installed"]
        for form in forms:
            name = ", ".join(part for part in (form, candidate.workload) if part)
            found.setdefault((candidate.case, name), {})[candidate.environment] = contrast
    return [
        (case, form, *_row(by_environment, comparison.reference, released))
        for (case, form), by_environment in found.items()
        if len(by_environment) >= LEAST - 1
    ]


def _row(
    contrasts: dict[str, Contrast], reference: str, released: Sequence[str]
) -> tuple[list[str], str]:
    ratios = {
        name: item.ratio for name, item in contrasts.items() if item.ratio and not item.different
    }
    ratios[reference] = 1.0
    first = next((ratios[name] for name in released if name in ratios), 1.0)
    texts = [
        words.times_as_long(ratios[name] / first)
        + (_MARKS.get(contrasts[name].state or "", "") if name in contrasts else "")
        if name in ratios
        else words.NOTHING
        for name in released
    ]
    known = [name for name in released if name in ratios]
    steps = [
        (max(ratios[new] / ratios[old], ratios[old] / ratios[new]), old, new)
        for old, new in itertools.pairwise(known)
    ]
    if not steps:
        return texts, words.NOTHING
    _, old, new = max(steps)
    return texts, f"{old} to {new}: {words.times_as_long(ratios[new] / ratios[old])}"
