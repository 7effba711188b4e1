"""Which cells are compared: pairs that differ in one thing, and each environment as installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from orchestrator.errors import UsageError, nearest
from orchestrator.model.comparison import BETWEEN_ARMS
from orchestrator.model.names import ContrastKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from orchestrator.verdict.cells import Cells, Key

# Kinds that change one part of a cell: the part, its value in the reference, in the candidate.
SWAPS: Final[Mapping[ContrastKind, tuple[str, str, str]]] = {
    "mode": ("mode", "graph", "eager"),
    "api": ("api", "tf.keras", "keras"),
    "input": ("input", "numpy", "dataset"),
    "method": ("method", "train_on_batch", "fit"),
    "device": ("device", "cpu", "gpu"),
}
# The same cells as installed and at equal mode answer one question, so they share one correction.
FAMILIES: Final[Mapping[ContrastKind, str]] = {"as_installed": "version"}


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Two cells to compare, as places in `Cells`."""

    kind: ContrastKind
    candidate: int
    reference: int

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
            *_workloads(place),
            *(pair for kind in SWAPS for pair in _swapped(place, kind)),
        ]
    else:
        # Every other arm is then compared with that one, and in no other way.
        found = [
            *_against_arm(cells, reference),
            *(pair for kind in SWAPS if kind not in BETWEEN_ARMS for pair in _swapped(place, kind)),
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


def _workloads(place: Mapping[Key, int]) -> Iterator[Pairing]:
    """Every other workload file against the first one."""
    files = list(dict.fromkeys(key.workload for key in place))
    for key, cell in place.items():
        for other in files[1:]:
            candidate = place.get(key._replace(workload=other))
            if key.workload == files[0] and candidate is not None:
                yield Pairing(kind="workload", candidate=candidate, reference=cell)


def _swapped(place: Mapping[Key, int], kind: ContrastKind) -> Iterator[Pairing]:
    part, of_reference, of_candidate = SWAPS[kind]
    for key, cell in place.items():
        if getattr(key, part) == of_reference:
            candidate = place.get(key._replace(**{part: of_candidate}))
            if candidate is not None:
                yield Pairing(kind=kind, candidate=candidate, reference=cell)


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
        return "as_installed" if both_native else "version"
    if one.mode != other.mode:
        return "mode"
    return "api" if one.api != other.api else "workload"
