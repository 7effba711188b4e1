"""What stands in records beside the timings: profiles, and what went wrong in a user's own file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.model import attempts
from orchestrator.model.findings import Broken, Profiled
from orchestrator.model.phrases import first_line
from orchestrator.store import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record

_OWN: Final = "workload"  # the kind of a failure in the user's own file


def profiles(runs: Sequence[tuple[Plan, Sequence[Record]]]) -> tuple[Profiled, ...]:
    """Every profile that was planned, in the order of the plan; the last attempt of each.

    Of several runs that profiled one cell, the last that has its profile stands for it.
    """
    found: dict[tuple[str, str], Profiled] = {}
    for plan, records in attempts.united(runs):
        last = {record.key: record for record in sorted(records, key=lambda one: one.attempt)}
        for job in plan.profiles:
            one = _profiled(job.arm.name, job.case, last.get(job.key))
            if one.profile is not None or (job.arm.name, job.case) not in found:
                found[job.arm.name, job.case] = one
    return tuple(found.values())


def broken(runs: Sequence[tuple[Plan, Sequence[Record]]]) -> tuple[Broken, ...]:
    """Every traceback of a user's own file once, with the arms and the number of jobs it ended."""
    found: dict[str, list[str]] = {}
    for _, records in attempts.united(runs):
        for record in records:
            failure = record.failure
            if failure and failure.kind == _OWN and failure.traceback:
                found.setdefault(failure.traceback, []).append(record.arm.name)
    return tuple(
        Broken(traceback=text, arms=tuple(sorted(set(arms))), jobs=len(arms))
        for text, arms in found.items()
    )


def _profiled(arm: str, case: str, record: Record | None) -> Profiled:
    if record is None:
        return Profiled(arm=arm, case=case, reason="no record: the run was interrupted")
    profile = record.result.profile if record.result else None
    if profile is None:
        message = first_line(record.failure.message if record.failure else None)
        return Profiled(arm=arm, case=case, reason=f"{record.outcome}: {message}")
    folder = RunFolder(Path()).trace_path(record.key, record.attempt)
    return Profiled(arm=arm, case=case, profile=profile, folder=folder.as_posix())
