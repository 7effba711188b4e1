"""Rounds, blocks, keys, and the order of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator import grid, matrix, plan
from orchestrator.errors import UsageError
from orchestrator.model.grid import Selection
from orchestrator.model.plan import Limits, Plan, PlannedEnvironment
from orchestrator.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

EAGER = Selection(cases=(), forms=(("tf.keras", "eager"),), rounds=1)
LIMITS = Limits(first_call_s=600, job_s=120)


def make(
    *names: str,
    preset: str = "quick",
    seed: int | None = 1,
    digest: str = "g",
    workloads: Sequence[Workload] = (),
    profile: bool = False,
) -> Plan:
    """A plan of the shipped matrix and grid."""
    every = grid.load()
    rows = matrix.select(matrix.load(), names)
    environments = [
        PlannedEnvironment(
            identifier=row.identifier,
            tensorflow=row.tensorflow,
            keras=row.keras,
            python="3.7.16",
            variant="cpu",
            native_mode=row.native_mode,
            lock_digest=f"lock-{row.identifier}",
        )
        for row in rows
    ]
    return plan.make(
        grid.select(every, grid.preset(every, preset), workloads=workloads),
        rows,
        environments,
        preset=preset,
        threshold=0.02,
        reference=names[0],
        limits=LIMITS,
        guest_digest=digest,
        seed=seed,
        workloads=[item.planned for item in workloads],
        profile=profile,
    )


def workload(name: str, digest: str = "d") -> Workload:
    """A user's own model."""
    return Workload(name=name, entry=f"{name}.py", digest=digest, files={})


def keys(made: Plan) -> set[str]:
    """The keys of all its jobs, without the run's own part of them."""
    return {job.key for job in (*made.jobs, *made.profiles)}


def order(made: Plan) -> list[tuple[int, str, str]]:
    """What runs after what."""
    return [(job.round, job.case, job.arm.name) for job in made.jobs]


def test_quick_of_two_is_48_jobs() -> None:
    """Two cases, two environments, two modes, six rounds."""
    assert len(make("tf114", "tf20").jobs) == 48


def test_every_block_has_every_arm_once() -> None:
    """A block is one process of every arm of one case."""
    for block in make("tf114", "tf20").blocks:
        assert {
            "tf114/tf.keras/graph",
            "tf114/tf.keras/eager",
            "tf20/tf.keras/graph",
            "tf20/tf.keras/eager",
        } == {job.arm.name for job in block.jobs}
        assert [0, 1, 2, 3] == [job.slot for job in block.jobs]
        assert {block.case} == {job.case for job in block.jobs}


def test_every_round_has_every_case_once() -> None:
    """A round is the block of every case once."""
    made = make("tf114", "tf20")
    for number in range(1, 7):
        cases = [block.case for block in made.blocks if block.round == number]
        assert sorted(cases) == sorted(case.name for case in made.cases)


def test_order_is_random_but_repeatable() -> None:
    """The same seed gives the same order, another seed another; no arm has a fixed place."""
    assert order(make("tf114", "tf20")) == order(make("tf114", "tf20"))
    assert order(make("tf114", "tf20")) != order(make("tf114", "tf20", seed=2))
    firsts = {block.jobs[0].arm.name for block in make("tf114", "tf20").blocks}
    assert len(firsts) > 1


def test_seed_is_drawn_and_stored() -> None:
    """Without a seed one is drawn, and stands in the plan."""
    first, second = make("tf114", seed=None), make("tf114", seed=None)
    assert first.seed != second.seed


def test_keys_are_unique_and_cover_what_defines_a_job() -> None:
    """No two jobs share a key, and another guest gives other keys."""
    made = make("tf114", "tf20", preset="seed")
    keys = {job.key for job in made.jobs}
    assert len(keys) == len(made.jobs)
    assert not keys & {job.key for job in make("tf114", "tf20", preset="seed", digest="h").jobs}


def test_impossible_cells_are_planned_with_their_reason() -> None:
    """What an arm cannot do is a job with a reason, not a gap."""
    made = make("tf114", preset="seed")
    stopped = {job.arm.name: job.unsupported for job in made.jobs if job.unsupported}
    assert "tf114/keras/eager" in stopped
    assert "eager execution" in str(stopped["tf114/keras/eager"])


def test_a_row_raced_against_itself_has_two_arms() -> None:
    """The same environment twice is two arms with names of their own."""
    names = {job.arm.environment for job in make("tf114", "tf114").jobs}
    assert names == {"tf114", "tf114-2"}


