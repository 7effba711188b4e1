"""Whether a plan agrees with itself, and a record with its plan: files are edited by hand too."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from orchestrator.model.matrix import framework
from orchestrator.model.names import is_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from orchestrator.model.cell import Case
    from orchestrator.model.plan import Block, Goal, Job, Plan, PlannedEnvironment
    from orchestrator.model.record import Control, Record

_LARGEST_BATCH = 10**12  # calls, or steps of one call
_LONGEST_KEY = 128  # it is part of a file's name
_LATEST_S = 1e11  # since 1970, or since the machine was started: some thousand years


def plan_problem(plan: Plan) -> str | None:
    """The first thing in a plan that cannot be, with the field that it stands in."""
    return next(_plan_problems(plan), None)


def record_problem(run_id: str, jobs: Mapping[str, Job], record: Record) -> str | None:
    """Why a record is none of a run's, or None when it is one. `jobs`: those planned, by key."""
    if record.run_id != run_id:
        return f"run_id is {record.run_id!r}, and this run is {run_id!r}"
    job = jobs.get(record.key)
    if job is None:
        return f"key {record.key!r} is that of no job of this run"
    planned = {"arm": job.arm, "case": job.case, "round": job.round, "slot": job.slot}
    found = {
        "arm": record.arm,
        "case": record.case.name,
        "round": record.round,
        "slot": record.slot,
    }
    for field, value in found.items():
        if value != planned[field]:
            return f"{field} is not that of the job {record.key!r} in plan.json"
    usable = record.result is not None and record.result.usable(profiled=job.is_profile)
    if record.outcome == "ok" and not usable:
        what = "profile" if job.is_profile else "values_s, or with times in it that no work takes"
        return f"it succeeded without result.{what}"
    return _problem_by_itself(record)


def _problem_by_itself(record: Record) -> str | None:
    timing = record.result.timing if record.result else None
    host = record.host.machine
    problem = None
    if timing is not None and not 1 <= timing.batch <= _LARGEST_BATCH:
        problem = f"result.timing.batch is {timing.batch}"
    elif record.attempt < 1:
        problem = "attempt is less than 1"
    elif not _in_time(record):
        problem = "start or end is at no time that a clock shows"
    elif record.end.monotonic < record.start.monotonic:
        problem = "end is before start"
    elif record.control is not None and not _positive(record.control):
        problem = "control has a time that no work takes"
    elif not is_name(host) or len(host) > _LONGEST_KEY:
        problem = f"host.machine is {host[:_LONGEST_KEY]!r}, which is not a name"
    return problem


def _positive(control: Control) -> bool:
    return all(0 < value < _LATEST_S for value in (control.before_s, control.after_s))


def _in_time(record: Record) -> bool:
    start, end = record.start, record.end
    return max(abs(start.wall), abs(end.wall), abs(start.monotonic), abs(end.monotonic)) < _LATEST_S


def _plan_problems(plan: Plan) -> Iterator[str]:
    yield from _in_head(plan)
    yield from _repeated("environments", "identifier", (i.identifier for i in plan.environments))
    yield from _repeated("cases", "name", (case.name for case in plan.cases))
    yield from _repeated("blocks", "key", (job.key for job in plan.jobs))
    yield from _repeated("profiles", "key", (job.key for job in (*plan.jobs, *plan.profiles)))
    yield from _repeated("blocks", "round and case", ((b.round, b.case) for b in plan.blocks))
    for number, environment in enumerate(plan.environments):
        yield from _in_environment(f"environments[{number}]", environment)
    for number, case in enumerate(plan.cases):
        yield from _in_case(f"cases[{number}]", case)
    identifiers = {item.identifier for item in plan.environments}
    cases = {case.name for case in plan.cases}
    for number, block in enumerate(plan.blocks):
        yield from _in_block(f"blocks[{number}]", block, plan.rounds, identifiers, cases)
    for number, job in enumerate(plan.profiles):
        here = f"profiles[{number}]"
        if job.case not in cases:
            yield f"{here}.case {job.case!r} is none of its cases"
        if not job.is_profile:
            yield f"{here}.round is {job.round}, which is a round of timings"
        yield from _in_job(here, job, identifiers)
    yield from _in_workloads(plan)
    if plan.reference not in identifiers | {job.arm.name for job in plan.jobs}:
        yield f"reference {plan.reference!r} is none of its environments or arms"


