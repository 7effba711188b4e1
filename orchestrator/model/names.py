"""The closed vocabularies: every word here is one of DESIGN's, and no synonym exists."""

from __future__ import annotations

import re
from typing import Literal, get_args

from orchestrator.errors import UsageError

Api = Literal["keras", "tf.keras", "tf_keras", "tf.python.keras"]
Mode = Literal["graph", "eager", "run_eagerly"]
Variant = Literal["cpu", "gpu"]
Device = Literal["cpu", "gpu"]
Backend = Literal["venv", "container", "existing"]
Framework = Literal["tensorflow", "jax", "torch"]  # what computes: Keras 3 runs on any of them
# `given`: as a workload file's own make_data returns it.
Input = Literal[
    "numpy",
    "tensor",
    "generator",
    "sequence",
    "dataset",
    "dataset_cached",
    "dataset_prefetch",
    "given",
]
# `step`: a workload file's own. `life_cycle`: clear, build, fit ten steps, again and again.
Method = Literal[
    "train_on_batch",
    "fit",
    "custom_loop",
    "custom_loop_function",
    "step",
    "test_on_batch",
    "evaluate",
    "predict",
    "predict_on_batch",
    "call",
    "call_function",
    "life_cycle",
]
# Methods that do the same work, each in its own way; only those are compared with each other.
METHOD_GROUPS: tuple[tuple[Method, ...], ...] = (
    ("train_on_batch", "fit", "custom_loop", "custom_loop_function"),
    ("test_on_batch", "evaluate"),
    ("predict", "predict_on_batch", "call", "call_function"),
    ("step",),
    ("life_cycle",),
)
GROUP_OF: dict[str, Method] = {method: group[0] for group in METHOD_GROUPS for method in group}

Outcome = Literal[
    "ok",
    "unsupported",
    "failed",
    "crashed",
    "timed_out",
    "out_of_memory",
    "invalid",
    "environment_error",
    "skipped",
]
State = Literal["faster", "slower", "same", "unclear"]
ContrastKind = Literal[
    "as_installed", "version", "mode", "api", "workload", "input", "method", "knob", "device"
]
CONTRASTS: tuple[ContrastKind, ...] = get_args(ContrastKind)

FRAMEWORKS: dict[Framework, str] = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}

# What a run can be repeated for; anything else is a property of the cell (DESIGN, The record).
REDONE_OUTCOMES: frozenset[Outcome] = frozenset({"environment_error"})
REDONE_FAILURES = frozenset({"lost_node", "throttled"})
# `unsupported` is knowledge, not a failure: it does not change the exit code.
FAILED_OUTCOMES: frozenset[Outcome] = frozenset(
    {
        "failed",
        "crashed",
        "timed_out",
        "out_of_memory",
        "invalid",
        "environment_error",
        "skipped",
    }
)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def is_name(text: str) -> bool:
    """Whether it is safe in paths, image tags and shells."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str, *, what: str) -> str:
    """`name`, if it is safe in paths, image tags and shells; else UsageError."""
    if not is_name(name):
        raise UsageError(
            f"{what} {name!r} is not a name.",
            fix="Names are lower-case letters, digits, '.', '_' and '-', and start with one of the "
            "first two.",
        )
    return name
