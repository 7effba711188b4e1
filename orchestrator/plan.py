"""Makes the plan: rounds of blocks, cases and arms in random order, every job with its key."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from orchestrator.errors import UsageError, nearest
from orchestrator.model.cell import Arm, Case
from orchestrator.model.plan import PLAN_SCHEMA, Block, Job, Limits, Plan, PlannedEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.model.grid import Selection
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Api, Device, Mode


def check_reference(
    rows: Sequence[Row], forms: Sequence[tuple[Api, Mode]], reference: str | None
) -> str:
    """The reference of a run: an environment or an arm of it; the first environment by default."""
    if reference is None:
        return rows[0].identifier
    valid = [row.identifier for row in rows] + [arm.name for arm in _arms(rows, forms)]
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
) -> Plan:
    """Plan a run. The same seed gives the same order; without one, it is drawn and stored.

    `gpus`: UUIDs that GPU cases may use. `against`: why this machine cannot run an environment on
    a device, by identifier and device.
    """
    moment = datetime.now(tz=UTC)
    drawn = random.SystemRandom()
    seed = drawn.randrange(2**32) if seed is None else seed
    run_id = f"{moment:%Y%m%d-%H%M%S}-{drawn.randrange(16**4):04x}"
    blocks = _blocks(
        selection,
        rows,
        seed=seed,
        identity=[run_id, guest_digest, *sorted(item.lock_digest for item in environments)],
        against=against,
    )
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
        blocks=blocks,
    )


def _arms(rows: Sequence[Row], forms: Sequence[tuple[Api, Mode]]) -> list[Arm]:
    return [
        Arm(environment=row.identifier, api=api, mode=mode) for row in rows for api, mode in forms
    ]


def _blocks(
    selection: Selection,
    rows: Sequence[Row],
    *,
    seed: int,
    identity: Sequence[str],
    against: Mapping[tuple[str, Device], str],
) -> tuple[Block, ...]:
    # Not for secrets: the order must be random to the machine, and the same for the same seed.
    order = random.Random(seed)  # noqa: S311
    by_identifier = {row.identifier: row for row in rows}
    arms = _arms(rows, selection.forms)
    blocks = []
    for number in range(1, selection.rounds + 1):
        for case in order.sample(selection.cases, len(selection.cases)):
            jobs = tuple(
                Job(
                    key=_key([*identity, arm.name, str(number)], case),
                    arm=arm,
                    case=case.name,
                    round=number,
                    slot=slot,
                    unsupported=by_identifier[arm.environment].reason_against(arm, case)
                    or against.get((arm.environment, case.device)),
                )
                for slot, arm in enumerate(order.sample(arms, len(arms)))
            )
            blocks.append(Block(round=number, case=case.name, jobs=jobs))
    return tuple(blocks)


def _key(words: Sequence[str], case: Case) -> str:
    """16 hexadecimal digits over all that defines the job, the case's numbers included."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (*(word.encode() for word in words), msgspec.json.encode(case)):
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.hexdigest()
