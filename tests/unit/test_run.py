"""Working through a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator import run
from orchestrator.model import attempts
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.names import Outcome
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record


class Count:
    """Progress that only counts."""

    def __init__(self) -> None:
        self.done = 0
        self.started: list[str] = []

    def start(self, text: str) -> None:
        """Remember what begins."""
        self.started.append(text)

    def advance(self, text: str) -> None:
        """Count one, and see that something is said."""
        assert text
        self.done += 1


class Fake:
    """Measures by script: outcomes by (arm, attempt), everything else is ok."""

    def __init__(self, plan: Plan, outcomes: dict[tuple[str, int], Outcome]) -> None:
        self.plan = plan
        self.outcomes = outcomes
        self.calls: list[tuple[str, int]] = []
        self.stop_after: int | None = None

    def __call__(self, job: Job, *, attempt: int) -> Record:
        """Return the scripted record, or be interrupted."""
        if self.stop_after is not None and len(self.calls) >= self.stop_after:
            raise KeyboardInterrupt
        self.calls.append((job.key, attempt))
        outcome = self.outcomes.get((job.arm.name, attempt), "ok")
        return factories.record(self.plan, job, outcome=outcome, attempt=attempt)


def work_through(plan: Plan, folder: RunFolder, measure: Fake, progress: Count) -> None:
    """Work through a plan from what its folder holds, as a command does."""
    blocks = (*plan.blocks, *plan.profile_blocks)
    run.work_through(blocks, folder, attempts.by_key(folder.records()), measure, progress)


@pytest.fixture
def plan() -> Plan:
    """Two rounds of one case with two arms."""
    return factories.plan(forms=[("tf.keras", "graph")], rounds=2)


@pytest.fixture
def folder(tmp_path: Path, plan: Plan) -> RunFolder:
    """A new run folder of that plan."""
    return RunFolder.create(tmp_path / "results", plan)


def test_every_job_is_measured_once_in_order(plan: Plan, folder: RunFolder) -> None:
    """All goes well: one record a job, in the plan's order."""
    measure, progress = Fake(plan, {}), Count()
    work_through(plan, folder, measure, progress)
    assert [(job.key, 1) for job in plan.jobs] == measure.calls
    assert sorted(job.key for job in plan.jobs) == sorted(item.key for item in folder.records())
    assert progress.done == 4


def test_interrupted_run_goes_on_where_it_stopped(plan: Plan, folder: RunFolder) -> None:
    """A cut block is done again whole; finished blocks are left alone."""
    first = Fake(plan, {})
    first.stop_after = 3
    with pytest.raises(KeyboardInterrupt):
        work_through(plan, folder, first, Count())
    assert len(folder.records()) == 3
    second = Fake(plan, {})
    work_through(plan, folder, second, Count())
    assert [(job.key, 2) for job in plan.blocks[1].jobs] == second.calls
    found = attempts.by_key(folder.records())
    assert [1, 2] == [attempts.counting_attempt(block, found) for block in plan.blocks]


def test_broken_environment_is_tried_three_times(plan: Plan, folder: RunFolder) -> None:
    """A block with a broken environment is done again twice, whole, and then reported."""
    broken: dict[tuple[str, int], Outcome] = {
        ("tf20/tf.keras/graph", number): "environment_error" for number in (1, 2, 3)
    }
    measure, progress = Fake(plan, broken), Count()
    work_through(plan, folder, measure, progress)
    assert len(measure.calls) == 2 * 2 * 3
    assert progress.done == 4  # a redone job counts once
    found = attempts.by_key(folder.records())
    assert [3, 3] == [attempts.counting_attempt(block, found) for block in plan.blocks]


def test_recovered_environment_counts(plan: Plan, folder: RunFolder) -> None:
    """When the second attempt succeeds, it counts."""
    measure = Fake(plan, {("tf20/tf.keras/graph", 1): "environment_error"})
    work_through(plan, folder, measure, Count())
    found = attempts.by_key(folder.records())
    assert [2, 2] == [attempts.counting_attempt(block, found) for block in plan.blocks]


def test_nothing_is_measured_twice(plan: Plan, folder: RunFolder) -> None:
    """A finished run has nothing left to do."""
    work_through(plan, folder, Fake(plan, {}), Count())
    again = Fake(plan, {})
    work_through(plan, folder, again, Count())
    assert [] == again.calls


def test_profiles_run_after_the_rounds(plan: Plan, tmp_path: Path) -> None:
    """One a cell, when everything is timed; a run that was cut does those that are missing."""
    profiled = factories.with_profiles(plan)
    folder = RunFolder.create(tmp_path / "profiled", profiled)
    first = Fake(profiled, {("tf20/tf.keras/graph", 1): "failed"})
    first.stop_after = len(plan.jobs) + 1
    with pytest.raises(KeyboardInterrupt):
        work_through(profiled, folder, first, Count())
    timed, (profile, other) = [job.key for job in plan.jobs], profiled.profiles
    assert [*timed, profile.key] == [key for key, _ in first.calls]
    second = Fake(profiled, {})
    work_through(profiled, folder, second, Count())
    assert [(other.key, 1)] == second.calls
    assert len(folder.records()) == len(plan.jobs) + 2


def test_a_profile_without_its_environment_is_tried_again(plan: Plan, tmp_path: Path) -> None:
    """As a block of timings is, but alone."""
    profiled = factories.with_profiles(plan)
    folder = RunFolder.create(tmp_path / "profiled", profiled)
    for job in plan.jobs:
        folder.write(factories.record(profiled, job))
    measure = Fake(profiled, {("tf20/tf.keras/graph", 1): "environment_error"})
    work_through(profiled, folder, measure, Count())
    first, second = profiled.profiles
    assert [(first.key, 1), (second.key, 1), (second.key, 2)] == measure.calls
