"""Knobs: what can be turned in a case beside its model, data, input and method.

The guest has the same names and patterns; a contract test holds the two together.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBER = "[1-9][0-9]{0,8}"
_SHAPE = f"{_NUMBER}(x{_NUMBER})*"


class Knob(NamedTuple):
    """One knob: what its value must match as a whole, and what it does."""

    pattern: str
    summary: str
    # Set for the whole process, before the framework starts: not to be swept within one.
    process: bool = False
    # With another value there is other work to do; every other knob is a way to do it.
    work: bool = False


KNOBS: Final[Mapping[str, Knob]] = MappingProxyType(
    {
        "batch_size": Knob(
            f"{_NUMBER}(,{_NUMBER})*", "rows of a batch; several take turns", work=True
        ),
        "shape": Knob(
            f"{_SHAPE}(,{_SHAPE})*", "of one sample, 28x28x1; several take turns", work=True
        ),
        "batches": Knob(
            _NUMBER, "distinct batches of the data; fit goes through all in a call", work=True
        ),
        "validation": Knob(
            r"0\.(?!0+$)[0-9]{1,6}", "fit also evaluates this share of the data, 0.125", work=True
        ),
        "sample_weight": Knob("yes", "every sample has a weight", work=True),
        "metrics": Knob("[a-z_]+(,[a-z_]+)*", "compiled with these metrics, accuracy", work=True),
        "optimizer": Knob(
            "sgd|rmsprop|adagrad|adadelta|adamax|nadam", "instead of adam", work=True
        ),
        "compiled": Knob("no", "the model is used without compile()"),
        "dtype": Knob("float16|float32", "of the data, instead of numpy's own float64"),
        "precision": Knob(
            "mixed_float16|mixed_bfloat16|float16|bfloat16|float64",
            "what the model computes in, instead of float32",
        ),
        "jit_compile": Knob("yes|no", "compile() with or without XLA, whatever the default is"),
        "threads": Knob(_NUMBER, "of the framework, within and between operations", process=True),
        "onednn": Knob("yes|no", "TensorFlow's oneDNN kernels, whatever the default", process=True),
        "strategy": Knob("one_device|mirrored", "built and trained under tf.distribute's strategy"),
        "dropout": Knob("no", "the model has no dropout", work=True),
        "loaded": Knob("yes", "saved and loaded before it is used"),
        "weights": Knob(
            "same", "drawn alike for every arm, and outputs compared before timing", work=True
        ),
    }
)
OF_WORK: Final = frozenset(name for name, knob in KNOBS.items() if knob.work)
