"""What to say of environments on different Pythons: which names would bring them onto one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from orchestrator.pairs import choice
from orchestrator.pairs.releases import releases
from orchestrator.pairs.request import parse

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from orchestrator.model.matrix import Matrix, Row
    from orchestrator.pairs.choice import Candidate


@dataclass(frozen=True, kw_only=True)
class _Place:
    """An environment, its Python, and what it could be written as to get another one."""

    name: str
    python: str
    other: Candidate | None


def advice(rows: Sequence[Row], matrix: Matrix, *, given: Collection[str]) -> str | None:
    """That Python differs between these rows, and how they get one; None when they share one.

    `given`: identifiers of environments that somebody else made, which have the Python they have.
    """
    places = [_place(row, matrix, given) for row in rows]
    names: dict[str, list[str]] = {}
    for place in places:
        names.setdefault(place.python, []).append(place.name)
    if len(names) == 1:
        return None
    told = "; ".join(f"{python} for {', '.join(found)}" for python, found in names.items())
    start = f"Python differs, and explains a part of every difference that is found: {told}."
    python = _shared(places)
    if python is None:
        return f"{start} No one Python fits them all as they are."
    written = {
        place.name: place.other.pair.text
        for place in places
        if place.other is not None and place.python != python
    }
    instead = ", ".join(f"{text} for {name}" for name, text in written.items())
    return f"{start} Python {python} fits them all: write {instead}."


def _place(row: Row, matrix: Matrix, given: Collection[str]) -> _Place:
    minor = ".".join(row.python.split(".")[:2])
    movable = row.tensorflow in releases().tensorflow and row.identifier not in given
    on_the_fly = row.spec.startswith("tensorflow==")
    other = None
    if movable and (row.ours or on_the_fly):
        keras = f"+keras=={row.keras}" if on_the_fly and row.keras else ""
        pair = parse(f"tensorflow=={row.tensorflow}{keras}")
        other = None if pair is None else choice.settle(pair, matrix)
    return _Place(name=row.identifier, python=minor, other=other)


def _shared(places: Sequence[_Place]) -> str | None:
    """The Python that all would get, if those that can were written as pairs."""
    fixed = [place.python for place in places if place.other is None]
    moved = [place.other for place in places if place.other is not None]
    if not moved or len(set(fixed)) > 1:
        return None
    pythons = set(choice.pythons(moved, fixed=fixed))
    return max(pythons, key=Version) if len(pythons | set(fixed)) == 1 else None
