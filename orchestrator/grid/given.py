"""Cases of a user's own model: its shapes, data as its file returns them, and its own step."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, get_args

from orchestrator.errors import UsageError
from orchestrator.grid.sizes import METHODS
from orchestrator.model.cell import Case
from orchestrator.model.names import Input, Method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.workload import Workload

SEVERAL: Final = "workload"  # stands for the model where each file is an arm
DEFAULT: Final = "default"
DEFAULT_SHAPE: Final = (32, 140, 30)
# A call of `step` does one step; one of `fit` goes through all that make_data returned.
NUMBERS: Final = {"step": (200, 10)}
OTHERS: Final = (50, 3)


def cases(workloads: Sequence[Workload]) -> tuple[tuple[Case, ...], ...]:
    """Own cases of the workloads; all with given data; all there are.

    UsageError when several files do not ask for the same thing: a case is what is held equal.
    """
    model = workloads[0].name if len(workloads) == 1 else SEVERAL
    shapes = _shapes(workloads)
    steps = {workload.has_step for workload in workloads}
    methods = (*METHODS, "step") if steps == {True} else METHODS
    own: Method = "step" if steps == {True} else "fit"
    others = tuple(word for word in get_args(Input) if word != "given")
    return (
        _cases(model, shapes, ("given",), (own,)),
        _cases(model, shapes, ("given",), methods),
        _cases(model, shapes, ("given", *others), methods),
    )


def check_steps(workloads: Sequence[Workload]) -> None:
    """UsageError when only some of the files have a step: which method is meant is not clear."""
    without = [workload.name for workload in workloads if not workload.has_step]
    if without and len(without) < len(workloads):
        own = next(workload.name for workload in workloads if workload.has_step)
        raise UsageError(
            f"{own} defines step(model, batch), and {', '.join(without)} does not.",
            fix="Define it in all of them, or choose what all can do, such as --case '*/fit'.",
        )


def _shapes(workloads: Sequence[Workload]) -> tuple[tuple[int, ...], ...]:
    named = {workload.name: workload.shapes for workload in workloads if workload.shapes}
    if len(set(named.values())) > 1:
        raise UsageError(
            f"The BATCH_SHAPES of {', '.join(named)} are not the same.",
            why="Files are compared on equal data, shape by shape.",
            fix="Write the same list into each, or into one of them alone.",
        )
    return next(iter(named.values()), ())


def _cases(
    model: str,
    shapes: Sequence[tuple[int, ...]],
    inputs: Sequence[Input],
    methods: Sequence[Method],
) -> tuple[Case, ...]:
    sizes = [("x".join(map(str, shape)), shape) for shape in shapes]
    return tuple(
        Case(
            model=model,
            data=data,
            input=given,
            method=method,
            batch_shape=shape,
            batches=1,  # of the shape above: the data themselves may be many more rows
            iterations=NUMBERS.get(method, OTHERS)[0],
            warmup=NUMBERS.get(method, OTHERS)[1],
        )
        for (data, shape), given, method in itertools.product(
            sizes or [(DEFAULT, DEFAULT_SHAPE)], inputs, methods
        )
    )
