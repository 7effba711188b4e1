"""What is advised in grids with literal times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import advice
from orchestrator.config import parse_threshold
from orchestrator.merge import merge
from orchestrator.model.result import Outputs
from orchestrator.pipeline import asking
from orchestrator.verdict import compare
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.model.advice import Advice, Avoided
    from orchestrator.model.plan import Job, Plan

FORMS = (("tf.keras", "graph"), ("tf.keras", "eager"))


def wobbling(seconds: Callable[[Job], float]) -> Callable[[Job], float]:
    """The same with half a percent of noise, another for every cell."""

    def noisy(job: Job) -> float:
        phase = sum(map(ord, job.arm.name + job.case))
        return seconds(job) * (1 + 0.005 * math.sin(phase + 2.3 * job.round))

    return noisy


def grid(**facts: Any) -> Plan:  # noqa: ANN401
    """Two versions in two modes at three methods."""
    cases = [factories.case(name) for name in ("train_on_batch", "fit", "custom_loop")]
    chosen: dict[str, Any] = {"cases": cases, "rounds": 8} | facts
    return factories.plan(**chosen)


def advised(plan: Plan, seconds: Callable[[Job], float]) -> Advice:
    """The advice of a run with these times."""
    frame = merge([(plan, factories.measured(plan, wobbling(seconds)))])
    names = [item.identifier for item in plan.environments]
    compared = compare(frame, environments=names, threshold=0.02)
    return advice.of(frame, compared, asking.asked([plan], compared.threshold))


def slow_eager(job: Job) -> float:
    """Eager mode takes twice as long, fit in tf20's graph mode a half."""
    best = job.arm.name == "tf20/tf.keras/graph" and job.case.endswith("/fit")
    return 0.01 * (2.0 if job.arm.mode == "eager" else 1.0) * (0.5 if best else 1.0)


def test_the_fastest_is_named_with_what_it_gains() -> None:
    """Against the next and against the reference as installed, each with an interval."""
    (choice,) = advised(grid(), slow_eager).choices
    assert choice.sure
    (best,) = choice.fastest
    assert (best.arm, best.method) == ("tf20/tf.keras/graph", "fit")
    assert choice.configurations == 12
    assert choice.task.method == "train_on_batch"
    assert choice.against_next is not None
    assert choice.against_next.ratio == pytest.approx(2.0, rel=0.02)
    assert choice.as_installed is not None
    assert choice.as_installed.arm == "tf114/tf.keras/graph"
    assert choice.as_installed.method == "train_on_batch"
    assert choice.against_installed is not None
    assert choice.against_installed.low < 2.0 < choice.against_installed.high


def test_configurations_that_nothing_tells_apart_are_named_together() -> None:
    """All of graph mode is alike: six ties, and a next that is twice as slow."""
    found = advised(grid(), lambda job: 0.02 if job.arm.mode == "eager" else 0.01)
    (choice,) = found.choices
    assert {item.mode for item in choice.fastest} == {"graph"}
    assert len(choice.fastest) == 6
    assert choice.next is not None
    assert choice.next.mode == "eager"


def explained(found: Advice) -> dict[tuple[str, str], Avoided]:
    """What to avoid, by axis and value."""
    return {(item.axis, item.value): item for item in found.avoid}


def test_what_is_slow_for_one_reason_is_avoided_for_it() -> None:
    """Every eager configuration is slow, and slower than its own graph mode."""
    found = explained(advised(grid(), lambda job: 0.02 if job.arm.mode == "eager" else 0.01))
    assert list(found) == [("mode", "eager")]
    eager = found["mode", "eager"]
    assert len(eager.slow) == 6
    assert eager.least == pytest.approx(2.0, rel=0.03)


def test_what_no_value_explains_is_avoided_by_itself() -> None:
    """One of twelve is slow: neither its version, its mode nor its method is to blame."""

    def seconds(job: Job) -> float:
        slow = job.arm.name == "tf20/tf.keras/eager" and job.case.endswith("/fit")
        return 0.03 if slow else 0.01

    (avoided,) = advised(grid(), seconds).avoid
    assert avoided.axis == ""
    assert avoided.slow[0].configuration.method == "fit"
    assert avoided.slow[0].configuration.arm == "tf20/tf.keras/eager"


def test_an_axis_without_effect_does_not_matter() -> None:
    """Every one of its contrasts is `same`; others may differ."""
    found = advised(grid(), lambda job: 0.02 if job.arm.mode == "eager" else 0.01)
    axes = {item.axis: item for item in found.indifferent}
    assert {"version", "method"} == set(axes)
    assert axes["method"].contrasts == 8
    assert 0.98 < axes["method"].low < axes["method"].high < 1.02


