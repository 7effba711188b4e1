"""Models, data and presets (`grid.toml`), and what a user selected from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from orchestrator.model.names import Api, Input, Method, Mode

if TYPE_CHECKING:
    from orchestrator.model.cell import Case


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of the guest, as far as planning needs to know it."""

    minimum_length: int = 1  # of a sequence
    iterations: int
    warmup: int
    parameters: int | None = None
    data: dict[str, tuple[int, ...]] = {}  # its own batch shapes; empty: the grid's


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ready selection: its cases are sizes x inputs x methods, its arms apis x modes."""

    summary: str
    rounds: int
    sizes: tuple[str, ...]
    apis: tuple[Api, ...]
    modes: tuple[Mode, ...]
    inputs: tuple[Input, ...]
    methods: tuple[Method, ...]
    knobs: tuple[dict[str, str], ...] = ({},)  # each set makes its own cases


class Grid(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be selected."""

    models: dict[str, ModelFacts]
    data: dict[str, tuple[int, int, int]]  # batch, length, channels
    seconds: dict[str, float]  # size -> rough seconds of one train_on_batch on numpy
    factors: dict[str, float] = {}  # method or input -> how many times that it takes, roughly
    presets: dict[str, Preset]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a run compares: these cases, in these forms of every environment."""

    cases: tuple[Case, ...]
    forms: tuple[tuple[Api, Mode], ...]
    rounds: int
    workloads: tuple[str | None, ...] = (None,)  # names of the files that are arms

    def arms(self, environments: int) -> int:
        """How many arms that is, over so many environments."""
        return len(self.forms) * len(self.workloads) * environments

    def jobs(self, environments: int) -> int:
        """How many processes that is, over so many environments."""
        return len(self.cases) * self.arms(environments) * self.rounds
