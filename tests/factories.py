"""Plans and records made of literal values, for every test that reads or reports runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.model.cell import Arm, Case
from orchestrator.model.plan import (
    PLAN_SCHEMA,
    PROFILE_ROUND,
    Block,
    Job,
    Limits,
    Plan,
    PlannedEnvironment,
    PlannedWorkload,
)
from orchestrator.model.record import RECORD_SCHEMA, Host, Instant, Record
from orchestrator.model.result import (
    RESULT_SCHEMA,
    Failure,
    Iterations,
    Outputs,
    Phases,
    Profile,
    Result,
    Timing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.model.names import Api, Mode, Outcome

GUEST = "guest-0"
HOST = Host(
    machine="m0",
    node="node0",
    cpu="Test CPU",
    cores=2,
    memory_bytes=2**33,
    kernel="6.1",
)
JOB_S = 4.0  # from the start of one process to the start of the next


def environment(identifier: str, **facts: Any) -> PlannedEnvironment:  # noqa: ANN401
    """A planned environment with the facts of the real row, where there is one."""
    tensorflow, keras, native = {
        "tf114": ("1.14.0", "2.2.5", "graph"),
        "tf20": ("2.0.0", "2.3.1", "eager"),
        "tf21": ("2.1.0", "2.3.1", "eager"),
        "tf22": ("2.2.0", "2.3.1", "eager"),
    }.get(identifier, ("1.14.0", "2.2.5", "graph"))
    values = {
        "identifier": identifier,
        "tensorflow": tensorflow,
        "keras": keras,
        "python": "3.7.16",
        "variant": "cpu",
        "native_mode": native,
        "lock_digest": f"lock-{identifier}",
    }
    return msgspec.convert(values | facts, PlannedEnvironment)


def case(method: str = "train_on_batch", **facts: Any) -> Case:  # noqa: ANN401
    """The small model on small numpy data, unless said otherwise."""
    values = {
        "model": "small",
        "data": "small",
        "input": "numpy",
        "method": method,
        "batch_shape": (32, 140, 30),
        "batches": 8,
        "iterations": 200,
        "warmup": 10,
    }
    return msgspec.convert(values | facts, Case)


def plan(
    *,
    environments: Sequence[str | PlannedEnvironment] = ("tf114", "tf20"),
    cases: Sequence[Case] | None = None,
    forms: Sequence[tuple[Api, Mode]] = (("tf.keras", "graph"), ("tf.keras", "eager")),
    rounds: int = 6,
    run_id: str = "run0",
    workloads: Sequence[str | None] = (None,),
    **facts: Any,  # noqa: ANN401
) -> Plan:
    """Every arm of every case in every round. The order within a block turns by one a round."""
    planned = [environment(item) if isinstance(item, str) else item for item in environments]
    cases = (case(),) if cases is None else cases
    arms = [
        Arm(environment=item.identifier, api=api, mode=mode, workload=workload)
        for item in planned
        for api, mode in forms
        for workload in workloads
    ]
    blocks = [
        _block(run_id, one, arms[number % len(arms) :] + arms[: number % len(arms)], number)
        for number in range(rounds)
        for one in cases
    ]
    defaults: dict[str, Any] = {
        "workloads": tuple(workload(name) for name in workloads if name),
        "created": "2026-01-02T03:04:05+00:00",
        "seed": 7,
        "preset": "quick",
        "threshold": 0.02,
        "reference": planned[0].identifier,
        "limits": Limits(first_call_s=60, job_s=60),
        "guest_digest": GUEST,
    }
    return Plan(
        schema=PLAN_SCHEMA,
        run_id=run_id,
        rounds=rounds,
        environments=tuple(planned),
        cases=tuple(cases),
        blocks=tuple(blocks),
        **(defaults | facts),
    )


def workload(name: str) -> PlannedWorkload:
    """A user's own model, one file."""
    return PlannedWorkload(name=name, entry=f"{name}.py", digest=f"digest-{name}")


