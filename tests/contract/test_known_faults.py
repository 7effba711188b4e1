"""What TensorFlow 1 ends with an error on is refused with its reason, and nothing else is."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

STRATEGY = {"strategy": "one_device"}


def reasons(release: tuple[int, int], *, has_dropout: bool = True, **asked: Any) -> list[str]:  # noqa: ANN401
    """Why these releases cannot run what is asked for."""
    faults = importlib.import_module("workloads.known_faults")
    protocol = importlib.import_module("workloads.protocol")
    request = protocol.Request(action="sweep", environment="tf", phase_path="", **asked)
    eagerly = request.mode != "graph"
    rules = faults.of_model(release, request, eagerly=eagerly, has_dropout=has_dropout)
    if "strategy" in request.knobs:
        rules += faults.of_strategy(release, request, eagerly=eagerly)
    return [why for holds, why in rules if holds]


@pytest.mark.parametrize(
    ("asked", "last"),
    [
        ({"mode": "run_eagerly", "knobs": STRATEGY}, (1, 14)),
        ({"mode": "graph", "input": "sequence", "method": "fit", "knobs": STRATEGY}, (1, 14)),
        ({"mode": "eager", "input": "generator", "method": "predict", "knobs": STRATEGY}, (1, 14)),
        ({"mode": "eager", "input": "dataset_cached", "method": "fit", "knobs": STRATEGY}, (1, 14)),
        ({"mode": "eager", "api": "tf.python.keras", "knobs": STRATEGY}, (1, 15)),
        ({"mode": "eager", "model": "gru", "knobs": {"precision": "float16"}}, (1, 14)),
        (
            {"mode": "eager", "model": "lstm", "method": "fit", "knobs": {"precision": "float64"}},
            (1, 15),
        ),
        (
            {"input": "dataset", "method": "fit", "knobs": {"sample_weight": "yes"}},
            (1, 14),
        ),
    ],
)
def test_what_fails_is_refused_up_to_the_last_release_that_has_the_fault(
    asked: dict[str, Any], last: tuple[int, int]
) -> None:
    """Each was run: it fails on the last of these releases, and runs on the next."""
    assert 1 == len(reasons(last, **asked))
    assert [] == reasons((last[0], last[1] + 1), **asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"mode": "run_eagerly", "method": "predict", "knobs": {**STRATEGY, "compiled": "no"}},
        {"mode": "eager", "input": "sequence", "method": "train_on_batch", "knobs": STRATEGY},
        {"mode": "eager", "input": "dataset", "method": "fit", "knobs": STRATEGY},
        {"mode": "graph", "api": "tf.python.keras", "method": "fit", "knobs": STRATEGY},
        {"mode": "run_eagerly", "model": "gru", "knobs": {"precision": "float16"}},
        {"mode": "eager", "model": "gru", "method": "predict", "knobs": {"precision": "float16"}},
        {
            "mode": "eager",
            "model": "gru",
            "method": "custom_loop",
            "knobs": {"precision": "float64"},
        },
        {"mode": "eager", "model": "gru"},
        {"input": "dataset", "method": "evaluate", "knobs": {"sample_weight": "yes"}},
        {"input": "dataset", "method": "train_on_batch", "knobs": {"sample_weight": "yes"}},
        {"input": "dataset", "method": "fit"},
    ],
)
def test_what_runs_on_the_oldest_release_is_not_refused(asked: dict[str, Any]) -> None:
    """Beside each fault lies what runs: the rule is no wider than the fault."""
    assert [] == reasons((1, 14), **asked)


def test_a_model_without_dropout_runs() -> None:
    """Nothing asks whether it trains."""
    asked = {"input": "dataset", "method": "fit", "knobs": {"sample_weight": "yes"}}
    assert [] == reasons((1, 14), has_dropout=False, **asked)


def test_jax_makes_no_recurrent_weights_in_float16() -> None:
    """Its factorisation takes none; other precisions, and other models, were run."""
    jax = importlib.import_module("workloads.keras3_backend").Jax
    protocol = importlib.import_module("workloads.protocol")
    backend = object.__new__(jax)  # without JAX
    backend.version = "0.10.2"

    def check(model: str, precision: str) -> None:
        request = protocol.Request(
            action="measure",
            environment="keras3-jax",
            phase_path="",
            model=model,
            knobs={"precision": precision},
        )
        backend.check_model(request, has_dropout=True)

    for model in ("gru", "lstm"):
        with pytest.raises(protocol.Stopped) as raised:
            check(model, "float16")
        assert raised.value.outcome == "unsupported"
        assert "JAX 0.10.2 factorises no matrix in float16" in raised.value.message
        for precision in ("bfloat16", "mixed_float16", "float64"):
            check(model, precision)
    check("tiny", "float16")
