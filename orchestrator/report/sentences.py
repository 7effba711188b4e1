"""The answer in sentences: true whatever came out, and no longer than a screen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from orchestrator.model.advice import INSTALLED, Change
from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.report import overall, within, words
from orchestrator.report.telling import Told, summed, tell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.model.advice import Range
    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.report.cells import Cell

# More cases than this are counted instead of told one by one.
TOLD: Final = 3
_MODE_SHARE: Final = 0.5


def headline(
    cells: Sequence[Cell], comparison: Comparison, ranges: Sequence[Range] = ()
) -> list[str]:
    """How all others compare with the reference, as installed wherever that was measured.

    Workload files are compared first: who races two asks whether a change made the model slower.
    `ranges`: those of the advice, for what is told of many cases together.
    """
    main = _main(comparison)
    if not main:
        return within.sentences(cells, comparison, ranges) or [_nothing(cells, comparison)]
    by_name = {(cell.arm, cell.case): cell for cell in cells}
    groups: dict[str, list[Contrast]] = {}
    for contrast in main:
        groups.setdefault(_subject(contrast, by_name, comparison)[0], []).append(contrast)
    found = within.sentences(cells, comparison, ranges, kinds=("workload",))
    for members in groups.values():
        if len(members) > TOLD:
            found += _counted(members, by_name, comparison, ranges)
            continue
        for alike in _alike(members):
            where = words.listed([_where(contrast, by_name, main) for contrast in alike])
            told = Told(*_subject(alike[0], by_name, comparison), where)
            sentence = tell(alike[0], told, threshold=comparison.threshold)
            found += [sentence, *_modes(alike[0], comparison, by_name)]
    return found


def _alike(members: Sequence[Contrast]) -> list[list[Contrast]]:
    """Cases that have no number for one reason share a sentence."""
    groups: dict[tuple[object, ...], list[Contrast]] = {}
    for place, contrast in enumerate(members):
        key = (contrast.reason,) if contrast.ratio is None else (place,)
        groups.setdefault(key, []).append(contrast)
    return list(groups.values())


def _main(comparison: Comparison) -> list[Contrast]:
    """As installed where that was compared, else at equal mode; with an arm all that met it."""
    if "/" in comparison.reference:
        return [item for item in comparison.contrasts if item.kind in BETWEEN_ARMS]
    for kind in ("as_installed", "version"):
        main = [contrast for contrast in comparison.contrasts if contrast.kind == kind]
        if main:
            return main
    return []


def _nothing(cells: Sequence[Cell], comparison: Comparison) -> str:
    measured = [cell for cell in cells if cell.processes]
    environments = list(dict.fromkeys(cell.environment for cell in cells))
    if not measured:
        return "Nothing has a number; what became of each job stands below."
    if len(measured) == 1:
        (cell,) = measured
        took = f"{cell.arm} takes {words.seconds(cell.seconds)} an iteration at {cell.case}"
        return f"{took}: nothing else was measured to compare it with."
    if len(environments) == 1:
        return (
            f"Only {environments[0]} was measured: there is no other environment to compare with."
        )
    return f"Nothing here can be compared with {comparison.reference}."


def _subject(
    contrast: Contrast, by_name: Mapping[tuple[str, str], Cell], comparison: Comparison
) -> tuple[str, str]:
    """The candidate and the reference as a sentence names them."""
    candidate, reference = contrast.candidate, contrast.reference
    if contrast.kind == "as_installed" and "/" not in comparison.reference:
        names = [by_name[side.arm, side.case].environment for side in (candidate, reference)]
        return f"{names[0]} as installed", names[1]
    return candidate.arm, reference.arm


def _where(
    contrast: Contrast, by_name: Mapping[tuple[str, str], Cell], main: Sequence[Contrast]
) -> str:
    """The method, where that tells the case from all others; else the whole case."""
    methods = {by_name[item.candidate.arm, item.candidate.case].method for item in main}
    cases = {item.candidate.case for item in main}
    side = contrast.candidate
    cell = by_name[side.arm, side.case]
    where = cell.method if len(methods) == len(cases) else side.case
    return f"{where} of {cell.workload}" if cell.workload else where


def _modes(
    contrast: Contrast, comparison: Comparison, by_name: Mapping[tuple[str, str], Cell]
) -> list[str]:
    """How much of a slow-down is the change from graph to eager mode, where the figures say so."""
    candidate = by_name[contrast.candidate.arm, contrast.candidate.case]
    reference = by_name[contrast.reference.arm, contrast.reference.case]
    if contrast.state != "slower" or (reference.mode, candidate.mode) != ("graph", "eager"):
        return []
    same_mode = [
        other
        for other in comparison.contrasts
        if other.kind == "version"
        and other.reference == contrast.reference
        and by_name[other.candidate.arm, other.candidate.case].environment == candidate.environment
    ]
    if not same_mode or same_mode[0].q is None:
        return []
    return _share_of_mode(contrast, same_mode[0])


def _share_of_mode(contrast: Contrast, graph: Contrast) -> list[str]:
    """How much of `contrast` is left at graph against graph.

    Whole intervals are compared, not their middles: what is said holds wherever in them the truth
    lies.
    """
    if contrast.low is None or contrast.high is None or graph.low is None or graph.high is None:
        return []
    if graph.state in {"same", "faster"}:
        said = "All of it is eager mode"
    elif math.log(graph.high) < _MODE_SHARE * math.log(contrast.low):
        said = "Most of it is eager mode"
    elif math.log(graph.low) >= _MODE_SHARE * math.log(contrast.high):
        said = "It is not only eager mode"
    else:
        said = "How much of it is eager mode is unclear"
    figures = f"{words.ratio(graph)} ({words.interval(graph, to=' to ')})"
    return [f"{said}: graph against graph it is {figures}."]


def _counted(
    members: Sequence[Contrast],
    by_name: Mapping[tuple[str, str], Cell],
    comparison: Comparison,
    ranges: Sequence[Range],
) -> list[str]:
    first = members[0]
    sides = [by_name[side.arm, side.case] for side in (first.candidate, first.reference)]
    change = Change(
        axis=INSTALLED if first.kind == "as_installed" else first.kind,
        level=sides[0].environment,
        reference=sides[1].environment,
    )
    where = {(item.candidate.arm, item.candidate.case): item.candidate.case for item in members}
    told = Told(*_subject(first, by_name, comparison), "")
    return summed(told, members, where, overall.of(ranges, change, members))
