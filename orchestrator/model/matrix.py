"""Rows of `matrix.toml`: a version pair with its Python, packages, facts and limits."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from orchestrator.model.names import Api, Mode, Variant

if TYPE_CHECKING:
    from orchestrator.model.cell import Arm, Case


class Impossible(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A combination that this pair cannot run, and why. Each field is a glob over one name."""

    api: str = "*"
    mode: str = "*"
    input: str = "*"
    method: str = "*"
    reason: str

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
    base_image: str
    from_wheels: bool


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One environment: everything that stackrace knows about a version pair."""

    identifier: str
    tensorflow: str
    keras: str
    python: str
    packages: dict[Variant, tuple[str, ...]]
    constraints: tuple[str, ...] = ()
    size_mb: dict[Variant, int]
    native_mode: Mode
    apis: tuple[Api, ...]
    modes: tuple[Mode, ...]
    impossible: tuple[Impossible, ...] = ()
    cuda: Cuda
    lock: str | None = None  # the identifier whose locks it uses; a copy of a row shares them

    @property
    def lock_name(self) -> str:
        """The identifier in the names of this row's lock files."""
        return self.lock or self.identifier

    @property
    def title(self) -> str:
        """`TensorFlow 1.14.0, Keras 2.2.5`."""
        return f"TensorFlow {self.tensorflow}, Keras {self.keras}"

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
