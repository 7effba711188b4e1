"""A plan that was edited by hand is refused with the field that cannot be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator.errors import InputError
from orchestrator.model import codec
from orchestrator.model.plan import Block, Job, Limits
from orchestrator.model.record import Control, Instant
from orchestrator.model.sound import plan_problem
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

PLAN = factories.plan(rounds=2, cases=[factories.case(), factories.case("fit")])
PROFILED = factories.with_profiles(PLAN)
RACED = factories.plan(rounds=2, workloads=["one", "two"])
BLOCK, OTHER = PLAN.blocks[0], PLAN.blocks[1]


def block(**changes: Any) -> tuple[Block, ...]:  # noqa: ANN401
    """The blocks of the plan with another first one."""
    return (msgspec.structs.replace(BLOCK, **changes), *PLAN.blocks[1:])


def job(**changes: Any) -> tuple[Block, ...]:  # noqa: ANN401
    """The blocks of the plan with another first job."""
    first: Job = msgspec.structs.replace(BLOCK.jobs[0], **changes)
    return block(jobs=(first, *BLOCK.jobs[1:]))


def environments(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """The plan's environments, with a changed first one."""
    first = msgspec.structs.replace(PLAN.environments[0], **changes)
    return {"environments": (first, *PLAN.environments[1:])}


def cases(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """The plan's cases, with a changed first one."""
    first = msgspec.structs.replace(PLAN.cases[0], **changes)
    return {"cases": (first, *PLAN.cases[1:])}


def test_a_plan_that_was_made_is_sound() -> None:
    """Nothing is held against a plan as it is made."""
    assert plan_problem(PLAN) is None
    assert plan_problem(PROFILED) is None
    assert plan_problem(RACED) is None
    assert plan_problem(msgspec.structs.replace(PLAN, workloads=RACED.workloads[:1])) is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"end": Instant(wall=1e308, monotonic=1.0)}, "at no time that a clock shows"),
        ({"start": Instant(wall=1.0, monotonic=-1e308)}, "at no time that a clock shows"),
        ({"end": Instant(wall=1.0, monotonic=-5.0)}, "end is before start"),
        ({"control": Control(before_s=0.0, after_s=1.0)}, "a time that no work takes"),
        ({"control": Control(before_s=0.1, after_s=1e308)}, "a time that no work takes"),
        ({"host": {"machine": "m" * 5000}}, "which is not a name"),
        ({"host": {"machine": "../../elsewhere"}}, "host.machine is '../../elsewhere'"),
    ],
)
def test_a_record_with_facts_that_cannot_be_is_refused(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    """Every command that reads the run names the file, and none fails on what it computes."""
    folder = RunFolder.create(tmp_path, PLAN)
    record, *_ = factories.measured(PLAN, lambda _: 0.01)
    if "host" in changes:
        changes = {"host": msgspec.structs.replace(record.host, **changes["host"])}
    folder.write(msgspec.structs.replace(record, **changes))
    with pytest.raises(InputError, match=re.escape(problem)) as raised:
        folder.records()
    assert record.key in raised.value.what


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"case": "none"}, "profiles[0].case 'none' is none of its cases"),
        ({"round": 1}, "profiles[0].round is 1, which is a round of timings"),
        ({"key": "a/b"}, "profiles[0].key 'a/b' is not the key of a job"),
        ({"key": BLOCK.jobs[0].key}, f"profiles has the key {BLOCK.jobs[0].key!r} 2 times"),
    ],
)
def test_profiles_are_checked_like_jobs(changes: dict[str, Any], problem: str) -> None:
    """They are started and their files written like those of any job."""
    first: Job = msgspec.structs.replace(PROFILED.profiles[0], **changes)
    profiles = (first, *PROFILED.profiles[1:])
    assert problem == plan_problem(msgspec.structs.replace(PROFILED, profiles=profiles))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "../one"}, "workloads[0].name '../one' is not a name"),
        (
            {"entry": "../x.py"},
            "workloads[0].entry '../x.py' is not a file of the workload's folder",
        ),
        ({"entry": ""}, "workloads[0].entry '' is not a file of the workload's folder"),
        ({"name": "two"}, "workloads has the name 'two' 2 times"),
    ],
)
def test_workloads_stay_in_their_folder(changes: dict[str, str], problem: str) -> None:
    """Plans come from other people too: what is imported lies below the run folder."""
    first = msgspec.structs.replace(RACED.workloads[0], **changes)
    workloads = (first, *RACED.workloads[1:])
    assert problem == plan_problem(msgspec.structs.replace(RACED, workloads=workloads))


