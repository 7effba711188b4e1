"""The same weights for every version, whatever order it lists them in."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

Weights = list[tuple[str, tuple[int, ...]]]


class Model:
    """Layers with named weights, listed as this Keras lists them."""

    def __init__(self, layers: list[Weights], *, reverse: bool) -> None:
        self.layers = [
            SimpleNamespace(
                weights=[SimpleNamespace(name=name, shape=shape) for name, shape in own]
            )
            for own in layers
        ]
        self.weights = [weight for layer in self.layers for weight in layer.weights]
        if reverse:
            self.weights.reverse()
        self.values: dict[str, Any] = {}

    def set_weights(self, values: list[Any]) -> None:
        """Keep the values by name."""
        for weight, value in zip(self.weights, values, strict=True):
            assert weight.shape == value.shape
            self.values[weight.name.partition(":")[0].rpartition("/")[2]] = value


OLD: list[Weights] = [
    [("lstm/kernel:0", (3, 8)), ("lstm/recurrent_kernel:0", (2, 8)), ("lstm/bias:0", (8,))],
    [("norm/gamma:0", (2,)), ("norm/beta:0", (2,)), ("norm/moving_variance:0", (2,))],
]
NEW: list[Weights] = [
    [("bias", (8,)), ("lstm_cell/recurrent_kernel", (2, 8)), ("lstm_cell/kernel", (3, 8))],
    [("beta", (2,)), ("gamma", (2,)), ("moving_variance", (2,))],
]


@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_a_version_changes_nothing(*, reverse: bool) -> None:
    """The same layers get the same values, in whichever order and under whichever names."""
    weights = importlib.import_module("workloads.weights")
    old, new = Model(OLD, reverse=False), Model(NEW, reverse=reverse)
    weights.set_same(old)
    weights.set_same(new)
    assert set(old.values) == set(new.values)
    for name, value in old.values.items():
        np.testing.assert_array_equal(value, new.values[name])
    assert not np.array_equal(old.values["beta"], old.values["gamma"])
    assert (old.values["moving_variance"] >= 1).all()
