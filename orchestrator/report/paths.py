"""Which path ran: the way that each arm took through its framework, where the arms differ."""

from __future__ import annotations

import statistics
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Final

from orchestrator.paired.cells import PATHS
from orchestrator.report import words
from orchestrator.report.marks import grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

# More cases of one path than this are counted.
_NAMED: Final = 3
Path = tuple[str, ...]


def section(frame: pd.DataFrame) -> Iterator[str]:
    """A row an arm, for the cases in which arms took different paths; nothing where none did."""
    found = differing(frame)
    if not found:
        return
    columns = [
        place
        for place in range(len(PATHS))
        if any(path[place] for arms in found for path in arms.values())
    ]
    names = list(PATHS.values())
    yield "## Which path ran"
    yield (
        "What the version chose to do with the same request: this, more than the number of the "
        "version, is what a ratio above is made of."
    )
    yield grid(
        ("case", "arm", *(names[place] for place in columns)),
        [
            (_cases(cases), arm, *(path[place] or words.NOTHING for place in columns))
            for arms, cases in zip(found, found.values(), strict=True)
            for arm, path in arms.items()
        ],
        left=2 + len(columns),
    )


class _Arms(dict[str, Path]):
    """The path of every arm of a case; alike for cases in which all arms took the same."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


def differing(frame: pd.DataFrame) -> dict[_Arms, list[str]]:
    """Cases by the paths of their arms, those only in which two arms differ."""
    ok = (frame["outcome"] == "ok").to_numpy() & frame["counts"].to_numpy(dtype=bool)
    seen = frame.loc[ok, ["case", "arm", *PATHS]].astype(object)
    members: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    for case, arm, *ways in seen.where(seen.notna(), None).itertuples(index=False, name=None):
        members.setdefault((case, arm), []).append(tuple(ways))
    by_case: dict[str, _Arms] = {}
    for (case, arm), each in members.items():
        by_case.setdefault(case, _Arms())[arm] = _path(tuple(each))
    found: dict[_Arms, list[str]] = {}
    for case, arms in by_case.items():
        if len(set(arms.values())) > 1:
            found.setdefault(arms, []).append(case)
    return found


@lru_cache(maxsize=1024)
def _path(processes: tuple[tuple[object, ...], ...]) -> Path:
    """The path of some processes; most cells have the same ones."""
    return tuple(map(_way, zip(*processes, strict=True)))


def _way(values: Iterable[object]) -> str:
    """All that the processes did; of numbers the median."""
    seen = [value for value in values if value is not None]
    numbers = [float(value) for value in seen if isinstance(value, Integral)]
    if numbers:
        return f"{statistics.median(numbers):g}"
    return " or ".join(sorted({str(value) for value in seen}))


def _cases(cases: list[str]) -> str:
    return ", ".join(cases) if len(cases) <= _NAMED else f"{len(cases)} cases, {cases[0]} ..."
