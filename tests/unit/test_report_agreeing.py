"""Whether a divergence is to be expected, in one sentence a kind."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.model.reproducibility import Agreement, Agreements
from orchestrator.report import agreeing


def diverging(scope: str, *, case: str = "small-small/numpy/fit", **facts: Any) -> Agreement:  # noqa: ANN401
    """From the fourth iteration on; the first that was recorded is the third."""
    values: dict[str, Any] = {
        "scope": scope,
        "case": case,
        "arm": "tf20/tf.keras/graph",
        "other": "tf114/tf.keras/graph",
        "state": "diverging",
        "begins": 3,
        "first_differing": 4,
        "diverges_at": 4,
        "largest": 0.5,
        "tolerance": 1e-4,
        "histories": 5,
        "iterations": 10,
    }
    return Agreement(**(values | facts))


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (diverging("version"), "Between versions a divergence is expected: each draws its weights"),
        (diverging("mode"), "Between modes a divergence is expected"),
        (
            diverging("version", case="small-small/numpy/fit+weights=same"),
            "losses that drift apart later are expected",
        ),
        (
            diverging("version", case="small-small/numpy/fit+weights=same", diverges_at=3),
            "losses that differ at once are not expected: they do not compute the same",
        ),
        (diverging("processes"), "is seeded: several threads add up in an order that changes"),
        (
            diverging("processes", diverges_at=3),
            "draws something without a seed, unless it came apart during the warm-up.",
        ),
        (
            diverging("processes", begins=1, diverges_at=1),
            "differs from process to process draws something without a seed.",
        ),
        (
            diverging("processes", case="small-small/numpy/fit+threads=1"),
            "On one thread the same seeds should give the same losses",
        ),
    ],
)
def test_each_kind_of_divergence_is_explained(item: Agreement, told: str) -> None:
    """In a sentence below the table, once for all rows of its kind."""
    page = "\n\n".join(agreeing.section(Agreements(items=(item, item))))
    assert page.count(told) == 1


def test_what_agrees_or_has_no_losses_needs_no_word() -> None:
    """Inference has none, and is no row."""
    equal = diverging("processes", state="equal", first_differing=None, diverges_at=None)
    silent = diverging("processes", state=None, reason="no losses", histories=0, case="predict")
    page = "\n\n".join(agreeing.section(Agreements(items=(equal, silent))))
    assert page.endswith("| its own processes | equal, bit by bit, over 10 iterations | 5 |")
    assert list(agreeing.section(Agreements(items=(silent,)))) == []


def test_the_terminal_says_what_a_divergence_means() -> None:
    """After the cells that have one, once."""
    item = diverging("processes")
    *cells, meaning = agreeing.top(Agreements(items=(item, item)))
    assert len(cells) == 2
    assert meaning == agreeing.meaning(item)
