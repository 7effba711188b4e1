"""What computes something else is neither slower nor faster: it is different."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from orchestrator.model.reproducibility import HALF_TOLERANCE, TOLERANCE
from orchestrator.model.result import Outputs
from orchestrator.verdict.outputs import difference
from tests import factories
from tests.judging import pair, verdict
from tests.reporting import Reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record

SAME = {"weights": "same"}
VALUES = (0.5, -0.25, 2.0)


def computed(
    plan: Plan, values: Sequence[float | None] | None, *, half: bool = False, ratio: float = 2.0
) -> list[Record]:
    """tf20 takes twice as long, and computes these outputs where tf114 computes VALUES."""
    records = []
    for job in plan.jobs:
        other = job.arm.environment == "tf20"
        found = values if other else VALUES
        outputs = None if found is None else Outputs(values=tuple(found), half=half)
        result = factories.result([0.01 * (ratio if other else 1)] * 3, outputs_before=outputs)
        records.append(factories.record(plan, job, result=result))
    return records


def same_weights() -> Plan:
    """Two versions that start from the same weights."""
    return pair(cases=[factories.case(knobs=SAME)])


@pytest.mark.parametrize(
    ("other", "half", "reason"),
    [
        ((0.5, -0.25, 2.00019), False, None),
        ((0.5, -0.25, 2.0005), False, "different: outputs differ by up to 0.025%"),
        ((0.5, 0.25, 2.0), False, "different: outputs differ by up to 200%"),
        ((0.5, -0.25, 2.019), True, None),
        ((0.5, -0.25, 2.1), True, "different: outputs differ by up to 4.76%"),
        ((0.5, -0.25), False, "different: 2 outputs against 3"),
        ((0.5, -0.25, None), False, "different: the outputs of one of them are no numbers"),
    ],
)
def test_other_outputs_leave_no_verdict(
    other: Sequence[float | None], reason: str | None, *, half: bool
) -> None:
    """The ratio and its interval stand; what they would mean, a gain in percent too, does not."""
    plan = same_weights()
    (contrast,) = verdict(plan, computed(plan, other, half=half)).contrasts
    assert contrast.reason == reason
    assert contrast.state == (None if reason else "slower")
    assert (contrast.q is None) == (reason is not None)
    assert contrast.different == (reason is not None)
    assert (contrast.origin_percent is None) == (reason is not None)
    assert contrast.ratio == pytest.approx(2.0)


def test_outputs_that_are_missing_are_unknown_not_equal() -> None:
    """The verdict stands, with a note that it may be about another computation."""
    plan = same_weights()
    (contrast,) = verdict(plan, computed(plan, None)).contrasts
    assert contrast.state == "slower"
    assert contrast.notes == ("unknown whether outputs agree: tf20/tf.keras/graph left none",)


def test_only_the_same_weights_give_outputs_to_compare() -> None:
    """Weights drawn by each version differ, and so does what they compute."""
    plan = pair()
    (contrast,) = verdict(plan, computed(plan, (9.0, 9.0, 9.0))).contrasts
    assert (contrast.state, contrast.reason) == ("slower", None)


def test_another_batch_has_other_outputs() -> None:
    """The knob that changes the data is no mistake of the model."""
    cases = [factories.case(knobs=SAME | knob) for knob in ({}, {"batch_size": "64"})]
    plan = pair(environments=["tf114"], cases=cases)
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                [0.01], outputs_before=Outputs(values=(0.1,) * (2 if "64" in job.case else 1))
            ),
        )
        for job in plan.jobs
    ]
    (contrast,) = verdict(plan, records).contrasts
    assert (contrast.kind, contrast.state) == ("knob", "same")


def test_one_different_output_in_one_round_is_enough() -> None:
    """An arm that computes something else now and then cannot be trusted either."""
    plan = same_weights()
    records = computed(plan, VALUES)
    place = next(n for n, record in enumerate(records) if record.arm.environment == "tf20")
    records[place] = computed(plan, (1.0, -0.25, 2.0))[place]
    (contrast,) = verdict(plan, records).contrasts
    assert contrast.reason == "different: outputs differ by up to 50%"


def test_reports_say_that_outputs_differ() -> None:
    """In the headline and below the table; nothing is called slower, nothing is advised."""
    plan = same_weights()
    shown = Reports(plan, computed(plan, (0.5, 0.25, 2.0)))
    assert "No verdict: different: outputs differ by up to 200%." in shown.sentences
    assert "no verdict, different: outputs differ by up to 200%" in shown.markdown
    assert "SLOWER" not in shown.terminal + shown.markdown
    assert "compute something else" in shown.markdown


@pytest.mark.parametrize("tolerance", [TOLERANCE, HALF_TOLERANCE])
def test_the_tolerance_is_relative_and_forgives_what_is_nearly_nothing(tolerance: float) -> None:
    """An output near 0 beside large ones holds their rounding."""
    assert difference([1.0, 1e-9], [1.0 + 0.9 * tolerance, 2e-9], tolerance=tolerance) == 0
    assert difference([1.0], [1.0 + 2 * tolerance], tolerance=tolerance) == pytest.approx(
        2 * tolerance, rel=0.05
    )
    assert difference([math.nan], [math.nan], tolerance=tolerance) == 0
