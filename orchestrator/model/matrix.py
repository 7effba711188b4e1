"""Rows of `matrix.toml`: a version pair with its Python, packages, facts and limits."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

import msgspec

from orchestrator.model.names import FRAMEWORKS, Api, Framework, Mode, Variant

if TYPE_CHECKING:
    from orchestrator.model.cell import Arm, Case


class Versions(Protocol):
    """Whatever has the versions of an environment: a row, or what a plan keeps of it."""

    @property
    def tensorflow(self) -> str:
        """TensorFlow's version, or nothing where Keras computes with something else."""

    @property
    def jax(self) -> str:
        """JAX's version, or nothing."""

    @property
    def torch(self) -> str:
        """PyTorch's version, or nothing."""

    @property
    def keras(self) -> str:
        """The version of the `keras` package, or nothing where there is none."""

    @property
    def extra(self) -> tuple[str, ...]:
        """Packages added with --with."""


def framework(item: Versions) -> tuple[Framework, str]:
    """What the environment computes with, and its version."""
    if item.jax:
        return "jax", item.jax
    if item.torch:
        return "torch", item.torch
    return "tensorflow", item.tensorflow


def own_api(item: Versions) -> Api:
    """The api that people use there: tf.keras, or Keras itself where there is no TensorFlow."""
    return "tf.keras" if item.tensorflow else "keras"


def title(item: Versions) -> str:
    """`TensorFlow 1.14.0, Keras 2.2.5`, with ` + pandas` where that was added."""
    name, version = framework(item)
    keras = f", Keras {item.keras}" if item.keras else ""
    return f"{FRAMEWORKS[name]} {version}{keras}" + "".join(f" + {one}" for one in item.extra)


class Impossible(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A combination that this pair cannot run, and why. Each field is a glob over one name."""

    api: str = "*"
    mode: str = "*"
    input: str = "*"
    method: str = "*"
    reason: str

    @property
    def what(self) -> str:
        """`keras/graph`, `dataset`: the parts that matter."""
        arm = "" if (self.api, self.mode) == ("*", "*") else f"{self.api}/{self.mode}"
        return " ".join(part for part in (arm, self.input, self.method) if part not in ("", "*"))

    def matches(self, arm: Arm, case: Case) -> bool:
        """Whether this arm of this case is the impossible combination."""
        return (
            fnmatchcase(arm.api, self.api)
            and fnmatchcase(arm.mode, self.mode)
            and fnmatchcase(case.input, self.input)
            and fnmatchcase(case.method, self.method)
        )


class Cuda(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the GPU build of the pair was made for; versions as in TensorFlow's tested table."""

    version: str
    cudnn: str
    architectures: tuple[str, ...]
    minimum_driver: str
    base_image: str  # has this CUDA, or for `from_wheels` no more than a driver's mount needs
    from_wheels: bool  # CUDA comes from the index with the GPU lock, so a venv can have it
    links: dict[str, str] = {}  # library that is looked for -> the one that the wheels have


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One environment: everything that stackrace knows about a version pair."""

    identifier: str
    tensorflow: str = ""  # one of these three is there: what Keras computes with
    jax: str = ""
    torch: str = ""
    keras: str
    python: str
    packages: dict[Variant, tuple[str, ...]]
    constraints: tuple[str, ...] = ()
    size_mb: dict[Variant, int]
    native_mode: Mode
    apis: tuple[Api, ...]
    modes: tuple[Mode, ...]
    impossible: tuple[Impossible, ...] = ()
    cuda: Cuda | None = None  # None: there is no GPU build
    variables: dict[str, str] = {}  # of its workers, such as KERAS_BACKEND
    base_image: str | None = None  # for the CPU; None: the slim image of its Python
    extra: tuple[str, ...] = ()  # packages added with --with
    lock: str | None = None  # the identifier whose locks it uses; a copy of a row shares them
    spec: str = ""  # how the command line or stackrace.toml asked for it; empty: the matrix did

    @property
    def lock_name(self) -> str:
        """The identifier in the names of this row's lock files."""
        return self.lock or self.identifier

    @property
    def title(self) -> str:
        """`TensorFlow 1.14.0, Keras 2.2.5`."""
        return title(self)

    @property
    def ours(self) -> bool:
        """Whether it is a row of the matrix, whose locks ship with stackrace."""
        return not self.spec

    def has(self, api: Api, mode: Mode) -> bool:
        """Whether it has this api, and this mode at all."""
        return api in self.apis and mode in self.modes

    def reason_against(self, arm: Arm, case: Case) -> str | None:
        """Why this arm cannot run this case, or None when nothing is known against it."""
        if arm.api not in self.apis:
            return f"{self.identifier} has no {arm.api}"
        if arm.mode not in self.modes:
            return f"{self.identifier} has no {arm.mode} mode"
        for rule in self.impossible:
            if rule.matches(arm, case):
                return rule.reason
        return None


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All rows, in the order of the file."""

    rows: dict[str, Row]
