"""Advice: what a measured grid says about the choices that somebody has, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ADVICE_SCHEMA: Final = "stackrace.advice/1"
# The axis of a range that compares environments, each in its own default.
INSTALLED: Final = "as installed"


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio of times with its interval; above 1 is slower."""

    ratio: float
    low: float
    high: float


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A cell as something to choose: `arm` and `case` find it in every other table."""

    arm: str
    case: str
    environment: str
    api: str
    mode: str
    workload: str | None
    input: str
    method: str
    knobs: str  # only those that leave the work what it is
    seconds: float | None  # median over processes; None where they ran on several machines


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Work that can be done in several configurations: one size on one device, with one aim.

    `method`: the first of the methods that do the same work (train_on_batch stands for training).
    `knobs`: those that change the work, such as batch_size.
    """

    method: str
    size: str
    device: str
    knobs: str = ""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What to take for one task.

    `fastest`: one configuration that is surely faster than all others, or those that nothing
    tells apart, by their times; empty when that would be all of them, and `reason` says so.
    `next`: the fastest that is not among them. `against_...`: how much slower that is than the
    first of them, and how much slower the reference as installed is (none where that is the
    first); the intervals hold together for all configurations of the task.
    """

    task: Task
    configurations: int
    fastest: tuple[Configuration, ...] = ()
    next: Configuration | None = None
    against_next: Ratio | None = None
    as_installed: Configuration | None = None
    against_installed: Ratio | None = None
    reason: str | None = None

    @property
    def sure(self) -> bool:
        """One configuration is surely the fastest."""
        return len(self.fastest) == 1


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration that surely exceeds the fastest of its task by more than the threshold."""

    configuration: Configuration
    task: Task
    against_fastest: Ratio


class Avoided(msgspec.Struct, frozen=True, kw_only=True):
    """What to avoid: a value of one axis wherever it was measured, or one configuration.

    `axis` is empty for a configuration that no single value explains. `least` and `most`: of the
    ratios to the fastest of each task.
    """

    axis: str = ""
    value: str = ""
    least: float
    most: float
    slow: tuple[Slow, ...]


class Indifferent(msgspec.Struct, frozen=True, kw_only=True):
    """An axis that does not matter here: every one of its contrasts is `same`."""

    axis: str
    contrasts: int
    low: float  # the ends of all their intervals
    high: float


class Extreme(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate in which a ratio is least or most."""

    ratio: float
    arm: str
    case: str


class SimpleEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The mean ratio of a step where another axis has one value; `mean` as in `Range`.

    `where`: that axis and value, and those that always came with it: nothing tells these apart.
    """

    where: dict[str, str]
    contrasts: int
    mean: Ratio | None


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """All ratios of one value of an axis against another: `level` against `reference`.

    `mean`: their geometric mean, with its interval over rounds; it holds for the measured cells.
    `within`: the same for each value of every other axis, where there are several. The axis
    `as installed` is that of the environments, each in its own default.
    """

    axis: str
    level: str
    reference: str
    contrasts: int
    cases: int  # of the candidates
    mean: Ratio | None  # None where fewer than two rounds have a ratio
    best: Extreme
    worst: Extreme
    within: tuple[SimpleEffect, ...] = ()


class MainEffect(msgspec.Struct, frozen=True, kw_only=True):
    """How far the values of an axis lie apart, on average over otherwise equal cells.

    `apart`: the mean ratio of the slowest value to the fastest; its interval holds for all pairs of
    values together. `sure`: it exceeds the threshold, beyond doubt. `most`: it does, and no other
    axis lies surely further apart.
    """

    axis: str
    slowest: str
    fastest: str
    contrasts: int
    apart: Ratio
    sure: bool
    most: bool


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One step along an axis: `eager` against `graph`."""

    axis: str
    level: str
    reference: str


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of one axis depends on another, beyond the threshold and surely.

    `at_reference` and `at_level`: geometric means of `change`'s ratio where `by` has the value of
    its reference, or of its level, over otherwise equal cells; `factor`: their quotient.
    """

    change: Change
    by: Change
    at_reference: float
    at_level: float
    factor: Ratio


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How the user asked for what was measured, so that a command can ask for it again.

    `environments`: by identifier the words that name one, where these are others. `workloads`: the
    user's own files. `options`: what else every such command needs.
    """

    environments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    workloads: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def command(self, environments: Iterable[str]) -> list[str]:
        """`stackrace run` and all that does not depend on what is selected."""
        words = ["stackrace", "run"]
        for name in environments:
            words += self.environments.get(name, (name,))
        return [*words, *(f"--workload={file}" for file in self.workloads), *self.options]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure next: why, and the command that does it."""

    why: str
    command: str


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """All that a grid says; empty where nothing in it is sure."""

    schema: Literal["stackrace.advice/1"] = ADVICE_SCHEMA
    choices: tuple[Choice, ...] = ()
    avoid: tuple[Avoided, ...] = ()
    indifferent: tuple[Indifferent, ...] = ()
    ranges: tuple[Range, ...] = ()
    effects: tuple[MainEffect, ...] = ()  # of the axes that are a choice, the largest first
    interactions: tuple[Interaction, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def any(self) -> bool:
        """Whether it tells anybody to do one thing rather than another."""
        return bool(self.avoid or self.interactions or any(item.fastest for item in self.choices))