def test_the_range_of_an_axis_is_over_all_its_pairs() -> None:
    """By hand: graph ratios of 1 and eager ratios of 4 have the geometric mean 2."""
    found = advised(grid(), lambda job: 0.04 if job.arm.name == "tf20/tf.keras/eager" else 0.01)
    version = next(item for item in found.ranges if item.axis == "version")
    assert (version.level, version.reference, version.contrasts) == ("tf20", "tf114", 6)
    assert version.mean is not None
    assert version.mean.ratio == pytest.approx(2.0, rel=0.01)
    assert version.mean.low < 2.0 < version.mean.high
    assert version.worst.arm == "tf20/tf.keras/eager"
    assert version.worst.ratio == pytest.approx(4.0, rel=0.02)
    assert version.best.ratio == pytest.approx(1.0, rel=0.02)


def test_sizes_are_an_axis_too() -> None:
    """Against the first size, although no verdict is about that."""
    cases = [factories.case(data=name) for name in ("small", "large")]
    found = advised(grid(cases=cases), lambda job: 0.05 if "large" in job.case else 0.01)
    size = next(item for item in found.ranges if item.axis == "size")
    assert (size.level, size.reference) == ("small-large", "small-small")
    assert size.mean is not None
    assert size.mean.ratio == pytest.approx(5.0, rel=0.02)
    assert len(found.choices) == 2


def test_two_axes_that_depend_on_each_other_are_told_once() -> None:
    """The version matters in eager mode only."""
    found = advised(grid(), lambda job: 0.013 if job.arm.name == "tf20/tf.keras/eager" else 0.01)
    (interaction,) = found.interactions
    assert (interaction.change.axis, interaction.by.axis) == ("version", "mode")
    assert interaction.at_reference == pytest.approx(1.0, rel=0.02)
    assert interaction.at_level == pytest.approx(1.3, rel=0.02)
    assert interaction.factor.low < 1.3 < interaction.factor.high


def test_work_of_another_kind_is_another_task() -> None:
    """A batch of 64 is no slow way to train with 32, inference is no fast way to train."""
    cases = [
        factories.case(),
        factories.case(knobs={"batch_size": "64"}),
        factories.case(knobs={"jit_compile": "yes"}),
        factories.case("predict"),
    ]
    found = advised(grid(cases=cases), lambda _: 0.01)
    tasks = [(item.task.method, item.task.knobs, item.configurations) for item in found.choices]
    assert tasks == [
        ("train_on_batch", "", 8),
        ("train_on_batch", "batch_size=64", 4),
        ("predict", "", 4),
    ]


def test_no_difference_is_no_advice() -> None:
    """The choice says why it is none."""
    found = advised(grid(), lambda _: 0.01)
    assert not found.any
    assert [item.reason for item in found.choices] == [
        "none of 12 configurations is surely faster than another"
    ]


def test_few_rounds_ask_for_more() -> None:
    """No choice; a command that measures the same cells more often."""
    found = advised(grid(rounds=3), slow_eager)
    assert not found.any
    assert found.choices[0].reason == "3 rounds of each, a choice needs 5"
    (step,) = found.steps
    assert step.command == (
        "stackrace run tf114 tf20 --case small-small/numpy/train_on_batch "
        "--case small-small/numpy/fit --case small-small/numpy/custom_loop "
        "--arm tf.keras/graph --arm tf.keras/eager --rounds 20"
    )


def test_one_configuration_asks_for_others() -> None:
    """There is nothing to choose from."""
    plan = grid(environments=["tf114"], forms=[FORMS[0]], cases=[factories.case("predict")])
    found = advised(plan, lambda _: 0.01)
    assert found.choices[0].reason == (
        "one configuration has a number: there is nothing to choose from"
    )
    assert [step.command for step in found.steps] == ["stackrace run tf114 --preset inference"]


def test_the_command_asks_for_all_that_was_asked_for() -> None:
    """The user's files, packages, interpreters and pairs: without them it would not run."""
    environments = [
        factories.environment("mine", backend="existing", source="/opt/bin/python"),
        factories.environment("tf291", spec="tensorflow==2.9.1"),
        factories.environment("tf20-again", lock="tf20", extra=["pandas"]),
    ]
    plan = grid(
        rounds=3,
        environments=environments,
        forms=[FORMS[0]],
        cases=[factories.case("fit", model="workload", data="default", input="given")],
        workloads=["first", "second"],
    )
    (step,) = advised(plan, lambda _: 0.01).steps
    assert step.command == (
        "stackrace run mine --python=mine=/opt/bin/python tensorflow==2.9.1 tf20 "
        "--workload=first.py --workload=second.py --with=pandas "
        "--case workload-default/given/fit --arm tf.keras/graph --rounds 20"
    )


