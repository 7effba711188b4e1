"""Which cases exist: every model with the data that it can take."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, get_args

from orchestrator.model.cell import Case
from orchestrator.model.names import Input, Method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.grid import Grid

# `given` and `step` are what a workload file brings: no model of the guest has them.
INPUTS: Final[tuple[Input, ...]] = tuple(word for word in get_args(Input) if word != "given")
METHODS: Final[tuple[Method, ...]] = tuple(word for word in get_args(Method) if word != "step")
SIMPLE: Final[frozenset[Input]] = frozenset({"numpy", "tensor"})  # one batch, again and again
DATASET_BATCHES: Final = 8  # distinct batches: the origin's 200 would not fit into one graph
LIFE_CYCLES: Final = 100  # each builds a model: a leak shows in fewer than steps need


def pairs(grid: Grid) -> list[str]:
    """Every size by name, `small-small`, those that cannot exist too."""
    return [
        f"{name}-{data}" for name, facts in grid.models.items() for data in facts.data or grid.data
    ]


def shortfall(grid: Grid, size: str) -> str | None:
    """Why a model cannot take this data, or None when it can."""
    model, data = size.split("-")
    length = batch_shape(grid, model, data)[1]
    needed = grid.models[model].minimum_length
    if length >= needed:
        return None
    return (
        f"The {model} model cannot take {data} data: its convolutions need sequences of at least "
        f"{needed} steps, and {data} data has {length}."
    )


def batch_shape(grid: Grid, model: str, data: str) -> tuple[int, ...]:
    """The shape of a batch: from the model's own table of data, or the grid's."""
    return (grid.models[model].data or grid.data)[data]


def cases(
    grid: Grid, sizes: Sequence[str], inputs: Sequence[Input], methods: Sequence[Method]
) -> tuple[Case, ...]:
    """Every size with every input and method, without knobs, on the CPU."""
    return tuple(
        _case(grid, size, given, method)
        for size, given, method in itertools.product(sizes, inputs, methods)
    )


def _case(grid: Grid, size: str, given: Input, method: Method) -> Case:
    model, data = size.split("-")
    facts = grid.models[model]
    return Case(
        model=model,
        data=data,
        input=given,
        method=method,
        batch_shape=batch_shape(grid, model, data),
        batches=1 if given in SIMPLE else DATASET_BATCHES,
        iterations=min(facts.iterations, LIFE_CYCLES)
        if method == "life_cycle"
        else facts.iterations,
        warmup=facts.warmup,
        parameters=facts.parameters,
    )
