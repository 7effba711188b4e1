"""What holds over all cases: means with their ranges, which axis matters most, which interact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.report import words
from orchestrator.report.marks import bullets, grid, text
from orchestrator.report.tables import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.advice import (
        Advice,
        Change,
        Extreme,
        Indifferent,
        Interaction,
        MainEffect,
        Range,
        SimpleEffect,
    )
    from orchestrator.model.comparison import Contrast

# From so many pairs of cells on a mean says more than the pairs themselves.
SEVERAL: Final = 4
_AXES: Final = 3  # that are told one by one on a terminal
_COLUMNS: Final = 4  # means beside each other on a page


def of(ranges: Sequence[Range], change: Change, contrasts: Sequence[Contrast]) -> Range | None:
    """The range of a step, if it is over just these contrasts."""
    number = sum(item.ratio is not None and not item.different for item in contrasts)
    return next(
        (
            item
            for item in ranges
            if (item.axis, item.level, item.reference, item.contrasts)
            == (change.axis, change.level, change.reference, number)
        ),
        None,
    )


def top(advice: Advice) -> list[str]:
    """Five lines at most, for a terminal: the axes by what they matter, and how they interact."""
    if not any(item.contrasts >= SEVERAL for item in advice.effects):
        return []
    sure = _sure(advice.effects)[:_AXES]
    interactions = [interaction(item) for item in advice.interactions[: _AXES + 1 - len(sure)]]
    return [*sure, *interactions[:2], *_others(advice)]


def several(advice: Advice) -> list[Range]:
    """The ranges that are more than the one ratio of a table."""
    return [item for item in advice.ranges if item.contrasts > 1]


def section(advice: Advice, *, alpha: float) -> Iterator[str]:
    """All of it, for report.md; nothing where every step has one pair of cells only.

    `alpha`: of the comparison, which is that of the means.
    """
    ranges = several(advice)
    if not ranges:
        return
    yield "## Over all cases"
    yield (
        "Means are geometric, over all pairs of cells that differ in this alone, with their "
        f"{words.coverage(alpha)} intervals over rounds; they hold for the cells that were "
        "measured."
    )
    told = [*_sure(advice.effects), *_others(advice)]
    if told:
        yield bullets(told)
    if advice.interactions:
        yield "**Depend on each other**"
        yield bullets(interaction(item) for item in advice.interactions)
    yield "### Range of each axis"
    yield grid(
        ("axis", "of", "against", "best case", "worst case", "pairs", "mean", "best", "worst"),
        [
            (
                item.axis,
                item.level or DEFAULT,
                item.reference or DEFAULT,
                _extreme(item.best),
                _extreme(item.worst),
                str(item.contrasts),
                words.figures(item.mean) if item.mean else words.NOTHING,
                words.times_as_long(item.best.ratio),
                words.times_as_long(item.worst.ratio),
            )
            for item in ranges
        ],
        left=5,
    )
    groups: dict[tuple[str, str], list[Range]] = {}
    for item in ranges:
        if item.within and item.contrasts >= SEVERAL:
            groups.setdefault((item.axis, item.reference), []).append(item)
    for members in groups.values():
        for start in range(0, len(members), _COLUMNS):
            yield from _by_value(members[start : start + _COLUMNS])


def _by_value(steps: Sequence[Range]) -> Iterator[str]:
    """A row a value of every other axis, a column a step; all of them against one reference."""
    rows: dict[str, dict[str, Range | SimpleEffect]] = {
        "everywhere": {step.level: step for step in steps}
    }
    for step in steps:
        for item in step.within:
            where = ", ".join(f"{axis} {name or DEFAULT}" for axis, name in item.where.items())
            rows.setdefault(where, {})[step.level] = item
    yield f"### {text(steps[0].axis)}, against {text(steps[0].reference or DEFAULT)}"
    yield grid(
        ("where", "pairs", *(step.level or DEFAULT for step in steps)),
        [
            (
                where,
                " or ".join(dict.fromkeys(str(item.contrasts) for item in found.values())),
                *(_mean(found.get(step.level)) for step in steps),
            )
            for where, found in rows.items()
        ],
        left=1,
    )


def _mean(item: Range | SimpleEffect | None) -> str:
    return words.figures(item.mean) if item and item.mean else words.NOTHING


def _sure(effects: Sequence[MainEffect]) -> list[str]:
    """The axes that matter, the largest first; which of them most, where that is known."""
    sure = [item for item in effects if item.sure]
    most = [item.axis for item in sure if item.most]
    told = []
    for item in sure:
        which = item.axis
        if item is sure[0]:
            others = f", or {words.listed(most[1:])}" if len(most) > 1 else ""
            which = f"{item.axis} matters most{others}"
        told.append(
            f"{which}: {item.slowest or DEFAULT} takes {words.figures(item.apart, to=' to ')} "
            f"the time of {item.fastest or DEFAULT}"
        )
    return told


def _others(advice: Advice) -> list[str]:
    """The axes of which nothing is sure, and those that surely do not matter, in one line."""
    alike = {item.axis: item for item in advice.indifferent}
    unsure = [item for item in advice.effects if not item.sure]
    parts = [
        f"{item.axis} does not matter ({within(alike[item.axis])})"
        for item in unsure
        if item.axis in alike
    ]
    unclear = [
        f"{item.axis} ({words.times_as_long(item.apart.ratio)})"
        for item in unsure
        if item.axis not in alike
    ]
    if unclear:
        parts.append(f"not sure to matter: {words.listed(unclear)}")
    return ["; ".join(parts)] if parts else []


def within(item: Indifferent) -> str:
    """`within 1.2%`: the larger distance from 1 of the ends of its intervals."""
    return f"within {words.percent(max(item.high - 1, 1 / item.low - 1, 0.0))}"


def interaction(item: Interaction) -> str:
    """`version tf20 against tf114 takes 1.01x with mode graph, but 1.31x with mode eager`."""
    change, by = item.change, item.by
    return (
        f"{_change(change)} takes {words.times_as_long(item.at_reference)} with "
        f"{by.axis} {by.reference or DEFAULT}, but {words.times_as_long(item.at_level)} with "
        f"{by.axis} {by.level or DEFAULT}: a factor of {words.figures(item.factor)}"
    )


def _change(change: Change) -> str:
    return f"{change.axis} {change.level or DEFAULT} against {change.reference or DEFAULT}"


def _extreme(item: Extreme) -> str:
    return f"{item.arm} {item.case}"
