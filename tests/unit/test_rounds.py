"""A run whose rounds are added while it is measured: by a precision, or by a budget."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import cli, guest
from orchestrator.errors import InputError, UsageError
from orchestrator.model import attempts, codec
from orchestrator.model.plan import ROUNDS_SCHEMA, AddedRounds, Goal, Plan
from orchestrator.pipeline import reading, rounds
from orchestrator.pipeline.measuring import Hints, measure
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.model.plan import Job
    from orchestrator.model.record import Record

JOB_S = 3.0  # what the factories say that a process takes
QUIET, NOISY = "small-quiet/numpy/train_on_batch", "small-noisy/numpy/train_on_batch"


class Fake:
    """Measures processes whose times scatter by case; the same job always takes the same time."""

    def __init__(
        self,
        folder: RunFolder,
        spreads: Mapping[str, float],
        *,
        failing: str = "",
        fails_after: int = 0,
        stop_after: float = math.inf,
    ) -> None:
        self.folder = folder
        self.spreads = spreads
        self.failing = failing
        self.fails_after = fails_after
        self.stop_after = stop_after
        self.done = 0

    def __call__(self, job: Job, *, attempt: int) -> Record:
        """Return the record of one process, or be interrupted."""
        if self.done >= self.stop_after:
            raise KeyboardInterrupt
        self.done += 1
        fails = job.case == self.failing and job.round > self.fails_after
        noise = random.Random(job.key).gauss(0, self.spreads[job.case])  # noqa: S311
        return factories.record(
            self.folder.plan(),
            job,
            attempt=attempt,
            values=[0.01 * math.exp(noise)] * 3,
            outcome="timed_out" if fails else "ok",
        )


def plan(goal: Goal | None, *, run_id: str = "run0", digest: str = factories.GUEST) -> Plan:
    """A pilot of two cases and two arms."""
    return factories.plan(
        forms=[("tf.keras", "graph")],
        cases=[factories.case(data="quiet"), factories.case(data="noisy")],
        rounds=3,
        run_id=run_id,
        goal=goal,
        guest_digest=digest,
    )


def race(folder: RunFolder, measure: Fake) -> Plan:
    """Measure what the folder lacks, as a command does, and return its plan afterwards."""
    rounds.work_through(folder.plan(), folder, attempts.by_key(folder.records()), measure)
    return folder.plan()


def count(found: Plan, case: str) -> int:
    """How many rounds have that case."""
    return sum(block.case == case for block in found.blocks)


def added(folder: RunFolder) -> list[AddedRounds]:
    """What was added to a plan, in order."""
    paths = sorted((folder.path / "plan.d").iterdir())
    return [
        codec.decode(path.read_bytes(), AddedRounds, source=path, schema=ROUNDS_SCHEMA)
        for path in paths
    ]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that was asked for intervals of 5%."""
    return RunFolder.create(tmp_path, plan(Goal(precision=0.05)))


def test_rounds_go_where_the_interval_is_wide(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten rounds of what is quiet, more of what is not; each round says why it was added."""
    found = race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.08}))
    assert count(found, QUIET) == 10
    assert 15 < count(found, NOISY) < 60
    every = added(folder)
    assert [1] * len(every) == [len({block.round for block in item.blocks}) for item in every]
    assert every[0].reason == "some comparisons have fewer than 10 pairs"
    assert every[-1].reason.startswith("1 interval wider than 5%, the widest 5.")
    said = capsys.readouterr().err
    assert 3 <= said.count("of measuring in all: differences of ") <= 5
    assert f"No more rounds after {found.rounds}: every interval is as narrow as" in said
    told = reading.compare([folder.path])
    assert told.findings.precision is not None
    assert told.findings.precision.reached
    assert told.comparison.alpha == 0.04
    words = " ".join(told.text.split())
    assert "The precision of 5% was reached: the widest interval reaches " in words


def test_a_budget_ends_by_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next round is begun only where it fits: 100 s have room for eight of 12 s."""
    folder = RunFolder.create(tmp_path, plan(Goal(budget_s=100)))
    found = race(folder, Fake(folder, {QUIET: 0.05, NOISY: 0.05}))
    assert found.rounds == 8
    said = capsys.readouterr().err
    # Told after the pilot of three rounds, and again when there are twice as many.
    assert 2 == said.count("of measuring in all: differences of ")
    assert "About 8 rounds, 1 min 36 s of measuring in all: differences of " in said
    why = "No more rounds after 8: another round does not fit into the budget."
    assert why in said
    told = reading.compare([folder.path])
    assert why in told.text
    assert f"- {why}" in told.markdown
    reading.summarise(folder, exit_code=0)
    summary = json.loads((folder.path / "summary.json").read_bytes())
    assert summary["ended"] == told.findings.ended == "another round does not fit into the budget"
    race(folder, Fake(folder, {}))
    assert [why] == [line for line in capsys.readouterr().err.splitlines() if line.strip()]


def test_profiles_that_are_missing_are_no_rounds_to_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was cut in its profiles forecasts no rounds when it goes on."""
    planned = factories.with_profiles(plan(Goal(budget_s=100)))
    folder = RunFolder.create(tmp_path, planned)
    with pytest.raises(KeyboardInterrupt):
        race(folder, Fake(folder, {QUIET: 0.05, NOISY: 0.05}, stop_after=8 * 4 + 1))
    assert "About 8 rounds" in capsys.readouterr().err
    race(folder, Fake(folder, {QUIET: 0.05, NOISY: 0.05}))
    said = capsys.readouterr().err
    assert "No more rounds after 8: " in said
    assert "About" not in said


def test_a_run_that_was_cut_does_not_say_why_it_ended(folder: RunFolder) -> None:
    """Neither in the pilot nor between two rounds: more are still to come."""
    for stop_after in (5, 12):
        with pytest.raises(KeyboardInterrupt):
            race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.08}, stop_after=stop_after))
        assert "" == reading.compare([folder.path]).findings.ended


def test_a_pilot_may_use_up_the_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then it says so, and how many rounds fit."""
    folder = RunFolder.create(tmp_path, plan(Goal(budget_s=20)))
    assert race(folder, Fake(folder, {QUIET: 0.05, NOISY: 0.05})).rounds == 3
    said = capsys.readouterr().err
    assert "3 rounds took 36 s, more than the budget of 20 s: 1 fits." in said
    assert "Fewer than 5 are indicative." in said


def test_what_always_fails_gets_no_more_rounds(folder: RunFolder) -> None:
    """Nor does it keep the others from ending."""
    found = race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.002}, failing=NOISY))
    failed = [record for record in folder.records() if record.outcome == "timed_out"]
    assert {NOISY} == {record.case.name for record in failed}
    assert (10, 3) == (count(found, QUIET), count(found, NOISY))


