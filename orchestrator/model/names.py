"""The closed vocabularies: every word here is one of DESIGN's, and no synonym exists."""

from __future__ import annotations

import re
from typing import Literal

from orchestrator.errors import UsageError

Api = Literal["keras", "tf.keras", "tf_keras"]
Mode = Literal["graph", "eager"]
Variant = Literal["cpu", "gpu"]
Device = Literal["cpu", "gpu"]
Backend = Literal["venv", "container", "existing"]
Framework = Literal["tensorflow", "jax", "torch"]  # what computes: Keras 3 runs on any of them
Input = Literal["numpy", "dataset"]
Method = Literal["train_on_batch", "fit"]

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
    "as_installed", "version", "mode", "api", "input", "method", "device", "workload"
]
# The workload file cannot vary within a run yet.
CONTRASTS: tuple[ContrastKind, ...] = (
    "as_installed",
    "version",
    "mode",
    "api",
    "input",
    "method",
    "device",
)

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
