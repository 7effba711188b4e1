"""Cells as choices: which of them do the same work, and what each of them is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from orchestrator.model import axes
from orchestrator.model.advice import Configuration, Task
from orchestrator.model.cell import split_knobs
from orchestrator.model.knobs import OF_WORK
from orchestrator.model.names import GROUP_OF, Input, Method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.model.comparison import Comparison
    from orchestrator.paired.cells import Cells, Key

_NO_CHOICE: Final = axes.WORK_AXES | {"device"}


@dataclass(frozen=True, kw_only=True)
class Grouped:
    """One task and its cells, as places in `Cells`."""

    task: Task
    members: tuple[int, ...]  # those with a number
    as_installed: int | None  # what the reference does when nobody chooses


def tasks_of(cells: Cells, comparison: Comparison) -> list[Grouped]:
    """Every task with a number, in the order of the table."""
    measured = cells.measured.sum(axis=1)
    groups: dict[Task, list[int]] = {}
    for cell, key in enumerate(cells.keys):
        if measured[cell]:
            groups.setdefault(_task(key), []).append(cell)
    return [
        Grouped(
            task=task,
            members=tuple(members),
            as_installed=_installed(cells, members, comparison.reference),
        )
        for task, members in groups.items()
    ]


def configuration(cells: Cells, cell: int, comparison: Comparison) -> Configuration:
    """A cell as something to choose."""
    key, side = cells.keys[cell], comparison.cells[cell]
    return Configuration(
        arm=cells.arms[cell],
        case=cells.cases[cell],
        environment=key.environment,
        api=key.api,
        mode=key.mode,
        workload=key.workload,
        input=key.input,
        method=key.method,
        knobs=_joined({k: v for k, v in split_knobs(key.knobs).items() if k not in OF_WORK}),
        seconds=side.seconds,
    )


def levels(key: Key) -> dict[str, str]:
    """The value of every axis on which somebody can choose for the same work on one device."""
    return {axis: value for axis, value in axes.values(key).items() if axis not in _NO_CHOICE}


def _task(key: Key) -> Task:
    knobs = {k: v for k, v in split_knobs(key.knobs).items() if k in OF_WORK}
    return Task(
        method=GROUP_OF[key.method],
        size=f"{key.model}-{key.data}",
        device=key.device,
        knobs=_joined(knobs),
    )


def _joined(knobs: Mapping[str, str]) -> str:
    return "+".join(f"{name}={value}" for name, value in knobs.items())


def _installed(cells: Cells, members: list[int], reference: str) -> int | None:
    """The reference in its own default, with the plainest input and method that were measured."""
    plain = [
        cell
        for cell in members
        if cells.arms[cell] == reference
        or (cells.native[cell] and cells.keys[cell].environment == reference)
    ]
    inputs, methods = get_args(Input), get_args(Method)

    def rank(cell: int) -> tuple[int, int, int]:
        key = cells.keys[cell]
        turned = len(split_knobs(key.knobs))  # those of the work are alike here
        return turned, methods.index(key.method), inputs.index(key.input)

    return min(plain, key=rank, default=None)
