"""Whether processes with the same seeds compute the same losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import reproducibility
from orchestrator.merge import merge
from orchestrator.model.result import Iterations
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.model.reproducibility import Agreement, Agreements

Losses = tuple[float | None, ...]
DOWN: Losses = (0.7, 0.6, 0.5, 0.4)
FORMS = (("tf.keras", "graph"),)


def of(
    losses: Mapping[str, Sequence[Losses]],
    *,
    forms: Any = FORMS,  # noqa: ANN401
    facts: Mapping[str, Any] | None = None,
    case: Mapping[str, Any] | None = None,
) -> Agreements:
    """The agreements of arms with these losses, a history a round."""
    names = list(dict.fromkeys(name.split("/")[0] for name in losses))
    plan = factories.plan(
        environments=names,
        forms=forms,
        rounds=max(len(histories) for histories in losses.values()),
        cases=[factories.case(**(case or {}))],
    )
    records = []
    for job in plan.jobs:
        histories = losses[job.arm.name]
        result = factories.result(
            [0.01] * 3, losses=histories[(job.round - 1) % len(histories)], **(facts or {})
        )
        records.append(factories.record(plan, job, result=result))
    return reproducibility.of(merge([(plan, records)]))


def within(*histories: Losses, **facts: Any) -> Agreement:  # noqa: ANN401
    """How the processes of one cell agree."""
    found = of({"tf20/tf.keras/graph": histories}, **facts)
    assert 1 == len(found.items)
    return found.items[0]


def test_the_same_bits_are_equal() -> None:
    """Nothing differs at any iteration."""
    found = within(DOWN, DOWN, DOWN)
    assert ("equal", None, None, 0.0) == (
        found.state,
        found.first_differing,
        found.diverges_at,
        found.largest,
    )
    assert (3, 4) == (found.histories, found.iterations)


def test_what_differs_within_the_tolerance_is_close() -> None:
    """With the first iteration that differs, the two of the warm-up counted, and by how much."""
    found = within(DOWN, (0.7, 0.60000006, 0.5, 0.4))
    assert ("close", 4, None) == (found.state, found.first_differing, found.diverges_at)
    assert 1e-7 == pytest.approx(found.largest, rel=0.01)


def test_what_leaves_the_tolerance_diverges_from_there_on() -> None:
    """The first iteration beyond it, not the first that differs."""
    found = within(DOWN, (0.7, 0.60000006, 0.51, 0.2))
    assert ("diverging", 4, 5) == (found.state, found.first_differing, found.diverges_at)
    assert 0.5 == pytest.approx(found.largest)


def test_half_precision_has_a_wider_tolerance() -> None:
    """One part in a hundred, as for outputs."""
    half = {"knobs": {"precision": "mixed_float16"}}
    assert "close" == within(DOWN, (0.7, 0.6, 0.5, 0.401), case=half).state
    assert "diverging" == within(DOWN, (0.7, 0.6, 0.5, 0.401)).state


def test_histories_of_different_lengths_are_compared_as_far_as_both_go() -> None:
    """Iterations are cut to fit the time limit, here and there at another place."""
    found = within(DOWN, DOWN[:3])
    assert ("equal", 3) == (found.state, found.iterations)


def test_losses_that_are_no_numbers_agree_with_each_other_only() -> None:
    """A loss that is lost in one process, and a number in another, differs beyond all measure."""
    assert "equal" == within((0.7, None, None), (0.7, None, None)).state
    torn = within((0.7, None), (0.7, 0.6))
    assert ("diverging", 4, None) == (torn.state, torn.diverges_at, torn.largest)


@pytest.mark.parametrize(
    ("histories", "reason"),
    [([DOWN], "one process only: nothing can be said"), ([(), ()], "no losses")],
)
def test_where_nothing_can_be_compared_the_reason_is_told(
    histories: list[Losses], reason: str
) -> None:
    """One process says nothing of another; inference has no losses."""
    found = within(*histories)
    assert (None, reason) == (found.state, found.reason)


def test_arms_are_compared_with_the_first_in_which_one_thing_differs() -> None:
    """Versions, modes and apis, each with everything else equal, process by process."""
    other: Losses = (0.7, 0.6, 0.5, 0.3)
    found = of(
        {
            "tf114/tf.keras/graph": [DOWN],
            "tf114/tf.keras/eager": [DOWN],
            "tf114/keras/graph": [other],
            "tf114/keras/eager": [DOWN],
            "tf20/tf.keras/graph": [DOWN],
            "tf20/tf.keras/eager": [other],
            "tf20/keras/graph": [DOWN],
            "tf20/keras/eager": [DOWN],
        },
        forms=[(api, mode) for api in ("tf.keras", "keras") for mode in ("graph", "eager")],
    )
    across = {
        (item.scope, item.arm, item.other): item.state
        for item in found.items
        if item.scope != "processes"
    }
    assert "equal" == across["version", "tf20/tf.keras/graph", "tf114/tf.keras/graph"]
    assert "diverging" == across["version", "tf20/tf.keras/eager", "tf114/tf.keras/eager"]
    assert "equal" == across["mode", "tf114/tf.keras/eager", "tf114/tf.keras/graph"]
    assert "diverging" == across["api", "tf114/keras/graph", "tf114/tf.keras/graph"]
    assert 4 + 4 + 4 == len(across)
    within_one = found.within("tf20/keras/graph", "small-small/numpy/train_on_batch")
    assert within_one is not None
    assert "one process only: nothing can be said" == within_one.reason


def test_calls_over_different_numbers_of_steps_are_not_compared() -> None:
    """One loss of a call over many steps is that of no step in particular."""
    plan = factories.plan(environments=["tf20"], forms=[FORMS[0]], rounds=2)  # type: ignore[list-item]
    whole = factories.result([0.01]).timing
    assert whole is not None
    results = [
        factories.result(
            [0.01],
            losses=(0.5,),
            timing=msgspec.structs.replace(whole, source="whole", batch=steps),
            iterations=Iterations(asked=200, done=steps),
        )
        for steps in (200, 150)
    ]
    records = [
        factories.record(plan, job, result=result)
        for job, result in zip(plan.jobs, results, strict=True)
    ]
    found = reproducibility.of(merge([(plan, records)])).items[0]
    assert (None, "they did not compute the losses of the same iterations") == (
        found.state,
        found.reason,
    )


def test_losses_of_batches_that_never_agree_differ_at_once() -> None:
    """A loss a batch is numbered by the batch's last call: the first one is where all begins."""
    plan = factories.plan(environments=["tf20"], forms=[FORMS[0]], rounds=2)  # type: ignore[list-item]
    timing = factories.result([0.01]).timing
    assert timing is not None
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                [0.01] * 3,
                losses=(first, first / 2, first / 4),
                timing=msgspec.structs.replace(timing, source="batch", batch=20),
                iterations=Iterations(asked=60, done=60),
            ),
        )
        for job, first in zip(plan.jobs, (0.9, 0.7), strict=True)
    ]
    found = reproducibility.of(merge([(plan, records)])).items[0]
    assert found.diverges_at == found.begins
    assert found.at_once