def _in_head(plan: Plan) -> Iterator[str]:
    last = max((block.round for block in plan.blocks), default=plan.rounds)
    if plan.rounds < 1 or plan.rounds > last:
        yield f"rounds is {plan.rounds}, and its blocks have {last}"
    if not 0 < plan.threshold < 1:
        yield f"threshold is {plan.threshold}; it must lie between 0 and 1"
    for field in ("first_call_s", "job_s", "slow_first_call_s"):
        seconds = getattr(plan.limits, field)
        if not (math.isfinite(seconds) and seconds > 0):
            yield f"limits.{field} is {seconds}"
    if min(plan.pin, default=0) < 0:
        yield f"pin is {list(plan.pin)}"
    if not is_name(plan.run_id):
        yield f"run_id {plan.run_id!r} is not a name"
    if plan.goal is not None:
        yield from _in_goal(plan, plan.goal)
    for field in ("environments", "cases", "blocks"):
        if not getattr(plan, field):
            yield f"{field} is empty"


def _in_goal(plan: Plan, goal: Goal) -> Iterator[str]:
    if goal.budget_s is None and goal.precision is None:
        yield "goal is empty"
    if goal.budget_s is not None and not (math.isfinite(goal.budget_s) and goal.budget_s > 0):
        yield f"goal.budget_s is {goal.budget_s}"
    if goal.precision is not None and not 0 < goal.precision < 1:
        yield f"goal.precision is {goal.precision}; it must lie between 0 and 1"
    arms: dict[str, set[str]] = {}
    for block in plan.blocks:
        here = {job.arm.name for job in block.jobs}
        if arms.setdefault(block.case, here) != here:
            yield f"round {block.round} of {block.case!r} has other arms than the first one"


def _repeated(field: str, what: str, values: Iterable[object]) -> Iterator[str]:
    for value, number in Counter(values).items():
        if number > 1:
            yield f"{field} has the {what} {value!r} {number} times"


def _in_environment(where: str, item: PlannedEnvironment) -> Iterator[str]:
    if not is_name(item.identifier):
        yield f"{where}.identifier {item.identifier!r} is not a name"
    kind, version = framework(item)
    for field, text in ((kind, version), ("keras", item.keras), ("python", item.python)):
        # An environment may have no package `keras`; everything else it has.
        if not (_is_version(text) or (field == "keras" and not text)):
            yield f"{where}.{field} {text!r} is not a version"


def _in_case(where: str, case: Case) -> Iterator[str]:
    for field in ("batches", "iterations"):
        if getattr(case, field) < 1:
            yield f"{where}.{field} is {getattr(case, field)}"
    if case.warmup < 0:
        yield f"{where}.warmup is {case.warmup}"
    if not case.batch_shape or min(case.batch_shape) < 1:
        yield f"{where}.batch_shape is {list(case.batch_shape)}"


def _in_block(
    where: str, block: Block, rounds: int, identifiers: set[str], cases: set[str]
) -> Iterator[str]:
    if block.case not in cases:
        yield f"{where}.case {block.case!r} is none of its cases"
    if not 1 <= block.round <= rounds:
        yield f"{where}.round is {block.round}, of {rounds}"
    if not block.jobs:
        yield f"{where}.jobs is empty"
    yield from _repeated(f"{where}.jobs", "arm", (job.arm.name for job in block.jobs))
    yield from _repeated(f"{where}.jobs", "slot", (job.slot for job in block.jobs))
    for number, job in enumerate(block.jobs):
        here = f"{where}.jobs[{number}]"
        if (job.case, job.round) != (block.case, block.round):
            yield f"{here} has not the case and the round of its block"
        yield from _in_job(here, job, identifiers)


def _in_job(where: str, job: Job, identifiers: set[str]) -> Iterator[str]:
    if job.arm.environment not in identifiers:
        yield f"{where}.arm.environment {job.arm.environment!r} is none of its environments"
    # It becomes part of file names, and must not lead out of the run folder.
    if not job.key or job.key.startswith(".") or set("/\0") & set(job.key):
        yield f"{where}.key {job.key!r} is not the key of a job"
    if len(job.key.encode(errors="surrogateescape")) > _LONGEST_KEY:
        yield f"{where}.key is {len(job.key)} letters long"


def _in_workloads(plan: Plan) -> Iterator[str]:
    yield from _repeated("workloads", "name", (item.name for item in plan.workloads))
    for number, item in enumerate(plan.workloads):
        if not is_name(item.name):
            yield f"workloads[{number}].name {item.name!r} is not a name"
        # It is imported, and must not lead out of the run folder either.
        if not item.entry or item.entry == ".." or set("/\0") & set(item.entry):
            yield f"workloads[{number}].entry {item.entry!r} is not a file of the workload's folder"
    names = {item.name for item in plan.workloads}
    several = len(names) > 1
    for job in (*plan.jobs, *plan.profiles):
        if job.arm.workload not in names if several else job.arm.workload is not None:
            yield f"the arm {job.arm.name!r} has a workload that is not one of several"


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
