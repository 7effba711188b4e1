"""Which cells are compared: pairs that differ in one thing, and each environment as installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from orchestrator.errors import UsageError, nearest
from orchestrator.model.cell import split_knobs
from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.model.names import GROUP_OF, Api, ContrastKind, Device, Input, Method, Mode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from orchestrator.paired.cells import Cells, Key

# Kinds whose two cells differ in the part of that name, and the order in which its values are
# looked through for the reference: the first that is there. Values without an order keep theirs.
ORDERS: Final[Mapping[ContrastKind, tuple[str, ...]]] = {
    "mode": get_args(Mode),
    "api": ("tf.keras", *(api for api in get_args(Api) if api != "tf.keras")),
    "workload": (),
    "input": get_args(Input),
    "method": get_args(Method),
    "device": get_args(Device),
}
# The same cells as installed and at equal mode answer one question, so they share one correction.
FAMILIES: Final[Mapping[ContrastKind, str]] = {"as_installed": "version"}


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Two cells to compare, as places in `Cells`."""

    kind: ContrastKind
    candidate: int
    reference: int
    knob: str = ""  # of the kind `knob`: which one

    @property
    def family(self) -> str:
        """The contrasts that are corrected together with this one."""
        return FAMILIES.get(self.kind, self.kind)

    @property
    def question(self) -> tuple[str, int, int]:
        """Alike for two contrasts of the same cells in one family: they are one comparison."""
        return self.family, self.candidate, self.reference


def check_reference(cells: Cells, environments: Sequence[str], reference: str | None) -> str:
    """The reference: an environment or an arm of the table; by default the first environment."""
    if reference is None:
        return environments[0]
    valid = [*environments, *dict.fromkeys(cells.arms)]
    if reference not in valid:
        raise UsageError(
            f"The reference {reference!r} is no environment or arm of these runs. "
            f"{nearest(reference, valid)}",
            fix="An arm is environment/api/mode, such as tf114/tf.keras/graph.",
        )
    return reference


def pairings(
    cells: Cells,
    *,
    environments: Sequence[str],
    reference: str,
    kinds: Collection[ContrastKind] | None,
) -> list[Pairing]:
    """All contrasts whose two cells were planned, kind by kind, as installed first."""
    place = {key: number for number, key in enumerate(cells.keys)}
    if reference in environments:
        others = [name for name in environments if name != reference]
        found = [
            *_as_installed(cells, place, reference, others),
            *_versions(place, reference, others),
            *(pair for kind in ORDERS for pair in _swapped(place, kind)),
            *_knobs(place),
        ]
    else:
        # Every other arm is then compared with that one, and in no other way.
        found = [
            *_against_arm(cells, reference),
            *(
                pair
                for kind in ORDERS
                if kind not in BETWEEN_ARMS
                for pair in _swapped(place, kind)
            ),
            *_knobs(place),
        ]
    order = get_args(ContrastKind)
    found.sort(key=lambda pair: order.index(pair.kind))
    return [pair for pair in found if kinds is None or pair.kind in kinds]


def _as_installed(
    cells: Cells, place: Mapping[Key, int], reference: str, others: Sequence[str]
) -> Iterator[Pairing]:
    """Each environment in its own default: tf.keras where it has that, in the mode it starts in."""
    own = [cells.keys[cell] for cell in _where(cells)]
    native = {key.environment: (key.api, key.mode) for key in own}
    for key, cell in place.items():
        if key.environment != reference or not cells.native[cell]:
            continue
        for other in others:
            api, mode = native.get(other, ("", ""))
            candidate = place.get(key._replace(environment=other, api=api, mode=mode))
            if candidate is not None:
                yield Pairing(kind="as_installed", candidate=candidate, reference=cell)


def _where(cells: Cells) -> list[int]:
    return [int(cell) for cell in cells.native.nonzero()[0]]


def _versions(place: Mapping[Key, int], reference: str, others: Sequence[str]) -> Iterator[Pairing]:
    for key, cell in place.items():
        if key.environment != reference:
            continue
        for other in others:
            candidate = place.get(key._replace(environment=other))
            if candidate is not None:
                yield Pairing(kind="version", candidate=candidate, reference=cell)


def _swapped(place: Mapping[Key, int], kind: ContrastKind) -> Iterator[Pairing]:
    """Among cells that differ in this part alone, every other one against the first."""
    values = dict.fromkeys((*ORDERS[kind], *(getattr(key, kind) for key in place)))
    rank = {value: number for number, value in enumerate(values)}
    groups: dict[Key, list[Key]] = {}
    for key in place:
        same: dict[str, str] = {kind: GROUP_OF[key.method] if kind == "method" else ""}
        groups.setdefault(key._replace(**same), []).append(key)
    for members in groups.values():
        reference, *others = sorted(members, key=lambda key: rank[getattr(key, kind)])
        for key in others:
            yield Pairing(kind=kind, candidate=place[key], reference=place[reference])


def _knobs(place: Mapping[Key, int]) -> Iterator[Pairing]:
    """Among cells whose knobs differ in one alone: all against that without it, or the first."""
    turned = {key: split_knobs(key.knobs) for key in place}
    names = dict.fromkeys(name for knobs in turned.values() for name in knobs)
    for name in names:
        groups: dict[tuple[Key, tuple[tuple[str, str], ...]], list[Key]] = {}
        for key, knobs in turned.items():
            others = tuple(item for item in knobs.items() if item[0] != name)
            groups.setdefault((key._replace(knobs=""), others), []).append(key)
        for members in groups.values():
            reference, *further = sorted(members, key=lambda key: name in turned[key])
            for key in further:
                yield Pairing(
                    kind="knob", candidate=place[key], reference=place[reference], knob=name
                )


def _against_arm(cells: Cells, reference: str) -> Iterator[Pairing]:
    """Every other arm of the same case, named after the first thing in which they differ."""
    by_case = {
        case: cell
        for cell, (arm, case) in enumerate(zip(cells.arms, cells.cases, strict=True))
        if arm == reference
    }
    for candidate, (arm, case) in enumerate(zip(cells.arms, cells.cases, strict=True)):
        cell = by_case.get(case)
        if cell is not None and arm != reference:
            kind = _kind(cells, candidate, cell)
            yield Pairing(kind=kind, candidate=candidate, reference=cell)


def _kind(cells: Cells, candidate: int, reference: int) -> ContrastKind:
    one, other = cells.keys[candidate], cells.keys[reference]
    if one.environment != other.environment:
        both_native = bool(cells.native[candidate] and cells.native[reference])
        return "as_installed" if both_native and one.workload == other.workload else "version"
    if one.mode != other.mode:
        return "mode"
    return "api" if one.api != other.api else "workload"
