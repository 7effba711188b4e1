"""Which attempt of a block counts: needed to resume a run and to read one, so it stands once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.model.plan import Block, Plan
    from orchestrator.model.record import Record

# A block is done again at most so often for causes that lie outside its cells.
MAX_REDONE = 2

ByKey = dict[str, dict[int, "Record"]]


def by_key(records: Iterable[Record]) -> ByKey:
    """Records by job key, then by attempt."""
    found: ByKey = {}
    for record in records:
        found.setdefault(record.key, {})[record.attempt] = record
    return found


def longer(one: Plan, other: Plan) -> Plan | None:
    """The longer of two copies of a plan, of which one got more rounds; None when they are none."""
    short, long = sorted((one, other), key=lambda plan: len(plan.blocks))
    shown = msgspec.structs.replace(
        long, blocks=long.blocks[: len(short.blocks)], rounds=short.rounds
    )
    return long if shown == short else None


def united(runs: Iterable[tuple[Plan, Sequence[Record]]]) -> list[tuple[Plan, list[Record]]]:
    """Every run once: the longest of its copies' plans, each record that any of them has."""
    plans: dict[str, Plan] = {}
    found: dict[str, dict[tuple[str, int], Record]] = {}
    for plan, records in runs:
        known_plan = plans.setdefault(plan.run_id, plan)
        if len(plan.blocks) > len(known_plan.blocks):
            plans[plan.run_id] = plan
        known = found.setdefault(plan.run_id, {})
        for record in records:
            known.setdefault((record.key, record.attempt), record)
    return [(plan, list(found[run_id].values())) for run_id, plan in plans.items()]


def counting_attempt(block: Block, records: Mapping[str, Mapping[int, Record]]) -> int | None:
    """The first attempt in which every arm has a final record; None while there is none.

    A record that may be redone is not final, until the block was redone as often as is allowed:
    then its last whole attempt counts, so that every job ends with one record.
    """
    whole = _whole_attempts(block, records)
    final = [
        attempt
        for attempt in whole
        if not any(records[job.key][attempt].redoable for job in block.jobs)
    ]
    if final:
        return final[0]
    return whole[-1] if len(whole) > MAX_REDONE else None


def next_attempt(block: Block, records: Mapping[str, Mapping[int, Record]]) -> int | None:
    """The number of the attempt to make now, or None when one counts already."""
    if counting_attempt(block, records) is not None:
        return None
    tried = {attempt for job in block.jobs for attempt in records.get(job.key, {})}
    return max(tried, default=0) + 1


def _whole_attempts(block: Block, records: Mapping[str, Mapping[int, Record]]) -> list[int]:
    tried = [set(records.get(job.key, {})) for job in block.jobs]
    return sorted(set.intersection(*tried)) if tried else []