def test_one_configuration_of_an_own_model_asks_for_other_methods() -> None:
    """No preset has a case of it."""
    case = factories.case("fit", model="mine", data="default", input="given")
    files = (factories.workload("mine"),)
    plan = grid(environments=["tf114"], forms=[FORMS[0]], cases=[case], workloads=[None])
    (step,) = advised(msgspec.structs.replace(plan, workloads=files), lambda _: 0.01).steps
    assert step.command == "stackrace run tf114 --workload=mine.py --case '*/given/*'"


def test_the_command_binds_workers_and_judges_as_before() -> None:
    """What all runs had in common; where they differ nobody knows which was meant."""
    plan = grid(rounds=3, cases=[factories.case("fit")], environments=["tf114"])
    pinned = msgspec.structs.replace(plan, pin=(0, 1, 2, 5))
    assert ("--pin=0-2,5",) == asking.asked([pinned], 0.02).options
    assert () == asking.asked([plan, pinned], 0.02).options == asking.asked([plan], 0.02).options
    for threshold in (0.035, 1e-05, 1e-9, 1 / 3):
        (option,) = asking.asked([plan], threshold).options
        name, _, value = option.partition("=")
        assert ("--threshold", threshold) == (name, parse_threshold(value))


def test_the_command_names_devices_and_knobs() -> None:
    """Without --device a case on the GPU is none; many cases are named together."""
    knobs = {"batch_size": "64"}
    methods = ["train_on_batch", "fit", "custom_loop", "custom_loop_function"]
    inputs = ["numpy", "tensor", "dataset"]
    cases = [
        factories.case(method, input=given, device="gpu", knobs=knobs)
        for given in inputs
        for method in methods
    ]
    (step,) = advised(grid(rounds=3, cases=cases), lambda _: 0.01).steps
    assert step.command == (
        "stackrace run tf114 tf20 --device gpu --case 'small-small/*+batch_size=64' "
        "--arm tf.keras/graph --arm tf.keras/eager --rounds 20"
    )


def test_other_work_is_nothing_that_does_not_matter() -> None:
    """A batch twice as large in the same time is news; what leaves the work as it is, is not."""
    cases = [factories.case(), factories.case(knobs={"batch_size": "64"})]
    cases += [factories.case(knobs={"jit_compile": "yes"})]
    found = advised(grid(cases=cases), lambda _: 0.01)
    assert {"version", "mode", "jit_compile"} == {item.axis for item in found.indifferent}


def test_what_computes_something_else_is_never_chosen() -> None:
    """Half the time for other outputs is no gain."""
    plan = grid(cases=[factories.case(knobs={"weights": "same"})])
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                [0.005 if job.arm.environment == "tf20" else 0.01],
                outputs_before=Outputs(values=(float(job.arm.environment == "tf20"),)),
            ),
        )
        for job in plan.jobs
    ]
    frame = merge([(plan, records)])
    found = advice.of(frame, compare(frame, environments=["tf114", "tf20"], threshold=0.02))
    assert not found.any
    assert "compute something else" in (found.choices[0].reason or "")


def test_a_run_without_a_number_advises_nothing() -> None:
    """No cell, no task, no step."""
    plan = grid()
    frame = merge([(plan, [])])
    found = advice.of(frame, compare(frame, environments=["tf114", "tf20"], threshold=0.02))
    assert (found.choices, found.ranges, found.steps, found.any) == ((), (), (), False)


def test_the_widest_pair_of_values_is_the_effect_of_an_axis() -> None:
    """Of three versions those two that lie furthest apart, although neither is the reference."""
    speed = {"tf114": 0.01, "tf20": 0.02, "tf21": 0.005}
    plan = grid(environments=list(speed))
    first, *others = advised(plan, lambda job: speed[job.arm.environment]).effects
    assert (first.axis, first.slowest, first.fastest) == ("version", "tf20", "tf21")
    assert first.apart.ratio == pytest.approx(4.0, rel=0.02)
    assert first.sure
    assert first.most
    assert not any(item.sure or item.most for item in others)
    assert {"mode", "method"} == {item.axis for item in others}


def test_other_work_is_no_axis_that_matters() -> None:
    """A larger size takes longer, and is no choice; its mean stands among the ranges."""
    cases = [
        factories.case(data=name, knobs=knobs)
        for name in ("small", "large")
        for knobs in ({}, {"batch_size": "64"})
    ]
    found = advised(grid(cases=cases), lambda job: 0.05 if "large" in job.case else 0.01)
    assert {"version", "mode"} == {item.axis for item in found.effects}
    assert not any(item.sure for item in found.effects)
    assert {"size", "batch_size"} <= {item.axis for item in found.ranges}


def test_two_axes_that_matter_alike_are_both_named() -> None:
    """Nothing says which of them matters more."""
    found = advised(
        grid(),
        lambda job: (
            0.01
            * (1.5 if job.arm.mode == "eager" else 1.0)
            * (1.5 if job.arm.environment == "tf20" else 1.0)
        ),
    )
    assert {"version", "mode"} == {item.axis for item in found.effects if item.most}
