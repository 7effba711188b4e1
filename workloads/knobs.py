"""Knobs: what a request turns beside model, data, input and method; each is applied or refused.

Names and patterns repeat `orchestrator/model/knobs.py`; a contract test holds the two together.
"""

import os
import re
from math import gcd
from typing import NamedTuple, Optional, Tuple

from workloads import models
from workloads.protocol import Stopped, malformed

_NUMBER = "[1-9][0-9]{0,8}"
_SHAPE = f"{_NUMBER}(x{_NUMBER})*"
PATTERNS = {
    "batch_size": f"{_NUMBER}(,{_NUMBER})*",
    "shape": f"{_SHAPE}(,{_SHAPE})*",
    "batches": _NUMBER,
    "validation": r"0\.(?!0+$)[0-9]{1,6}",
    "sample_weight": "yes",
    "metrics": "[a-z_]+(,[a-z_]+)*",
    "optimizer": "sgd|rmsprop|adagrad|adadelta|adamax|nadam",
    "compiled": "no",
    "dtype": "float16|float32",
    "precision": "mixed_float16|mixed_bfloat16|float16|bfloat16|float64",
    "jit_compile": "yes|no",
    "threads": _NUMBER,
    "onednn": "yes|no",
    "strategy": "one_device|mirrored",
    "dropout": "no",
    "loaded": "yes",
    "weights": "same",
}
# Set for the whole process, before the framework starts.
OF_PROCESS = ("threads", "onednn")

TRAINING = ("train_on_batch", "fit", "custom_loop", "custom_loop_function")
TESTING = ("test_on_batch", "evaluate")
INFERENCE = ("predict", "predict_on_batch", "call", "call_function")
# Those that go through their data by themselves.
WHOLE = ("fit", "evaluate", "predict")
_COMPILED = (*TRAINING[:2], *TESTING, *INFERENCE[:2], "life_cycle")
# What a knob is of no use to would be the same cell under another name: it is refused instead.
_OF_USE = {
    "validation": (("fit",), "only fit validates"),
    "sample_weight": (
        (*TRAINING, *TESTING, "life_cycle"),
        "a method without a loss has nothing to weigh, and a step of the user's own weighs itself",
    ),
    "metrics": ((*TRAINING[:2], *TESTING, "life_cycle"), "only Keras's own training computes them"),
    "optimizer": ((*TRAINING, "life_cycle"), "a method that trains nothing uses no optimizer"),
    "compiled": (
        INFERENCE,
        "training and testing with Keras need compile(), and a loop of one's own its optimizer",
    ),
    "jit_compile": (_COMPILED, "only Keras's own methods heed what compile() was told"),
    "weights": (
        (*TRAINING, *TESTING, *INFERENCE, "step"),
        "a life cycle makes the model, and so its weights, anew in every iteration",
    ),
    "batches": (
        (*TRAINING, *TESTING, *INFERENCE, "step"),
        "a life cycle trains for ten steps",
    ),
}


class Knobs(NamedTuple):
    """What is turned; every default is what happens without the knob."""

    batch_size: Tuple[int, ...] = ()  # of the batches that take turns; none: the request's
    shape: Tuple[Tuple[int, ...], ...] = ()  # of samples, likewise
    batches: Optional[int] = None
    validation: float = 0.0
    sample_weight: bool = False
    metrics: Tuple[str, ...] = ()
    optimizer: str = "adam"
    compiled: bool = True
    dtype: str = "float64"
    precision: str = "float32"
    jit_compile: Optional[bool] = None
    threads: Optional[int] = None
    onednn: Optional[bool] = None
    strategy: str = ""
    dropout: bool = True
    loaded: bool = False
    weights: str = ""

    @property
    def half(self) -> bool:
        """Whether the model computes in half precision."""
        return self.precision.endswith("float16")


def _yes(text) -> bool:
    return text == "yes"


def _numbers(text) -> tuple:
    return tuple(int(number) for number in text.split(","))


def _shapes(text) -> tuple:
    return tuple(tuple(int(size) for size in shape.split("x")) for shape in text.split(","))


def _words(text) -> tuple:
    return tuple(text.split(","))


# Of knobs whose value is not text.
_READ = {
    "batch_size": _numbers,
    "shape": _shapes,
    "batches": int,
    "validation": float,
    "sample_weight": _yes,
    "metrics": _words,
    "compiled": _yes,
    "jit_compile": _yes,
    "threads": int,
    "onednn": _yes,
    "dropout": _yes,
    "loaded": _yes,
}


def of(request) -> Knobs:
    """The request's knobs; Stopped (`failed`, kind `request`) for what no knob is."""
    found = {}
    for name, value in request.knobs.items():
        if name not in PATTERNS:
            raise malformed(f"it has an unknown knob {name!r}")
        if not isinstance(value, str) or not re.fullmatch(PATTERNS[name], value):
            raise malformed(f"the knob {name} cannot be {value!r}")
        found[name] = _READ.get(name, str)(value)
    return Knobs(**found)


def before_import(request):
    """Set what the framework reads once, when it is imported."""
    chosen = of(request).onednn
    if chosen is not None:
        # In TensorFlow 2.4 and older the variable means nothing: after_import() refuses there.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = str(int(chosen))


def after_import(backend, chosen):
    """Set what holds for the whole process, or for all of one cell; Stopped where it cannot be."""
    if chosen.onednn is not None:
        backend.check_onednn()
    if chosen.threads is not None:
        backend.set_threads(chosen.threads)
    backend.set_precision(chosen.precision)


def batch_shapes(request, chosen) -> list:
    """Shapes of the batches that take turns, in order: a batch, then the shape of a sample."""
    sizes = chosen.batch_size or (request.batch_shape[0],)
    samples = chosen.shape or (tuple(request.batch_shape[1:]),)
    turns = len(sizes) * len(samples) // gcd(len(sizes), len(samples))
    return [(sizes[turn % len(sizes)], *samples[turn % len(samples)]) for turn in range(turns)]


def check(request, chosen):
    """Stopped (`unsupported`) for what would change nothing in this case, or cannot be."""
    if request.mode == "run_eagerly" and request.method.endswith("_function"):
        raise _refused(
            "mode",
            f"The mode run_eagerly is what compile() is told: it does not reach {request.method}, "
            "a function of the user's own, which is the same as in the mode eager.",
        )
    for name, (methods, why) in _OF_USE.items():
        if name in request.knobs and request.method not in methods:
            raise _refused(name, f"The knob {name} is not for {request.method}: {why}.")
    if chosen.jit_compile and request.mode == "run_eagerly":
        raise _refused("jit_compile", "What runs op by op is not compiled: see the mode eager.")
    if request.input == "given":
        _check_given(chosen)
    for shape in chosen.shape:
        _check_shape(request, chosen.shape[0], shape)


def _check_given(chosen):
    if chosen.batches or len(chosen.batch_size) > 1 or len(chosen.shape) > 1:
        raise _refused(
            "batches", "How many batches there are, and of which shapes, the workload file says."
        )


def _check_shape(request, first, shape):
    """Stopped for shapes that one model cannot take in turn."""
    axes = len(models.MODELS[request.model].batch_shape) - 1
    if request.input != "given" and len(shape) != axes:
        raise _refused("shape", f"A sample of {request.model} has {axes} axes, not {len(shape)}.")
    if shape[-1] != first[-1] and request.model not in ("embedding", "identity"):
        raise _refused(
            "shape",
            f"The weights of {request.model} depend on its samples' last axis: it is fixed.",
        )


def _refused(kind, why) -> Stopped:
    return Stopped("unsupported", kind, why)
