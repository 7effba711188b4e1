"""Seconds and percents as the first benchmarks of this question printed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.model.phrases import significant
from orchestrator.report import lines, words
from orchestrator.report.marks import grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.report.cells import Cell
    from orchestrator.report.context import Context

# More arms than this do not fit a page side by side: 3 environments in 2 modes do.
MOST_COLUMNS: Final = 6


def section(cells: Sequence[Cell], comparison: Comparison, context: Context) -> Iterator[str]:
    """Seconds and percents as the first benchmarks of this question printed them."""
    if lines.unmeasured(cells, comparison):
        return
    environments = [item.identifier for item in context.environments]
    arms = list(dict.fromkeys((cell.environment, cell.mode) for cell in cells))
    arms.sort(key=lambda arm: environments.index(arm[0]))
    found = _percents(comparison, {"as_installed", "version", "mode"})
    gaps = {(gap.arm, gap.case): words.plain(gap.outcome) for gap in reversed(comparison.gaps)}
    yield f"## Seconds per iteration{', and percents' if found else ''}"
    if found:
        yield (
            "A percent says how much longer the slower of the two takes: `+` where the newer "
            "version is the faster one (of graph and eager: graph), `-` where it is the slower. It "
            "compares these medians over all processes; the ratios above compare the processes of "
            "each block, so that small ones may lie on the other side."
        )
    if len(arms) > MOST_COLUMNS:
        yield _stacked(cells, found, gaps)
    else:
        yield _wide(cells, found, gaps, arms)


def _wide(
    cells: Sequence[Cell],
    found: Sequence[Contrast],
    gaps: Mapping[tuple[str, str], str],
    arms: Sequence[tuple[str, str]],
) -> str:
    """A row a case: columns of seconds, then of percents."""
    by_arm = {cell.arm: cell for cell in cells}
    percents = list(dict.fromkeys(_pair(item, by_arm) for item in found))
    of_case: dict[str, list[Contrast]] = {}
    for item in found:
        of_case.setdefault(item.candidate.case, []).append(item)
    members: dict[tuple[str, str, str | None], list[Cell]] = {}
    for cell in cells:
        members.setdefault((cell.case, cell.api, cell.workload), []).append(cell)
    rows = []
    for (case, api, workload), here in members.items():
        seconds = {(cell.environment, cell.mode): _exact(cell, gaps) for cell in here}
        names = {cell.arm for cell in here}
        told = {
            _pair(item, by_arm): words.signed(item.origin_percent)
            for item in of_case.get(case, ())
            if {item.candidate.arm, item.reference.arm} <= names and item.origin_percent is not None
        }
        rows.append(
            (
                case,
                ", ".join(part for part in (api, workload) if part),
                *(seconds.get(arm, words.NOTHING) for arm in arms),
                *(told.get(pair, words.NOTHING) for pair in percents),
            )
        )
    return grid(("case", "api", *(" ".join(arm) for arm in arms), *percents), rows, left=2)


def _stacked(
    cells: Sequence[Cell], found: Sequence[Contrast], gaps: Mapping[tuple[str, str], str]
) -> str:
    """A row a cell, for more arms than a page is wide: each percent beside its candidate."""
    by_arm = {cell.arm: cell for cell in cells}
    told: dict[tuple[str, str], list[str]] = {}
    for item in found:
        if item.origin_percent is not None:
            side = item.candidate
            told.setdefault((side.arm, side.case), []).append(
                f"{words.signed(item.origin_percent)} {_pair(item, by_arm)}"
            )
    return grid(
        ("case", "arm", "percents", "seconds"),
        [
            (
                cell.case,
                cell.arm,
                ", ".join(dict.fromkeys(told.get((cell.arm, cell.case), [words.NOTHING]))),
                _exact(cell, gaps),
            )
            for cell in cells
        ],
        left=3,
    )


def _percents(comparison: Comparison, kinds: Iterable[str]) -> list[Contrast]:
    return [contrast for contrast in comparison.contrasts if contrast.kind in kinds]


def _pair(contrast: Contrast, by_arm: Mapping[str, Cell]) -> str:
    """The column that a percent stands in: `tf20 vs tf114 graph`, `tf114 graph vs eager`."""
    candidate, reference = by_arm[contrast.candidate.arm], by_arm[contrast.reference.arm]
    if contrast.kind == "mode":
        return f"{reference.environment} graph vs eager"
    if candidate.mode == reference.mode:  # as installed as well, perhaps: the same cells
        return f"{candidate.environment} vs {reference.environment} {candidate.mode}"
    if contrast.kind == "as_installed":
        return f"{candidate.environment} vs {reference.environment} as installed"
    return f"{candidate.environment} {candidate.mode} vs {reference.environment} {reference.mode}"


def _exact(cell: Cell, gaps: Mapping[tuple[str, str], str]) -> str:
    """Seconds without a unit, so that columns compare; where there are none, what happened."""
    if cell.seconds is None:
        return gaps.get((cell.arm, cell.case), words.NOTHING)
    return significant(cell.seconds)
