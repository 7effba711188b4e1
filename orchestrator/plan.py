"""Makes the plan: rounds of blocks, cases and arms in random order, every job with its key."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import msgspec

from orchestrator.errors import UsageError, nearest
from orchestrator.model.cell import Arm, Case
from orchestrator.model.plan import (
    PLAN_SCHEMA,
    PROFILE_ROUND,
    Block,
    Goal,
    Job,
    Limits,
    Plan,
    PlannedEnvironment,
    PlannedWorkload,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from orchestrator.model.grid import Selection
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Device


def check_reference(rows: Sequence[Row], selection: Selection, reference: str | None) -> str:
    """The reference of a run: an environment or an arm of it; the first environment by default."""
    if reference is None:
        return rows[0].identifier
    valid = [row.identifier for row in rows] + [arm.name for arm in _arms(rows, selection)]
    if reference not in valid:
        raise UsageError(
            f"The reference {reference!r} is no environment or arm of this run. "
            f"{nearest(reference, valid)}",
            fix="An arm is environment/api/mode, such as tf114/tf.keras/graph.",
        )
    return reference


def make(
    selection: Selection,
    rows: Sequence[Row],
    environments: Sequence[PlannedEnvironment],
    *,
    preset: str,
    threshold: float,
    reference: str,
    limits: Limits,
    guest_digest: str,
    seed: int | None = None,
    gpus: Sequence[str] = (),
    against: Mapping[tuple[str, Device], str] = MappingProxyType({}),
    workloads: Sequence[PlannedWorkload] = (),
    profile: bool = False,
    pin: Sequence[int] = (),
    selftest: bool = False,
    goal: Goal | None = None,
) -> Plan:
    """Plan a run. The same seed gives the same order; without one, it is drawn and stored.

    `gpus`: UUIDs that GPU cases may use. `against`: why this machine cannot run an environment on
    a device, by identifier and device. `profile`: every cell is profiled as well. `pin`: the cores
    that workers are bound to. `selftest`: what the run shows is the machine. `goal`: rounds may be
    added to those of the selection until it is reached.
    """
    moment = datetime.now(tz=UTC)
    drawn = random.SystemRandom()
    seed = drawn.randrange(2**32) if seed is None else seed
    run_id = f"{moment:%Y%m%d-%H%M%S}-{drawn.randrange(16**4):04x}"
    by_identifier = {row.identifier: row for row in rows}
    make_job = _jobs(
        _identity(run_id, guest_digest, environments, workloads),
        lambda arm, case: (
            by_identifier[arm.environment].reason_against(arm, case)
            or against.get((arm.environment, case.device))
        ),
    )
    arms = _arms(rows, selection)
    return Plan(
        schema=PLAN_SCHEMA,
        run_id=run_id,
        created=moment.isoformat(timespec="seconds"),
        seed=seed,
        preset=preset,
        rounds=selection.rounds,
        threshold=threshold,
        reference=reference,
        limits=limits,
        guest_digest=guest_digest,
        gpus=tuple(gpus),
        environments=tuple(environments),
        cases=selection.cases,
        blocks=_blocks(selection, arms, make_job, seed=seed),
        workloads=tuple(workloads),
        profiles=_profiles(selection, arms, make_job) if profile else (),
        pin=tuple(pin),
        selftest=selftest,
        goal=goal,
    )


def added_round(plan: Plan, cases: Collection[str], number: int) -> tuple[Block, ...]:
    """One more round of a stored plan, with the blocks of these cases.

    The order is drawn from the plan's seed and the number: asked again, it gives the same blocks.
    """
    first = plan.blocks[0]
    unsupported = {
        (job.case, job.arm.name): job.unsupported
        for block in plan.blocks
        if block.round == first.round
        for job in block.jobs
    }
    make_job = _jobs(
        _identity(plan.run_id, plan.guest_digest, plan.environments, plan.workloads),
        lambda arm, case: unsupported[case.name, arm.name],
    )
    return _round(
        [case for case in plan.cases if case.name in cases],
        sorted((job.arm for job in first.jobs), key=lambda arm: arm.name),
        make_job,
        number=number,
        order=random.Random(f"{plan.seed} {number}"),  # noqa: S311  as in _blocks
    )


def _arms(rows: Sequence[Row], selection: Selection) -> list[Arm]:
    return [
        Arm(environment=row.identifier, api=api, mode=mode, workload=workload)
        for row in rows
        for api, mode in selection.forms
        for workload in selection.workloads
    ]


class _MakeJob(Protocol):
    def __call__(self, arm: Arm, case: Case, *, number: int, slot: int) -> Job:
        """The job of this cell in this round, at this place of its block."""


def _identity(
    run_id: str,
    guest_digest: str,
    environments: Iterable[PlannedEnvironment],
    workloads: Iterable[PlannedWorkload],
) -> list[str]:
    """What all jobs of a run have in their keys."""
    return [
        run_id,
        guest_digest,
        *sorted(item.lock_digest for item in environments),
        *(item.digest for item in workloads),
    ]


def _jobs(identity: Sequence[str], unsupported: Callable[[Arm, Case], str | None]) -> _MakeJob:
    def make_job(arm: Arm, case: Case, *, number: int, slot: int) -> Job:
        return Job(
            key=_key([*identity, arm.name, str(number)], case),
            arm=arm,
            case=case.name,
            round=number,
            slot=slot,
            unsupported=unsupported(arm, case),
        )

    return make_job


def _blocks(
    selection: Selection, arms: Sequence[Arm], make_job: _MakeJob, *, seed: int
) -> tuple[Block, ...]:
    # Not for secrets: the order must be random to the machine, and the same for the same seed.
    order = random.Random(seed)  # noqa: S311
    return tuple(
        block
        for number in range(1, selection.rounds + 1)
        for block in _round(selection.cases, arms, make_job, number=number, order=order)
    )


def _round(
    cases: Sequence[Case],
    arms: Sequence[Arm],
    make_job: _MakeJob,
    *,
    number: int,
    order: random.Random,
) -> tuple[Block, ...]:
    """The block of every case once, cases and arms shuffled."""
    blocks = []
    for case in order.sample(cases, len(cases)):
        jobs = tuple(
            make_job(arm, case, number=number, slot=slot)
            for slot, arm in enumerate(order.sample(arms, len(arms)))
        )
        blocks.append(Block(round=number, case=case.name, jobs=jobs))
    return tuple(blocks)


def _profiles(selection: Selection, arms: Sequence[Arm], make_job: _MakeJob) -> tuple[Job, ...]:
    """One job a cell. Their order says nothing: they are never compared in time."""
    return tuple(
        make_job(arm, case, number=PROFILE_ROUND, slot=slot)
        for case in selection.cases
        for slot, arm in enumerate(arms)
    )


def _key(words: Sequence[str], case: Case) -> str:
    """16 hexadecimal digits over all that defines the job, the case's numbers included."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (*(word.encode() for word in words), msgspec.json.encode(case)):
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()
