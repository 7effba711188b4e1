"""Which cells are compared along each axis, and against which of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests import factories
from tests.judging import verdict

if TYPE_CHECKING:
    from orchestrator.model.cell import Case
    from orchestrator.model.names import Api, Mode
    from orchestrator.model.plan import Plan

SESSION = "tf114/tf.keras/graph"


def pairs(plan: Plan, kind: str, part: str = "case") -> list[tuple[str, str]]:
    """(candidate, reference) of every contrast of a kind, as arms or as cases."""
    found = verdict(plan, factories.measured(plan, lambda _: 0.01), kinds=[kind])
    return [
        (getattr(item.candidate, part), getattr(item.reference, part)) for item in found.contrasts
    ]


def alone(*cases: Case) -> Plan:
    """One arm of these cases."""
    return factories.plan(
        environments=["tf114"], forms=[("tf.keras", "graph")], cases=cases, rounds=1
    )


def test_modes_meet_graph_mode_or_the_first_there_is() -> None:
    """run_eagerly and eager against graph; without that against eager."""
    modes: tuple[Mode, ...] = ("run_eagerly", "eager", "graph")
    forms: list[tuple[Api, Mode]] = [("tf.keras", mode) for mode in modes]
    plan = factories.plan(environments=["tf20"], forms=forms, rounds=1)
    assert pairs(plan, "mode", "arm") == [
        ("tf20/tf.keras/eager", "tf20/tf.keras/graph"),
        ("tf20/tf.keras/run_eagerly", "tf20/tf.keras/graph"),
    ]
    plan = factories.plan(environments=["tf20"], forms=forms[:2], rounds=1)
    assert pairs(plan, "mode", "arm") == [("tf20/tf.keras/run_eagerly", "tf20/tf.keras/eager")]


def test_apis_meet_tf_keras_first() -> None:
    """Whatever the order of the plan."""
    apis: tuple[Api, ...] = ("keras", "tf.python.keras", "tf.keras")
    forms: list[tuple[Api, Mode]] = [(api, "graph") for api in apis]
    plan = factories.plan(environments=["tf114"], forms=forms, rounds=1)
    assert pairs(plan, "api", "arm") == [
        ("tf114/keras/graph", SESSION),
        ("tf114/tf.python.keras/graph", SESSION),
    ]


def test_inputs_meet_numpy_or_the_first_there_is() -> None:
    """In the order of the vocabulary."""
    cases = [factories.case(input=kind) for kind in ("dataset", "generator", "numpy")]
    assert pairs(alone(*cases), "input") == [
        ("small-small/generator/train_on_batch", "small-small/numpy/train_on_batch"),
        ("small-small/dataset/train_on_batch", "small-small/numpy/train_on_batch"),
    ]
    assert pairs(alone(*cases[:2]), "input") == [
        ("small-small/dataset/train_on_batch", "small-small/generator/train_on_batch")
    ]


def test_methods_meet_only_those_that_do_the_same_work() -> None:
    """Training is not compared with inference."""
    names = ["call", "predict", "evaluate", "fit", "custom_loop"]
    assert pairs(alone(*(factories.case(name) for name in names)), "method") == [
        ("small-small/numpy/call", "small-small/numpy/predict"),
        ("small-small/numpy/custom_loop", "small-small/numpy/fit"),
    ]


def test_a_knob_meets_the_case_without_it() -> None:
    """Cells that differ in two knobs are not compared; each step is told by its knob."""
    sets = [{}, {"jit_compile": "yes"}, {"threads": "1"}, {"jit_compile": "yes", "threads": "1"}]
    plan = alone(*(factories.case(knobs=knobs) for knobs in sets))
    found = verdict(plan, factories.measured(plan, lambda _: 0.01), kinds=["knob"])
    start = factories.case().name
    sides = [
        (item.knob, item.candidate.case[len(start) :], item.reference.case[len(start) :])
        for item in found.contrasts
    ]
    assert sides == [
        ("jit_compile", "+jit_compile=yes", ""),
        ("jit_compile", "+jit_compile=yes+threads=1", "+threads=1"),
        ("threads", "+threads=1", ""),
        ("threads", "+jit_compile=yes+threads=1", "+jit_compile=yes"),
    ]


def test_values_of_a_knob_meet_the_first_of_the_plan() -> None:
    """Where no case is without it."""
    plan = alone(*(factories.case(knobs={"batch_size": size}) for size in ("64", "16", "128")))
    start = "small-small/numpy/train_on_batch+batch_size="
    assert pairs(plan, "knob") == [
        (f"{start}16", f"{start}64"),
        (f"{start}128", f"{start}64"),
    ]


def test_other_work_is_said_to_be_no_gain() -> None:
    """A larger batch takes longer because it is larger; XLA does the same work."""
    sets = [{}, {"batch_size": "64"}, {"jit_compile": "yes"}]
    plan = alone(*(factories.case(knobs=knobs) for knobs in sets))
    found = verdict(plan, factories.measured(plan, lambda _: 0.01), kinds=["knob"])
    notes = {item.knob: item.notes for item in found.contrasts}
    assert {"batch_size": ("not the same work: batch_size",), "jit_compile": ()} == notes


def test_another_workload_is_not_the_same_as_installed() -> None:
    """With an arm as the reference, arms of other files meet it too."""
    plan = factories.plan(workloads=["old", "new"], rounds=1)
    records = factories.measured(plan, lambda _: 0.01)
    found = verdict(plan, records, reference=f"{SESSION}/old")
    kinds = {item.candidate.arm: item.kind for item in found.contrasts}
    assert kinds["tf20/tf.keras/eager/old"] == "as_installed"
    assert kinds["tf20/tf.keras/eager/new"] == "version"
    assert kinds[f"{SESSION}/new"] == "workload"


def test_a_workload_file_meets_the_one_that_was_named_first() -> None:
    """In the order of the command line, not of the alphabet."""
    plan = factories.plan(
        environments=["tf114"],
        forms=[("tf.keras", "graph")],
        workloads=["old", "new"],
        rounds=1,
    )
    assert pairs(plan, "workload", "arm") == [(f"{SESSION}/new", f"{SESSION}/old")]


def test_every_kind_that_was_asked_for_is_a_family_of_its_own() -> None:
    """Knobs are corrected together, and apart from methods."""
    cases = [
        factories.case(name, knobs=knobs)
        for name in ("train_on_batch", "fit")
        for knobs in ({}, {"threads": "1"})
    ]
    plan = factories.plan(
        environments=["tf114"], forms=[("tf.keras", "graph")], cases=cases, rounds=6
    )
    found = verdict(plan, factories.measured(plan, lambda _: 0.01))
    assert found.tested() == {"method": 2, "knob": 2}