def test_arms_name_workloads_that_there_are() -> None:
    """Each arm has one of several, and none where there is only one."""
    for changed in (
        msgspec.structs.replace(RACED, workloads=RACED.workloads[:1]),
        msgspec.structs.replace(PLAN, workloads=RACED.workloads),
    ):
        assert "has a workload that is not one of several" in str(plan_problem(changed))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rounds": 0}, "rounds is 0, and its blocks have 2"),
        ({"rounds": 1}, "blocks[2].round is 2, of 1"),
        ({"threshold": -0.02}, "threshold is -0.02; it must lie between 0 and 1"),
        ({"threshold": float("nan")}, "threshold is nan; it must lie between 0 and 1"),
        (
            {"limits": Limits(first_call_s=60, job_s=float("inf"))},
            "limits.job_s is inf",
        ),
        ({"run_id": "../x"}, "run_id '../x' is not a name"),
        ({"environments": ()}, "environments is empty"),
        ({"cases": ()}, "cases is empty"),
        ({"blocks": ()}, "blocks is empty"),
        ({"reference": "tf99"}, "reference 'tf99' is none of its environments or arms"),
        (
            {"environments": (*PLAN.environments, PLAN.environments[0])},
            "environments has the identifier 'tf114' 2 times",
        ),
        (
            {"cases": (*PLAN.cases, PLAN.cases[0])},
            "cases has the name 'small-small/numpy/train_on_batch' 2 times",
        ),
        (
            {"blocks": (*PLAN.blocks, BLOCK)},
            f"blocks has the key {BLOCK.jobs[0].key!r} 2 times",
        ),
        (
            {"blocks": (*PLAN.blocks, msgspec.structs.replace(BLOCK, jobs=()))},
            f"blocks has the round and case {(1, BLOCK.case)!r} 2 times",
        ),
        ({"blocks": block(jobs=())}, "blocks[0].jobs is empty"),
        ({"blocks": block(case="x")}, "blocks[0].case 'x' is none of its cases"),
        (
            {"blocks": job(arm=BLOCK.jobs[1].arm)},
            f"blocks[0].jobs has the arm {BLOCK.jobs[1].arm.name!r} 2 times",
        ),
        ({"blocks": job(slot=1)}, "blocks[0].jobs has the slot 1 2 times"),
        (
            {"blocks": job(arm=msgspec.structs.replace(BLOCK.jobs[0].arm, environment="tf99"))},
            "blocks[0].jobs[0].arm.environment 'tf99' is none of its environments",
        ),
        (
            {"blocks": job(case=OTHER.case)},
            "blocks[0].jobs[0] has not the case and the round of its block",
        ),
        ({"blocks": job(key="../../x")}, "blocks[0].jobs[0].key '../../x' is not the key of a job"),
        ({"blocks": job(key="k" * 300)}, "blocks[0].jobs[0].key is 300 letters long"),
        (environments(tensorflow="new"), "environments[0].tensorflow 'new' is not a version"),
        (environments(keras="?"), "environments[0].keras '?' is not a version"),
        (environments(python=""), "environments[0].python '' is not a version"),
        (cases(iterations=0), "cases[0].iterations is 0"),
        (cases(warmup=-1), "cases[0].warmup is -1"),
        (cases(batch_shape=(0, 3)), "cases[0].batch_shape is [0, 3]"),
    ],
)
def test_what_cannot_be_is_named(changes: dict[str, Any], problem: str) -> None:
    """The first contradiction is told with the field that it stands in."""
    assert problem == plan_problem(msgspec.structs.replace(PLAN, **changes))


def test_an_environment_may_have_no_keras_package() -> None:
    """TensorFlow brought its own Keras before 2.6."""
    assert plan_problem(msgspec.structs.replace(PLAN, **environments(keras=""))) is None


def test_opening_a_run_checks_its_plan(tmp_path: Path) -> None:
    """The message names the file, and is one about input."""
    folder = RunFolder.create(tmp_path, PLAN)
    folder.plan_path.write_bytes(codec.encode(msgspec.structs.replace(PLAN, threshold=2.0)))
    with pytest.raises(InputError, match=r"plan\.json is not a plan .*: threshold is 2\.0"):
        folder.plan()


@pytest.mark.parametrize("seconds", [[], [0.0] * 3, [0.01, -1.0], [1e300] * 3])
def test_a_success_has_times_that_can_be(tmp_path: Path, seconds: list[float]) -> None:
    """Anything else is refused by file, and becomes neither a number nor a block dropped."""
    folder = RunFolder.create(tmp_path, PLAN)
    folder.write(factories.record(PLAN, PLAN.jobs[0], result=factories.result(seconds)))
    with pytest.raises(InputError, match=r"without result\.values_s, or with times in it"):
        folder.records()


def test_a_success_has_a_result(tmp_path: Path) -> None:
    """And a timed job times, whatever else is in it."""
    plan = factories.with_profiles(PLAN)
    of_times = factories.result([0.01] * 3)
    of_profile = factories.result([], profile=factories.PROFILE)
    for number, (job, result, what) in enumerate(
        (
            (plan.jobs[0], None, "values_s"),
            (plan.jobs[0], of_profile, "values_s"),
            (plan.profiles[0], of_times, "profile"),
        )
    ):
        folder = RunFolder.create(tmp_path / str(number), plan)
        record = factories.record(plan, job, result=of_times)
        folder.write(msgspec.structs.replace(record, result=result))
        with pytest.raises(InputError, match=rf"it succeeded without result\.{what}"):
            folder.records()


def test_what_failed_needs_no_times(tmp_path: Path) -> None:
    """Nor does a profile."""
    plan = factories.with_profiles(PLAN)
    folder = RunFolder.create(tmp_path, plan)
    folder.write(factories.record(plan, plan.jobs[0], outcome="crashed"))
    folder.write(factories.record(plan, plan.profiles[0]))
    assert 2 == len(folder.records())


def test_a_plan_has_as_many_rounds_as_its_blocks() -> None:
    """More would be told as done, and the next round would be counted from there."""
    more = msgspec.structs.replace(PLAN, rounds=1_000_000)
    assert "rounds is 1000000, and its blocks have 2" == plan_problem(more)
