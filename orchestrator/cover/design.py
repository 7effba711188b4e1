"""Which combinations a sweep runs: all inputs x methods, and a pairwise cover of the rest.

A pair of levels that was only ever part of a refused combination is not known to work: another
level may have been what was refused. Such pairs are asked for again, with nothing beside them.
"""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, get_args

from orchestrator.model.knobs import KNOBS
from orchestrator.model.names import Input, Method
from orchestrator.model.request import SweepCell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.model.grid import Grid

# `given` and `step` are a workload file's own.
INPUTS: Final = tuple(name for name in get_args(Input) if name != "given")
METHODS: Final = tuple(name for name in get_args(Method) if name != "step")

# One of each kind of value; those of `shape` depend on the model.
LEVELS: Final[dict[str, tuple[str, ...]]] = {
    "batch_size": ("4", "4,2"),
    "shape": ("another", "several"),
    "batches": ("3",),
    "validation": ("0.25",),
    "sample_weight": ("yes",),
    "metrics": ("accuracy",),
    "optimizer": ("sgd", "rmsprop", "adagrad", "adadelta", "adamax", "nadam"),
    "compiled": ("no",),
    "dtype": ("float16", "float32"),
    "precision": ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16", "float64"),
    "jit_compile": ("yes", "no"),
    "threads": ("1",),
    "onednn": ("yes", "no"),
    "strategy": ("one_device", "mirrored"),
    "dropout": ("no",),
    "loaded": ("yes",),
    "weights": ("same",),
}
# Those of a whole process: alone, and each of the one with each of the other.
PROCESSES: Final[tuple[dict[str, str], ...]] = (
    {},
    {"onednn": "no", "threads": "1"},
    {"onednn": "yes", "threads": "1"},
    {"threads": "1"},
)
# A knob means something only with some methods; elsewhere it is refused whatever else there is.
PREFERRED: Final[dict[str, Method]] = {"compiled": "call", "validation": "fit", "batches": "fit"}

# Knobs beside each other in one combination. More need fewer combinations, but one that is refused
# hides all the others.
MOST_KNOBS = 4
_TRIES = 6
_SEED = 1


class Level(NamedTuple):
    """One value of one factor: of `model`, `input`, `method`, or of a knob."""

    factor: str
    value: str


class Process(NamedTuple):
    """One process of a sweep: knobs of its own, and the cells that run in it."""

    knobs: dict[str, str]
    cells: tuple[SweepCell, ...]


Pair = frozenset[Level]


def processes(grid: Grid) -> tuple[Process, ...]:
    """The sweep of one api and mode: everything in one process, a sample beside process knobs."""
    models = _shapes(grid)
    every = (*_inputs_by_methods(), *_pairwise(models))
    sample = _singles(models)
    return tuple(Process(knobs, sample if knobs else every) for knobs in PROCESSES)


def unseen(grid: Grid, done: Iterable[SweepCell]) -> list[Pair]:
    """Pairs that none of these cells has, in a fixed order."""
    models = _shapes(grid)
    seen: set[Pair] = set()
    for cell in done:
        seen |= _pairs(_levels(cell, models))
    return sorted(_wanted(models) - seen, key=sorted)


def alone(grid: Grid, pairs: Iterable[Pair]) -> tuple[SweepCell, ...]:
    """A cell for each pair, in which everything else is the default, or what the knob needs."""
    models = _shapes(grid)
    return tuple(_cell(sorted(pair), models) for pair in pairs)


def _inputs_by_methods() -> list[SweepCell]:
    return [SweepCell(input=i, method=m) for i, m in product(INPUTS, METHODS)]


def _pairwise(models: Mapping[str, tuple[str, str]]) -> list[SweepCell]:
    """Cells that have every wanted pair, greedily: each takes as many missing ones as it can."""
    random = Random(_SEED)  # noqa: S311 (a design to be repeated, not a secret)
    missing = _wanted(models)
    cells = []
    while missing:
        start = sorted(min(missing, key=sorted))
        tries = [_grown(start, missing, models, random) for _ in range(_TRIES)]
        best = max(tries, key=lambda levels: len(_pairs(levels) & missing))
        missing -= _pairs(best)
        cells.append(_cell(best, models))
    return cells