def with_profiles(of: Plan) -> Plan:
    """The plan with a profile of every cell."""
    cells = {(job.case, job.arm): job for job in of.jobs}.values()
    return msgspec.structs.replace(
        of,
        profiles=tuple(
            msgspec.structs.replace(job, key=f"{job.key}|profile", round=PROFILE_ROUND)
            for job in cells
        ),
    )


def _block(run_id: str, one: Case, arms: Sequence[Arm], number: int) -> Block:
    jobs = tuple(
        Job(
            key=f"{run_id}|{arm.name}|{one.name}|{number + 1}".replace("/", "_"),
            arm=arm,
            case=one.name,
            round=number + 1,
            slot=slot,
        )
        for slot, arm in enumerate(arms)
    )
    return Block(round=number + 1, case=one.name, jobs=jobs)


PROFILE = Profile(
    run_s=1.0, iterations=9, build=0.0, data=0.0, training=99.0, other=1.0, unattributed=0.0
)


def result(values: Sequence[float], **facts: Any) -> Result:  # noqa: ANN401
    """What a successful worker leaves; by default it did 200 iterations."""
    defaults: dict[str, Any] = {
        "outcome": "ok",
        "phases_s": Phases(import_=1.0, data=0.1, build=0.2, first_call=0.5),
        "warmup_s": (0.5, 0.4),
        "values_s": tuple(values),
        "timing": Timing(
            source="call", clock="perf_counter", clock_resolution_s=1e-9, overhead_s=1e-7, batch=1
        ),
        "iterations": Iterations(asked=200, done=200),
        "rss_bytes": (100, 300, 200),
        "losses": (0.7, 0.6),
        "outputs": Outputs(digest="out"),
        "parameters": 162_049,
        "executed_as": "session",
    }
    return Result(schema=RESULT_SCHEMA, **(defaults | facts))


def record(
    of: Plan,
    job: Job,
    *,
    values: Sequence[float] = (0.01, 0.01, 0.01),
    outcome: Outcome = "ok",
    message: str = "it broke",
    kind: str = "exception",
    at: float | None = None,
    attempt: int = 1,
    **facts: Any,  # noqa: ANN401
) -> Record:
    """The record of one job. Processes start one after the other, in the order of the plan."""
    start = (*of.jobs, *of.profiles).index(job) * JOB_S if at is None else at
    ok = outcome == "ok"
    defaults: dict[str, Any] = {
        "outcome": outcome,
        "failure": None if ok else Failure(kind=kind, message=message),
        "result": (result([], profile=PROFILE) if job.is_profile else result(values))
        if ok
        else None,
        "start": _instant(start),
        "end": _instant(start + 3.0),
        "host": HOST,
        "guest_digest": of.guest_digest,
        "lock_digest": of.environment(job.arm.environment).lock_digest,
    }
    return Record(
        schema=RECORD_SCHEMA,
        run_id=of.run_id,
        key=job.key,
        attempt=attempt,
        arm=job.arm,
        case=next(one for one in of.cases if one.name == job.case),
        round=job.round,
        slot=job.slot,
        **(defaults | facts),
    )


def _instant(seconds: float) -> Instant:
    return Instant(wall=1.7e9 + seconds, monotonic=1000 + seconds)


def measured(of: Plan, seconds: Callable[[Job], float]) -> list[Record]:
    """Records of a whole run in which every iteration of a job takes `seconds(job)`."""
    return [
        record(of, job, values=[seconds(job)] * 3, at=place * JOB_S)
        for place, job in enumerate(of.jobs)
    ]


def by_arm(times: Mapping[str, Sequence[float]]) -> Callable[[Job], float]:
    """Seconds by arm's name and round: `{"tf114/tf.keras/graph": [.010, .011]}`; cycled."""
    return lambda job: times[job.arm.name][(job.round - 1) % len(times[job.arm.name])]
