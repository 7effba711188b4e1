"""Rounds that were planned, and those that a budget or a precision adds to them."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from orchestrator import log, plan, precision, run
from orchestrator.merge import merge
from orchestrator.model import phrases
from orchestrator.model.plan import ROUNDS_SCHEMA, AddedRounds
from orchestrator.paired.cells import read
from orchestrator.report import goals, words
from orchestrator.verdict.contrasts import pairings

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.log import Growing
    from orchestrator.model import attempts
    from orchestrator.model.plan import Goal, Plan
    from orchestrator.model.precision import Precision
    from orchestrator.run import Measure
    from orchestrator.store import RunFolder

AGAIN = 2  # times as many rounds as when it was last told how many there will be


def work_through(
    planned: Plan, folder: RunFolder, records: attempts.ByKey, measure: Measure
) -> None:
    """Measure what is missing, then add round after round until the goal is reached.

    Profiles come last. `records`, those of the folder, grow with it.
    """
    missing = run.missing_blocks((*planned.blocks, *planned.profile_blocks), records)
    new = bool(run.missing_blocks(planned.blocks, records))
    title = "racing" if planned.goal is None else "racing, rounds may be added"
    with log.progress(title, sum(len(block.jobs) for block in missing)) as progress:
        run.work_through(planned.blocks, folder, records, measure, progress)
        if planned.goal is not None:
            _add(planned, folder, records, measure, progress=progress, goal=planned.goal, new=new)
        run.work_through(planned.profile_blocks, folder, records, measure, progress)


def unfinished(planned: Plan, records: attempts.ByKey) -> bool:
    """Whether anything is missing, or a round is to be added, in a run that was cut."""
    if run.missing_blocks((*planned.blocks, *planned.profile_blocks), records):
        return True
    if planned.goal is None:
        return False
    found = _measured(planned, records)
    return bool(precision.decide(found, planned, planned.goal).cases)


def progress(planned: Plan, records: attempts.ByKey) -> str:
    """`12 of 48 jobs are measured; 36 to go, about 3 min.`: what a resumed run has, and lacks.

    A job is expected to take what those before it took, which is not known without any.
    """
    missing = run.missing_blocks((*planned.blocks, *planned.profile_blocks), records)
    left = sum(len(block.jobs) for block in missing)
    every = len(planned.jobs) + len(planned.profiles)
    lasted = [
        record.end.monotonic - record.start.monotonic
        for tried in records.values()
        for record in tried.values()
    ]
    about = f", about {words.roughly(fmean(lasted) * left)}" if lasted and left else ""
    timed = run.missing_blocks(planned.blocks, records)
    return (
        f"{every - left} of {phrases.count(every, 'job')} are measured; {left} to go{about}."
        f"{goals.may_grow(planned.goal) if timed else ''}"
    )


def expected(planned: Plan, records: attempts.ByKey) -> int | None:
    """How many rounds a run that was cut will have; None while its noise cannot be told."""
    if planned.goal is None:
        return planned.rounds
    found = precision.forecast(_measured(planned, records), planned, planned.goal)
    return None if found is None else found.rounds


class Ending(NamedTuple):
    """What became of a run with a goal."""

    precision: Precision | None = None  # whether it is as precise as was asked, if it was
    reason: str = ""  # why no more rounds were added; empty where some are still to come


def ending(planned: Plan, frame: pd.DataFrame) -> Ending:
    """Whether a run came to its goal, and why it ended. `frame`: its table."""
    if planned.goal is None:
        return Ending()
    found, asked = _read(planned, frame), planned.goal.precision
    decision = precision.decide(found, planned, planned.goal)
    over = not decision.cases and not (frame["outcome"] == "missing").any()
    return Ending(
        precision=None if asked is None else precision.reached(found, planned, asked),
        reason=decision.reason if over else "",
    )


def _add(
    planned: Plan,
    folder: RunFolder,
    records: attempts.ByKey,
    measure: Measure,
    *,
    progress: Growing,
    goal: Goal,
    new: bool,
) -> None:
    """Add rounds to a plan of which nothing is missing, one by one, and measure them.

    `new`: some of them were measured just now.
    """
    found = _measured(planned, records)
    decision = precision.decide(found, planned, goal)
    if new or decision.cases:
        _foretell(planned, goal, found)
    told = planned.rounds
    while decision.cases:
        number = planned.rounds + 1
        added = AddedRounds(
            schema=ROUNDS_SCHEMA,
            run_id=planned.run_id,
            number=folder.added() + 1,
            created=datetime.now(tz=UTC).isoformat(timespec="seconds"),
            blocks=plan.added_round(planned, decision.cases, number),
            reason=decision.reason,
        )
        folder.add_rounds(added)
        jobs = sum(len(block.jobs) for block in added.blocks)
        expected = _to_add(planned, goal, found)
        planned = planned.grown([added])
        progress.extend(jobs, further=max(0, expected - jobs))
        run.work_through(added.blocks, folder, records, measure, progress)
        found = _measured(planned, records)
        decision = precision.decide(found, planned, goal)
        if decision.cases and planned.rounds >= AGAIN * told:  # noise is known better by now
            _foretell(planned, goal, found)
            told = planned.rounds
    progress.extend(0)
    log.talk(goals.ended(planned.rounds, decision.reason))


def _foretell(planned: Plan, goal: Goal, found: precision.Measured) -> None:
    over = goals.overrun(goal, rounds=planned.rounds, spent_s=found.spent_s)
    expected = precision.forecast(found, planned, goal)
    if over:
        log.warn(over)
    elif expected is not None:
        log.talk(goals.forecast(expected, goal))


def _to_add(planned: Plan, goal: Goal, found: precision.Measured) -> int:
    """About how many jobs will be added, by what is known so far."""
    expected = precision.forecast(found, planned, goal)
    if expected is None:
        return 0
    first = {block.case: len(block.jobs) for block in planned.blocks}
    each = sum(first[case] for case in found.compared)
    return (expected.rounds - planned.rounds) * each


def _measured(planned: Plan, records: attempts.ByKey) -> precision.Measured:
    every = [record for tried in records.values() for record in tried.values()]
    return _read(planned, merge([(planned, every)]))


def _read(planned: Plan, frame: pd.DataFrame) -> precision.Measured:
    cells = read(frame)
    found = pairings(
        cells,
        environments=[item.identifier for item in planned.environments],
        reference=planned.reference,
        kinds=None,
    )
    contrasts = dict.fromkeys((pair.candidate, pair.reference) for pair in found)
    return precision.measured(frame, cells, list(contrasts))
