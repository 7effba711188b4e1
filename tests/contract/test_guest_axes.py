"""Every input, method, model and knob of the guest: what it reads, what it applies or refuses."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.model.knobs import KNOBS
from orchestrator.model.names import METHOD_GROUPS
from orchestrator.model.request import SweepCell

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.names import Input, Method
    from orchestrator.model.result import Swept
    from tests.contract.conftest import RunGuest

INPUTS: tuple[Input, ...] = (
    "numpy",
    "tensor",
    "generator",
    "sequence",
    "dataset",
    "dataset_cached",
    "dataset_prefetch",
)


@pytest.fixture(scope="module")
def knobs() -> Any:  # noqa: ANN401
    """The guest's side, which the host never imports outside of tests."""
    return importlib.import_module("workloads.knobs")


def test_same_knobs(knobs: Any) -> None:  # noqa: ANN401
    """Both sides know the same knobs, by the same patterns, and which are of the process."""
    assert {name: knob.pattern for name, knob in KNOBS.items()} == knobs.PATTERNS
    assert {name for name, knob in KNOBS.items() if knob.process} == set(knobs.OF_PROCESS)
    assert set(KNOBS) == set(knobs.Knobs._fields)


def test_same_groups(knobs: Any) -> None:  # noqa: ANN401
    """Both sides group the methods alike."""
    methods = [knobs.TRAINING, knobs.TESTING, knobs.INFERENCE, ("step",), ("life_cycle",)]
    assert methods == list(METHOD_GROUPS)


def swept(run_guest: RunGuest, python: Path, *cells: SweepCell) -> tuple[Swept, ...]:
    """What becomes of these cells in one process."""
    ended = run_guest(python, {"action": "sweep", "cells": cells, "batches": 2})
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    assert [(cell.input, cell.method) for cell in cells] == [
        (each.input, each.method) for each in ended.result.sweep
    ]
    return ended.result.sweep


def test_every_input_of_keras_own_methods(python: Path, run_guest: RunGuest) -> None:
    """Each input feeds each of Keras's own methods."""
    methods: tuple[Method, ...] = (
        "train_on_batch",
        "fit",
        "test_on_batch",
        "evaluate",
        "predict",
        "predict_on_batch",
    )
    cells = [SweepCell(input=source, method=method) for source in INPUTS for method in methods]
    assert {"ok"} == {cell.outcome for cell in swept(run_guest, python, *cells)}


@pytest.mark.parametrize(
    ("method", "turned", "says"),
    [
        ("predict", {"sample_weight": "yes"}, "a method without a loss has nothing to weigh"),
        ("train_on_batch", {"validation": "0.125"}, "only fit validates"),
        ("fit", {"compiled": "no"}, "training and testing with Keras need compile()"),
        ("predict", {"optimizer": "sgd"}, "a method that trains nothing uses no optimizer"),
        ("call", {"jit_compile": "yes"}, "only Keras's own methods heed what compile() was told"),
        ("predict", {"metrics": "accuracy"}, "only Keras's own training computes them"),
        ("fit", {"jit_compile": "yes"}, "has no jit_compile"),
        ("fit", {"precision": "mixed_float16"}, "it has no policies"),
        ("life_cycle", {"batches": "3"}, "a life cycle trains for ten steps"),
        ("life_cycle", {"weights": "same"}, "makes the model, and so its weights, anew"),
        ("fit", {"batches": "2", "batch_size": "2,4"}, "one batch size, in a call"),
        ("fit", {"shape": "8x8x3"}, "A sample of tiny has 2 axes, not 3"),
        ("fit", {"shape": "8x3,8x4"}, "depend on its samples' last axis"),
        ("step", {}, "Only a workload file that defines step has it"),
    ],
)
def test_refused(
    python: Path, run_guest: RunGuest, method: Method, turned: dict[str, str], says: str
) -> None:
    """What would change nothing, or cannot be, is `unsupported`, with its reason."""
    (cell,) = swept(run_guest, python, SweepCell(input="numpy", method=method, knobs=turned))
    assert cell.failure is not None
    assert ("unsupported", True) == (cell.outcome, says in cell.failure.message), cell.failure


def test_a_cell_ends_none_of_the_others(python: Path, run_guest: RunGuest) -> None:
    """What fails in a sweep is told where it stands, and the next cell runs."""
    cells = (
        SweepCell(input="numpy", method="fit", knobs={"turbo": "yes"}),
        SweepCell(model="huge", input="numpy", method="fit"),
        SweepCell(input="numpy", method="fit", knobs={"threads": "2"}),
        SweepCell(input="numpy", method="fit"),
    )
    outcomes = [cell.outcome for cell in swept(run_guest, python, *cells)]
    assert ["failed", "failed", "skipped", "ok"] == outcomes


@pytest.mark.parametrize(
    ("turned", "says"),
    [
        ({"turbo": "yes"}, "unknown knob 'turbo'"),
        ({"batch_size": "0"}, "batch_size cannot be '0'"),
        ({"validation": "0.125\n"}, "validation cannot be"),
        ({"compiled": "yes"}, "compiled cannot be 'yes'"),
    ],
)
def test_knobs_that_are_none(
    python: Path, run_guest: RunGuest, turned: dict[str, str], says: str
) -> None:
    """A knob that the guest does not know is refused before anything is imported."""
    ended = run_guest(python, {"knobs": turned})
    assert ended.result is not None, ended.log
    assert ended.result.failure is not None
    assert ("request", []) == (ended.result.failure.kind, ended.phases)
    assert re.search(re.escape(says), ended.result.failure.message)


@pytest.mark.parametrize(
    ("turned", "shapes"),
    [
        ({}, [(8, 20, 30)]),
        ({"batch_size": "4"}, [(4, 20, 30)]),
        ({"batch_size": "4,8", "shape": "9x30"}, [(4, 9, 30), (8, 9, 30)]),
        (
            {"batch_size": "4,8", "shape": "9x30,8x30,7x30"},
            [(4, 9, 30), (8, 8, 30), (4, 7, 30), (8, 9, 30), (4, 8, 30), (8, 7, 30)],
        ),
    ],
)
def test_values_take_turns(
    knobs: Any,  # noqa: ANN401
    turned: dict[str, str],
    shapes: list[tuple[int, ...]],
) -> None:
    """Batch sizes and shapes take turns, each at its own pace."""
    protocol = importlib.import_module("workloads.protocol")
    asked = protocol.Request(
        action="measure", environment="tf20", phase_path="p", batch_shape=(8, 20, 30), knobs=turned
    )
    assert shapes == knobs.batch_shapes(asked, knobs.of(asked))
