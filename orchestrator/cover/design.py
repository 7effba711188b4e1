"""Which combinations a sweep runs: all inputs x methods, and a pairwise cover of the rest.

In three steps, each of which knows how the one before came out: levels alone; pairs of those that
were not refused, several in a combination; and alone, the pairs of which only refused combinations
are known, because something beside them may have been what was refused.
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
    from orchestrator.model.result import Swept

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
    {"threads": "1"},
    {"onednn": "no", "threads": "1"},
    {"onednn": "yes", "threads": "1"},
)

_FIT: Final = ("train_on_batch", "fit")
_LOOPS: Final = ("custom_loop", "custom_loop_function")
_TESTING: Final = ("test_on_batch", "evaluate")
_PREDICTING: Final = ("predict", "predict_on_batch")
# Methods with which a knob can mean something, the usual one first. Two levels that mean nothing
# together are asked for alone: beside others they would only hide these.
METHODS_OF: Final[dict[str, tuple[str, ...]]] = {
    "validation": ("fit",),
    "batches": ("fit", "train_on_batch", *_LOOPS, *_TESTING, *_PREDICTING, "call", "call_function"),
    "sample_weight": (*_FIT, *_LOOPS, *_TESTING, "life_cycle"),
    "metrics": (*_FIT, *_TESTING, "life_cycle"),
    "optimizer": (*_FIT, *_LOOPS, "life_cycle"),
    "compiled": ("predict", "call", "call_function", "predict_on_batch"),
    "jit_compile": (*_FIT, *_TESTING, *_PREDICTING, "life_cycle"),
    "strategy": tuple(name for name in METHODS if name not in _LOOPS),
    "weights": tuple(name for name in METHODS if name != "life_cycle"),
}
MODELS_WITHOUT: Final[dict[str, tuple[str, ...]]] = {
    "dropout": ("lstm", "gru", "embedding", "conv3d", "identity"),
    "dtype": ("embedding",),
}
# Layers that smaller models have too, and that take minutes to build: these methods are enough.
HEAVY: Final[dict[str, tuple[str, ...]]] = {
    "large": ("train_on_batch", "test_on_batch", "predict"),
}

# Knobs beside each other in one combination. More need fewer combinations, but one that is refused
# hides all the others.
MOST_KNOBS: Final = 4
_GRID = ("input", "method")  # all with all, in the first step
_TRIES = 6
_SEED = 1


class Level(NamedTuple):
    """One value of one factor: of `model`, `input`, `method`, or of a knob."""

    factor: str
    value: str


Pair = frozenset[Level]
Shapes = dict[str, tuple[str, str]]  # model -> another shape of its samples, and several in turn


def first(grid: Grid) -> tuple[SweepCell, ...]:
    """All inputs x methods, and every model and knob value by itself."""
    shapes = _shapes(grid)
    plain = [SweepCell(input=i, method=m) for i, m in product(INPUTS, METHODS)]
    single = [_cell([level], shapes) for level in _alone(shapes)]
    return (*plain, *(cell for cell in single if cell not in plain))


def second(grid: Grid, done: Iterable[Swept]) -> tuple[SweepCell, ...]:
    """Every pair of levels, but for those levels that were refused by themselves."""
    shapes = _shapes(grid)
    missing = _wanted(shapes, done)
    apart = {pair for pair in missing if not _methods(pair)}
    cells = [_cell(sorted(pair), shapes) for pair in sorted(apart, key=sorted)]
    return (*_pairwise(missing - apart, shapes), *cells)


def third(grid: Grid, done: Iterable[Swept]) -> tuple[SweepCell, ...]:
    """Pairs that did not run in any combination, and were not asked for alone."""
    shapes = _shapes(grid)
    every = list(done)
    missing = _wanted(shapes, every)
    for item in every:
        if item.outcome == "ok":
            missing -= _pairs(_levels(item, shapes))
    asked = {_key(item) for item in every}
    cells = [_cell(sorted(pair), shapes) for pair in sorted(missing, key=sorted)]
    return tuple(cell for cell in cells if _key(cell) not in asked)


def beside() -> tuple[SweepCell, ...]:
    """What runs in a process that has knobs of its own: every input, and every method."""
    inputs = [SweepCell(input=name, method="fit") for name in INPUTS]
    return (*inputs, *(SweepCell(input="numpy", method=name) for name in METHODS if name != "fit"))


def _pairwise(wanted: set[Pair], shapes: Shapes) -> list[SweepCell]:
    """Cells that have every wanted pair, greedily: each takes as many missing ones as it can."""
    random = Random(_SEED)  # noqa: S311 (a design to be repeated, not a secret)
    missing = set(wanted)
    cells = []
    while missing:
        start = sorted(min(missing, key=sorted))
        choices: dict[str, list[Level]] = {}
        for level in sorted({level for pair in missing for level in pair}):
            choices.setdefault(level.factor, []).append(level)
        tries = [_grown(start, choices, missing, random) for _ in range(_TRIES)]
        best = max(tries, key=lambda levels: len(_pairs(levels) & missing))
        missing -= _pairs(best)
        cells.append(_cell(best, shapes))
    return cells


def _grown(
    start: Sequence[Level],
    choices: Mapping[str, Sequence[Level]],
    missing: set[Pair],
    random: Random,
) -> list[Level]:
    """The levels of `start`, and of each other factor the one that adds most missing pairs."""
    levels = list(start)
    factors = [name for name in choices if name not in {level.factor for level in start}]
    random.shuffle(factors)
    for factor in factors:
        if factor in LEVELS and sum(level.factor in LEVELS for level in levels) >= MOST_KNOBS:
            continue
        gains = [
            (sum(frozenset((level, other)) in missing for other in levels), random.random(), level)
            for level in choices[factor]
            if _methods((*levels, level))
        ]
        gain, _, level = max(gains, default=(0, 0.0, levels[0]))
        if gain:
            levels.append(level)
    return levels


def _methods(levels: Iterable[Level]) -> list[str]:
    """The methods with which all these levels can mean something, the usual one first."""
    every = list(levels)
    chosen = {level.factor: level.value for level in every}
    if any(chosen.get("model") in MODELS_WITHOUT.get(name, ()) for name in chosen):
        return []
    found = ["train_on_batch", *(name for name in METHODS if name != "train_on_batch")]
    for allowed in (
        *(METHODS_OF[name] for name in sorted(chosen) if name in METHODS_OF),
        *([HEAVY[chosen["model"]]] if chosen.get("model") in HEAVY else []),
        *([(chosen["method"],)] if "method" in chosen else []),
    ):
        found = [name for name in found if name in allowed]
    return found


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


def _alone(models: Iterable[str]) -> list[Level]:
    """Levels that can be refused by themselves: models, and values of knobs."""
    factors = _factors(models)
    return [lv for name, levels in factors.items() for lv in levels if name not in _GRID]


def _wanted(shapes: Shapes, done: Iterable[Swept]) -> set[Pair]:
    """Pairs of levels of different factors, but for those with a level that was refused alone."""
    refused = {_key(item) for item in done if item.outcome == "unsupported"}
    factors = {
        name: [
            level
            for level in levels
            if name in _GRID or _key(_cell([level], shapes)) not in refused
        ]
        for name, levels in _factors(shapes).items()
    }
    return {
        frozenset(pair)
        for one, other in combinations(factors, 2)
        if {one, other} != set(_GRID)
        for pair in product(factors[one], factors[other])
        if not _too_heavy(pair)
    }


def _too_heavy(pair: Sequence[Level]) -> bool:
    """Whether it is a heavy model, with something else than its few methods."""
    chosen = dict(pair)
    return chosen.get("model") in HEAVY and chosen.get("method") not in HEAVY[chosen["model"]]


def _pairs(levels: Iterable[Level]) -> set[Pair]:
    return {frozenset(pair) for pair in combinations(levels, 2)}


def _cell(levels: Sequence[Level], shapes: Shapes) -> SweepCell:
    """The combination of these levels; the rest is the default, and a method that suits them."""
    suited = _methods(levels)
    chosen = {level.factor: level.value for level in levels}
    model = chosen.pop("model", "tiny")
    source = chosen.pop("input", "numpy")
    method = chosen.pop("method", suited[0] if suited else "train_on_batch")
    if "shape" in chosen:
        chosen["shape"] = shapes[model][LEVELS["shape"].index(chosen["shape"])]
    return SweepCell(
        model=model,
        input=next(name for name in INPUTS if name == source),
        method=next(name for name in METHODS if name == method),
        knobs=dict(sorted(chosen.items())),
    )


def _levels(cell: SweepCell | Swept, shapes: Shapes) -> list[Level]:
    knobs = dict(cell.knobs)
    if "shape" in knobs:
        knobs["shape"] = LEVELS["shape"][shapes[cell.model].index(knobs["shape"])]
    return [
        Level("model", cell.model),
        Level("input", cell.input),
        Level("method", cell.method),
        *(Level(name, value) for name, value in knobs.items()),
    ]


def _key(cell: SweepCell | Swept) -> tuple[object, ...]:
    return cell.model, cell.input, cell.method, tuple(sorted(cell.knobs.items()))


def _shapes(grid: Grid) -> Shapes:
    found = {}
    for name, facts in grid.models.items():
        length, *rest = facts.data["tiny"][1:] if facts.data else grid.data["tiny"][1:]
        length = max(length, facts.minimum_length)
        usual, other = ("x".join(map(str, (size, *rest))) for size in (length, length + 4))
        found[name] = (other, f"{usual},{other}")
    return found