def test_several_workloads_are_arms_in_every_form() -> None:
    """Each file in each environment and mode, in the same blocks."""
    made = make("tf114", "tf20", workloads=[workload("one"), workload("two")])
    assert ("one", "two") == tuple(item.name for item in made.workloads)
    for block in made.blocks:
        assert {
            f"{environment}/tf.keras/{mode}/{name}"
            for environment in ("tf114", "tf20")
            for mode in ("graph", "eager")
            for name in ("one", "two")
        } == {job.arm.name for job in block.jobs}
    assert {"one", "two"} == {
        found.name for job in made.jobs if (found := made.workload_of(job.arm)) is not None
    }


def test_one_workload_is_no_part_of_the_arms_name() -> None:
    """It is in the case's name; every arm runs it."""
    made = make("tf114", workloads=[workload("mine")])
    assert ["mine-default/given/fit"] == [case.name for case in made.cases]
    assert {None} == {job.arm.workload for job in made.jobs}
    assert {"mine"} == {
        found.name for job in made.jobs if (found := made.workload_of(job.arm)) is not None
    }
    assert make("tf114").workload_of(made.jobs[0].arm) is None


def test_keys_cover_the_workloads_digest() -> None:
    """Another content of the file is another job."""
    first = make("tf114", workloads=[workload("mine")])
    same = {job.key for job in first.jobs}
    assert not same & keys(make("tf114", workloads=[workload("mine", "other")]))


def test_every_cell_is_profiled_once() -> None:
    """One job a cell, with a key of its own, in no round; what cannot run has its reason."""
    made = make("tf114", "tf20", profile=True)
    assert {(job.arm.name, job.case) for job in made.jobs} == {
        (job.arm.name, job.case) for job in made.profiles
    }
    assert len(made.profiles) == len(made.jobs) / 6
    assert {True} == {job.is_profile for job in made.profiles}
    assert len(keys(made)) == len(made.jobs) + len(made.profiles)
    assert () == make("tf114").profiles
    seed = make("tf114", preset="seed", profile=True)
    assert {"tf114/keras/eager"} == {job.arm.name for job in seed.profiles if job.unsupported}


@pytest.mark.parametrize("reference", ["tf20", "tf20/tf.keras/eager"])
def test_reference_may_be_an_environment_or_an_arm(reference: str) -> None:
    """Both forms of a reference are accepted."""
    rows = matrix.select(matrix.load(), ["tf114", "tf20"])
    assert plan.check_reference(rows, EAGER, reference) == reference


def test_first_environment_is_the_reference() -> None:
    """Without a reference the first environment is it."""
    rows = matrix.select(matrix.load(), ["tf20", "tf114"])
    assert plan.check_reference(rows, EAGER, None) == "tf20"


def test_unknown_reference_names_the_nearest() -> None:
    """A reference outside the run is an error."""
    rows = matrix.select(matrix.load(), ["tf114", "tf20"])
    with pytest.raises(UsageError, match=r"Did you mean tf20\?"):
        plan.check_reference(rows, EAGER, "tf21")


def test_an_added_round_is_like_the_first_ones() -> None:
    """All arms of its cases, what is unsupported among them, new keys, and the same every time."""
    made = make("tf114", "tf20", preset="quick")
    names = [made.cases[1].name]
    blocks = plan.added_round(made, names, 7)
    assert names == [block.case for block in blocks]
    first = next(block for block in made.blocks if block.case == names[0])
    told = {job.arm.name: job.unsupported for job in first.jobs}
    assert told == {job.arm.name: job.unsupported for job in blocks[0].jobs}
    assert {7} == {job.round for job in blocks[0].jobs}
    assert [0, 1, 2, 3] == [job.slot for job in blocks[0].jobs]
    assert not keys(made) & {job.key for job in blocks[0].jobs}
    assert blocks == plan.added_round(made, names, 7)


def test_an_added_round_has_the_key_that_it_would_have_had() -> None:
    """A job is the same job, whether it was planned at once or later."""
    made = make("tf114", "tf20", preset="quick")
    again = plan.added_round(made, [case.name for case in made.cases], 6)
    last = {job.key for block in made.blocks if block.round == 6 for job in block.jobs}
    assert last == {job.key for block in again for job in block.jobs}


def test_added_rounds_are_in_random_order() -> None:
    """Each in one of its own, so that no arm always comes first."""
    made = make("tf114", "tf20", preset="quick")
    names = [case.name for case in made.cases]
    orders = {
        tuple(job.arm.name for block in plan.added_round(made, names, number) for job in block.jobs)
        for number in range(7, 12)
    }
    assert len(orders) > 1
