"""In what runs and machines differ, in words: a few on a terminal, all of them in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.report import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.comparability import Difference, Grade

_MEANS: Final[dict[Grade, str]] = {
    "no_verdict": "machines differ, so that their times are not put together, only their ratios "
    "side by side",
    "warning": "measured under different conditions",
}
_FIELDS: Final = 2  # of one grade that a terminal tells in full


def top(differences: Sequence[Difference]) -> list[str]:
    """A line a grade, for a terminal; fields that have no room are named."""
    found = []
    for grade, meaning in _MEANS.items():
        members = [item for item in differences if item.grade == grade]
        told = [sentence(item) for item in members[:_FIELDS]]
        others = [item.field for item in members[_FIELDS:]]
        if others:
            told.append(f"and in {words.listed(others)}: see report.md")
        if told:
            found.append(f"{meaning}: {'; '.join(told)}")
    return found


def every(differences: Sequence[Difference]) -> list[str]:
    """A line a field."""
    return [
        f"{meaning}: {sentence(item)}"
        for grade, meaning in _MEANS.items()
        for item in differences
        if item.grade == grade
    ]


def sentence(item: Difference) -> str:
    """`kernel is 6.1 in run0, 6.2 in run1 and run2`."""
    values = [f"{value} in {words.listed(places)}" for value, places in item.values.items()]
    return f"{item.field} is {', '.join(values)}"