def test_what_came_to_fail_is_not_precise(folder: RunFolder) -> None:
    """It gets no more rounds either, but its interval stands in the report, as wide as it is."""
    race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.08}, failing=NOISY, fails_after=4))
    told = reading.compare([folder.path])
    assert told.findings.precision is not None
    assert (False, 1) == (told.findings.precision.reached, told.findings.precision.lost)
    words = " ".join(told.text.split())
    assert "1 comparison wider than that gave no pair in the last rounds" in words


def test_a_number_of_rounds_is_left_alone(tmp_path: Path) -> None:
    """Without a goal, nothing is added."""
    folder = RunFolder.create(tmp_path, plan(None))
    assert plan(None) == race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.08}))
    assert not rounds.unfinished(folder.plan(), attempts.by_key(folder.records()))


@pytest.mark.parametrize("stop_after", [5, 12, 22, 29])
def test_an_interrupted_run_ends_as_if_it_had_not_been(tmp_path: Path, stop_after: int) -> None:
    """Cut in the pilot, between rounds, or in one that was added: same decisions, same blocks."""
    spreads = {QUIET: 0.002, NOISY: 0.04}
    whole = RunFolder.create(tmp_path / "whole", plan(Goal(precision=0.05)))
    cut = RunFolder.create(tmp_path / "cut", plan(Goal(precision=0.05)))
    with pytest.raises(KeyboardInterrupt):
        race(cut, Fake(cut, spreads, stop_after=stop_after))
    assert rounds.unfinished(cut.plan(), attempts.by_key(cut.records()))
    assert race(whole, Fake(whole, spreads)) == race(cut, Fake(cut, spreads))
    assert not rounds.unfinished(cut.plan(), attempts.by_key(cut.records()))


def test_profiles_come_after_all_rounds(tmp_path: Path) -> None:
    """Those that were added too."""
    profiled = factories.with_profiles(plan(Goal(precision=0.05)))
    folder = RunFolder.create(tmp_path, profiled)
    measure = Fake(folder, {QUIET: 0.002, NOISY: 0.002})
    with pytest.raises(KeyboardInterrupt):
        race(folder, Fake(folder, measure.spreads, stop_after=41))
    found = race(folder, measure)
    assert found.rounds == 10
    assert len(found.jobs) + len(found.profiles) == len(folder.records())
    assert measure.done == 3


def test_status_says_that_rounds_may_be_added(folder: RunFolder) -> None:
    """While something is missing."""
    assert "3 rounds so far; more may be added (precision 5%)" in reading.status_text(
        reading.status(folder.path)
    )


def test_a_gap_in_what_was_added_is_told(folder: RunFolder) -> None:
    """A file that was removed takes its rounds along."""
    race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.002}))
    (folder.path / "plan.d" / "0003.json").unlink()
    with pytest.raises(InputError, match="is not part 3 of what was added to run run0"):
        folder.plan()


def test_rounds_of_another_run_are_told(folder: RunFolder) -> None:
    """Copied into the folder, they would be measured there."""
    race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.002}))
    last = added(folder)[-1]
    path = folder.path / "plan.d" / f"{last.number:04}.json"
    path.write_bytes(codec.encode(msgspec.structs.replace(last, run_id="run1")))
    with pytest.raises(InputError, match="of what was added to run run0"):
        folder.plan()