def _grown(
    start: Sequence[Level],
    missing: set[Pair],
    models: Mapping[str, tuple[str, str]],
    random: Random,
) -> list[Level]:
    """The levels of `start`, and of each other factor the one that adds most missing pairs."""
    levels = list(start)
    taken = {level.factor for level in levels}
    factors = [factor for factor in _factors(models) if factor not in taken]
    random.shuffle(factors)
    for factor in factors:
        room = factor not in LEVELS or sum(level.factor in LEVELS for level in levels) < MOST_KNOBS
        if not room:
            continue
        gains = [
            (sum(frozenset((level, other)) in missing for other in levels), random.random(), level)
            for level in _factors(models)[factor]
        ]
        gain, _, level = max(gains)
        if gain:
            levels.append(level)
    return levels


def _singles(models: Mapping[str, tuple[str, str]]) -> tuple[SweepCell, ...]:
    """Cells that have every input, method, model and knob value at least once."""
    cells = [SweepCell(input=i, method="fit") for i in INPUTS]
    cells += [SweepCell(input="numpy", method=m) for m in METHODS if m != "fit"]
    cells += [_cell([Level("model", model)], models) for model in models if model != "tiny"]
    knobs = [
        level for name, levels in _factors(models).items() for level in levels if name in LEVELS
    ]
    return (*cells, *(_cell([level], models) for level in knobs))


def _factors(models: Iterable[str]) -> dict[str, list[Level]]:
    """Every factor with its levels. A knob that is not turned has none: the grid has that."""
    found = {
        "model": [Level("model", name) for name in models],
        "input": [Level("input", name) for name in INPUTS],
        "method": [Level("method", name) for name in METHODS],
    }
    for name, values in LEVELS.items():
        if not KNOBS[name].process:
            found[name] = [Level(name, value) for value in values]
    return found


def _wanted(models: Iterable[str]) -> set[Pair]:
    """All pairs of levels of different factors; inputs x methods run anyway."""
    factors = _factors(models)
    return {
        frozenset(pair)
        for one, other in combinations(factors, 2)
        if {one, other} != {"input", "method"}
        for pair in product(factors[one], factors[other])
    }


def _pairs(levels: Iterable[Level]) -> set[Pair]:
    return {frozenset(pair) for pair in combinations(levels, 2)}


def _cell(levels: Sequence[Level], models: Mapping[str, tuple[str, str]]) -> SweepCell:
    chosen = {level.factor: level.value for level in levels}
    model = chosen.pop("model", "tiny")
    source = chosen.pop("input", "numpy")
    usual = next(
        (PREFERRED[name] for name in sorted(chosen) if name in PREFERRED), "train_on_batch"
    )
    method = chosen.pop("method", usual)
    if "shape" in chosen:
        chosen["shape"] = models[model][LEVELS["shape"].index(chosen["shape"])]
    return SweepCell(
        model=model,
        input=next(name for name in INPUTS if name == source),
        method=next(name for name in METHODS if name == method),
        knobs=dict(sorted(chosen.items())),
    )


def _levels(cell: SweepCell, models: Mapping[str, tuple[str, str]]) -> list[Level]:
    knobs = dict(cell.knobs)
    if "shape" in knobs:
        knobs["shape"] = LEVELS["shape"][models[cell.model].index(knobs["shape"])]
    return [
        Level("model", cell.model),
        Level("input", cell.input),
        Level("method", cell.method),
        *(Level(name, value) for name, value in knobs.items()),
    ]


def _shapes(grid: Grid) -> dict[str, tuple[str, str]]:
    """Model -> another shape of its samples, and several that take turns."""
    found = {}
    for name, facts in grid.models.items():
        length, *rest = facts.data["tiny"][1:] if facts.data else grid.data["tiny"][1:]
        length = max(length, facts.minimum_length)
        usual, other = ("x".join(map(str, (size, *rest))) for size in (length, length + 4))
        found[name] = (other, f"{usual},{other}")
    return found
