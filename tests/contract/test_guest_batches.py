"""Calls so short that the clock would matter are timed together."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.model.comparison import ENOUGH_VALUES
from orchestrator.model.result import Iterations
from orchestrator.quantities.processes import MEMORY_EVERY
from tests.contract.test_guest_user import DATA, MODEL

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.result import Result
    from tests.contract.conftest import RunGuest

STEP = "def step(model, batch):\n    return 0.5\n"
COUNTED = "calls = [0]\ndef step(model, batch):\n    calls[0] += 1\n    return calls[0]\n"


@pytest.fixture(scope="module")
def timing() -> Any:  # noqa: ANN401
    """The guest's side, which the host never imports outside of tests."""
    return importlib.import_module("workloads.timing")


def test_both_sides_mean_the_same_numbers(timing: Any) -> None:  # noqa: ANN401
    """They share files, never code: what either assumes of the other stands in both."""
    assert timing.ENOUGH_VALUES == ENOUGH_VALUES
    assert timing.MEMORY_EVERY == MEMORY_EVERY


def measured(
    run_guest: RunGuest,
    python: Path,
    folder: Path,
    text: str = STEP,
    **fields: object,
) -> Result:
    """What the guest leaves of a step of the user's own."""
    file = folder / "mine.py"
    file.write_text(MODEL + DATA + text, encoding="utf-8")
    asked = {"workload": str(file), "model": "mine", "input": "given", "method": "step"}
    ended = run_guest(python, {**asked, **fields})
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    return ended.result


def test_short_calls_are_timed_in_batches(
    python: Path, run_guest: RunGuest, weird_path: Path
) -> None:
    """A value a batch, in seconds a call, and a loss a value; iterations count calls."""
    result = measured(run_guest, python, weird_path, COUNTED, iterations=1000)
    assert result.timing is not None
    assert result.timing.source == "batch"
    size = result.timing.batch
    assert size > 1
    assert 1000 // size == len(result.values_s)
    assert Iterations(asked=1000, done=1000 // size * size) == result.iterations
    first = 1 + 4  # of the first call and the warm-up
    expected = tuple(first + size * (place + 1) for place in range(len(result.values_s)))
    assert expected == result.losses
    reads = len(result.values_s) // -(-10 // size)
    assert 1 + reads + 1 == len(result.rss_bytes)


def test_few_iterations_still_give_ten_values(
    python: Path, run_guest: RunGuest, weird_path: Path
) -> None:
    """A batch is never so large that there are fewer values than a median needs."""
    result = measured(run_guest, python, weird_path, iterations=25)
    assert result.timing is not None
    assert ("batch", 2) == (result.timing.source, result.timing.batch)
    assert Iterations(asked=25, done=24) == result.iterations
    assert 12 == len(result.values_s)


def test_batches_are_cut_to_the_budget(python: Path, run_guest: RunGuest, weird_path: Path) -> None:
    """A workload that has no time for its warm-up is timed call by call."""
    result = measured(run_guest, python, weird_path, iterations=1000, budget_s=1e-9)
    assert result.timing is not None
    assert ("call", 1) == (result.timing.source, result.timing.batch)
    assert Iterations(asked=1000, done=3) == result.iterations


def test_batches_end_when_the_time_does(timing: Any) -> None:  # noqa: ANN401
    """After the least number of calls, and never within a batch."""
    found = timing.repeat_batches(lambda: None, size=4, at_most=100, at_least=6, until=0.0)
    assert 2 == len(found.values_s)
    assert 2 == len(found.rss_bytes)  # before and after: in between after every third batch


@pytest.mark.parametrize(
    ("call_s", "iterations", "turns", "size"),
    [
        (100e-6, 200, 1, 1),  # the clock takes a hundredth
        (99e-6, 200, 1, 2),
        (40e-6, 200, 1, 5),
        (11e-6, 200, 1, 10),
        (4e-6, 1000, 1, 50),
        (4e-6, 200, 1, 20),  # ten values at least
        (4e-6, 9, 1, 1),
        (0.0, 200, 1, 20),  # less than the clock can tell
        (40e-6, 200, 3, 6),  # whole turns
        (4e-6, 200, 3, 18),
        (4e-6, 20, 3, 1),
    ],
)
def test_how_many_calls_make_a_batch(
    timing: Any,  # noqa: ANN401
    call_s: float,
    iterations: int,
    turns: int,
    size: int,
) -> None:
    """As many as take a hundred times what the clock costs, in round numbers."""
    clock = timing.Clock(resolution_s=1e-9, overhead_s=1e-6)
    assert size == timing.batch_size(call_s, clock, iterations=iterations, turns=turns)


def test_a_coarse_clock_needs_longer_batches(timing: Any) -> None:  # noqa: ANN401
    """What the clock cannot tell apart counts as what reading it costs."""
    clock = timing.Clock(resolution_s=1e-6, overhead_s=1e-9)
    assert 5 == timing.batch_size(40e-6, clock, iterations=200)
