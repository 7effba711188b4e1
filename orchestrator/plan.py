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
    Job,
    Limits,
    Plan,
    PlannedEnvironment,
    PlannedWorkload,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
) -> Plan:
    """Plan a run. The same seed gives the same order; without one, it is drawn and stored.

    `gpus`: UUIDs that GPU cases may use. `against`: why this machine cannot run an environment on
    a device, by identifier and device. `profile`: every cell is profiled as well. `pin`: the cores
    that workers are bound to. `selftest`: what the run shows is the machine.
    """
    moment = datetime.now(tz=UTC)
    drawn = random.SystemRandom()
    seed = drawn.randrange(2**32) if seed is None else seed
    run_id = f"{moment:%Y%m%d-%H%M%S}-{drawn.randrange(16**4):04x}"
    make_job = _jobs(
        rows,
        identity=[
            run_id,
            guest_digest,
            *sorted(item.lock_digest for item in environments),
            *(item.digest for item in workloads),
        ],
        against=against,
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


def _jobs(
    rows: Sequence[Row],
    *,
    identity: Sequence[str],
    against: Mapping[tuple[str, Device], str],
) -> _MakeJob:
    by_identifier = {row.identifier: row for row in rows}

    def make_job(arm: Arm, case: Case, *, number: int, slot: int) -> Job:
        return Job(
            key=_key([*identity, arm.name, str(number)], case),
            arm=arm,
            case=case.name,
            round=number,
            slot=slot,
            unsupported=by_identifier[arm.environment].reason_against(arm, case)
            or against.get((arm.environment, case.device)),
        )

    return make_job


def _blocks(
    selection: Selection, arms: Sequence[Arm], make_job: _MakeJob, *, seed: int
) -> tuple[Block, ...]:
    # Not for secrets: the order must be random to the machine, and the same for the same seed.
    order = random.Random(seed)  # noqa: S311
    blocks = []
    for number in range(1, selection.rounds + 1):
        for case in order.sample(selection.cases, len(selection.cases)):
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
