"""Which runs must not be put together, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import InputError, UsageError
from orchestrator.model.matrix import title

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record


def check_guests(runs: Iterable[tuple[Plan, Sequence[Record]]]) -> None:
    """Results of changed code are never compared."""
    found: dict[str, set[str]] = {}
    for plan, records in runs:
        for digest in {plan.guest_digest, *(record.guest_digest for record in records)}:
            found.setdefault(digest, set()).add(plan.run_id)
    if len(found) > 1:
        lines = [f"{', '.join(sorted(ids))}: guest {digest}" for digest, ids in found.items()]
        raise UsageError(
            "These runs were measured by different workload code: " + "; ".join(lines) + ".",
            why="What a process does, and when it looks at the clock, may have changed between.",
            fix="Compare runs of one version of stackrace, or measure again.",
        )


def check_alike(plans: Iterable[Plan]) -> None:
    """One name means one thing in every run."""
    known: dict[str, tuple[str, object]] = {}
    for plan in plans:
        meanings: dict[str, object] = {item.identifier: title(item) for item in plan.environments}
        meanings |= {
            case.name: f"batch shape {case.batch_shape}, {case.parameters} parameters"
            for case in plan.cases
        }
        meanings |= {
            f"The workload {item.name}": f"of digest {item.digest[:12]}" for item in plan.workloads
        }
        for name, meaning in meanings.items():
            run_id, other = known.setdefault(name, (plan.run_id, meaning))
            if other != meaning:
                raise UsageError(
                    f"{name} is {other} in run {run_id}, but {meaning} in run {plan.run_id}.",
                    why="The matrix, the grid or the workload was changed between the two.",
                    fix="Compare these runs apart from each other.",
                )


def check_copies(runs: Sequence[tuple[Plan, Sequence[Record]]], places: Sequence[str]) -> None:
    """Copies of a run agree on every record that both have; InputError names two that do not."""
    known: dict[str, tuple[str, Plan]] = {}
    for (plan, _), place in zip(runs, places, strict=True):
        for mark in (f"run_id {plan.run_id}", *(f"job {job.key}" for job in plan.jobs)):
            other, same = known.setdefault(mark, (place, plan))
            if same != plan:
                raise UsageError(
                    f"{other} and {place} are two different runs with the same {mark}.",
                    why="They are copies of one run, and the plan of one of them was edited.",
                    fix="Leave one of them out.",
                )
    found: dict[tuple[str, int], tuple[str, Record]] = {}
    for (_, records), place in zip(runs, places, strict=True):
        for record in records:
            other, first = found.setdefault((record.key, record.attempt), (place, record))
            if first != record:
                name = f"records/{record.key}.{record.attempt}.json"
                raise InputError(
                    f"{other}/{name} and {place}/{name} contradict each other.",
                    why="Both folders are copies of one run, and both were resumed, or one was "
                    "edited.",
                    fix="Leave one of them out.",
                )
