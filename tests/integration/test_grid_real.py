"""The grid on real TensorFlow 1.14 and 2.0: combinations run, or say truly why they do not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from orchestrator import cover, grid, matrix
from orchestrator.pipeline.covering import Sweeper

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from orchestrator.environments.venv import VenvEnvironment
    from orchestrator.model.result import Swept

pytestmark = pytest.mark.real_tensorflow

GRID = grid.load({})
# With what is missing, or what the combination would mean; never a bare class of an exception.
SENTENCE = re.compile(r"[A-Za-z_].{20,}[.]", re.DOTALL)


def told(items: list[Swept], outcomes: Collection[str]) -> list[str]:
    """A line for each item with one of these outcomes."""
    return [
        f"{item.model}/{item.input}/{item.method}{item.knobs}: {item.outcome}: "
        f"{item.failure.message if item.failure else ''}"
        for item in items
        if item.outcome in outcomes
    ]


def check(found: list[Swept]) -> None:
    """Nothing failed, something ran, and each refusal is a sentence."""
    assert [] == told(found, {item.outcome for item in found} - {"ok", "unsupported"})
    assert any(item.outcome == "ok" for item in found)
    reasons = {item.failure.message for item in found if item.failure is not None}
    assert [] == [reason for reason in reasons if not SENTENCE.fullmatch(reason)]


@pytest.mark.parametrize("name", ["tf114", "tf20"])
def test_every_input_method_model_and_knob_runs_or_says_why_not(
    environments: Mapping[str, VenvEnvironment], name: str
) -> None:
    """Each version as installed: all inputs with all methods, then each model and each knob.

    The pairs of knobs are for `nox -s cover`, which takes longer than anybody waits for a test; the
    other apis and modes are swept by test_guest_real.
    """
    row = matrix.load().rows[name]
    sweep = Sweeper(environment=environments[name], row=row, api="tf.keras", mode=row.native_mode)
    check(sweep(cover.first(GRID)))