def test_a_stale_plan_is_read_again(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Another command finished the run while this one waited: nothing is added again."""
    stale = folder.plan()
    found = race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.002}))
    hints = Hints(more_rounds=None, resume=str)
    assert 0 == measure(folder, stale, {}, hints, preparing_s=0.0)
    assert found == folder.plan()
    assert f"No more rounds after {found.rounds}: " in capsys.readouterr().err.splitlines()[-1]


def test_no_round_is_added_twice(folder: RunFolder) -> None:
    """The folder stays readable, and the refusal says how to go on."""
    found = race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.002}))
    last = added(folder)[-1]
    again = msgspec.structs.replace(last, number=last.number + 1)
    with pytest.raises(UsageError, match=rf"Round {found.rounds} of .* is in .* already") as raised:
        folder.add_rounds(again)
    assert "Another command added rounds to this run" in raised.value.why
    assert raised.value.fix.endswith(f"stackrace run --resume {folder.path}")
    assert found == folder.plan()
    new = [msgspec.structs.replace(block, round=block.round + 1) for block in last.blocks]
    with pytest.raises(UsageError, match=rf"plan\.d/{last.number:04}\.json is in .* already"):
        folder.add_rounds(msgspec.structs.replace(last, blocks=tuple(new)))
    assert found == folder.plan()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda block: msgspec.structs.replace(block, round=1), "has the round and case"),
        (lambda block: msgspec.structs.replace(block, jobs=block.jobs[:1]), "has other arms"),
    ],
)
def test_edited_rounds_are_told(folder: RunFolder, change: object, problem: str) -> None:
    """What was added has to agree with the plan, and with itself."""
    assert callable(change)
    race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.002}))
    last = added(folder)[-1]
    path = folder.path / "plan.d" / f"{last.number:04}.json"
    first, *others = last.blocks
    edited = msgspec.structs.replace(last, blocks=(change(first), *others))
    path.write_bytes(codec.encode(edited))
    with pytest.raises(InputError, match=r"plan.*is not a plan that can be run"):
        folder.plan()
    with pytest.raises(InputError, match=problem):
        folder.plan()


def test_a_command_says_whether_it_was_precise_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Resumed when its budget is used up: what is missing to the precision is told."""
    monkeypatch.setenv("STACKRACE_CACHE", str(tmp_path / "cache"))
    digest = guest.build(tmp_path / "cache" / "guest").digest
    goal = Goal(budget_s=130, precision=0.01)
    folder = RunFolder.create(tmp_path, plan(goal, digest=digest))
    race(folder, Fake(folder, {QUIET: 0.05, NOISY: 0.05}))
    capsys.readouterr()
    assert cli.main(["run", "--resume", str(folder.path)]) == 0
    found = capsys.readouterr()
    assert "Nothing is missing" in found.err
    assert "No more rounds after 10: another round does not fit into the budget." in found.err
    told = " ".join(found.out.split())
    assert "The precision of 1% was not reached: the widest interval reaches " in told
    assert "that takes about " in told
    assert '"reached":false' in (folder.path / "summary.json").read_text().replace(" ", "")


def test_a_resumed_run_has_as_many_rounds_as_its_goal_takes(folder: RunFolder) -> None:
    """Not as many as are planned so far; as long as nothing is measured, nobody knows."""
    assert None is rounds.expected(folder.plan(), {})
    assert 3 == rounds.expected(plan(None), {})
    with pytest.raises(KeyboardInterrupt):
        race(folder, Fake(folder, {QUIET: 0.002, NOISY: 0.1}, stop_after=12))
    found = rounds.expected(folder.plan(), attempts.by_key(folder.records()))
    assert found is not None
    assert 10 <= found <= 100


def test_a_resumed_run_says_that_it_may_grow(folder: RunFolder) -> None:
    """Not where only profiles are missing: these come last."""
    said = rounds.progress(folder.plan(), {})
    assert said.endswith("12 to go. More rounds may be added then (precision 5%).")
    assert "may be added" not in rounds.progress(plan(None), {})
    profiled = factories.with_profiles(folder.plan())
    records = attempts.by_key(factories.measured(profiled, lambda _: 0.01))
    assert "to go" in rounds.progress(profiled, records)
    assert "may be added" not in rounds.progress(profiled, records)


def test_a_resumed_run_says_what_it_has_and_lacks() -> None:
    """And about how long the rest takes, from what the jobs took that are measured."""
    planned = factories.plan(forms=[("tf.keras", "graph")], rounds=6)
    assert "0 of 12 jobs are measured; 12 to go." == rounds.progress(planned, {})
    done = attempts.by_key(factories.measured(planned, lambda _: 0.01)[:4])
    assert "4 of 12 jobs are measured; 8 to go, about 24 s." == rounds.progress(planned, done)
