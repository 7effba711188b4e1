"""Which runs must not be put together, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import InputError, UsageError
from orchestrator.merge import comparability
from orchestrator.merge.parts import Run
from orchestrator.model import attempts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.model.comparability import Difference
    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record


def check_together(runs: Sequence[tuple[Plan, Sequence[Record]]], places: Sequence[str]) -> None:
    """Whether runs of which each is sound by itself may stand in one table."""
    check_copies([Run(plan, [], {}) for plan, _ in runs], places)
    check_comparable(runs)


def check_comparable(runs: Iterable[tuple[Plan, Sequence[Record]]]) -> None:
    """UsageError for runs of which one name means two things, with every such field."""
    found = comparability.blocking(runs)
    if found:
        raise UsageError(
            "These runs cannot be put together: " + "; ".join(map(_told, found)) + ".",
            why="The matrix, the grid, the workload or stackrace itself was changed between them: "
            "what a process does, or when it looks at the clock, is not the same.",
            fix="Compare them apart from each other, or measure again with one version.",
        )


def _told(item: Difference) -> str:
    """`batches of small-small/numpy/fit is 8 in run1, but 16 in run2`."""
    values = [f"{value} in {', '.join(places)}" for value, places in item.values.items()]
    return f"{item.field} is {', but '.join(values)}"


def check_copies(runs: Sequence[Run], places: Sequence[str]) -> None:
    """Copies of a run agree on every record that both have; InputError names two that do not."""
    known: dict[str, tuple[str, Plan]] = {}
    for run, place in zip(runs, places, strict=True):
        plan = run.plan
        for mark in (f"run_id {plan.run_id}", *(f"job {job.key}" for job in plan.jobs)):
            other, same = known.setdefault(mark, (place, plan))
            if plan is not same and attempts.longer(same, plan) is None:
                raise UsageError(
                    f"{other} and {place} are two different runs with the same {mark}.",
                    why="They are copies of one run, and the plan of one of them was edited.",
                    fix="Leave one of them out.",
                )
    found: dict[tuple[str, int], tuple[str, Run, Record]] = {}
    for run, place in zip(runs, places, strict=True):
        for record in run.records:
            which = record.key, record.attempt
            other, first_run, first = found.setdefault(which, (place, run, record))
            if first is record:
                continue
            if first != record or not run.numbers(which).equals(first_run.numbers(which)):
                name = f"records/{record.key}.{record.attempt}.json"
                raise InputError(
                    f"{other}/{name} and {place}/{name} contradict each other.",
                    why="Both folders are copies of one run, and both were resumed, or one was "
                    "edited.",
                    fix="Leave one of them out.",
                )
