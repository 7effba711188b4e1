"""Selects cases and arms from `grid.toml`: presets, globs, and what cannot exist."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

import msgspec

from orchestrator.errors import UsageError, nearest
from orchestrator.model import codec
from orchestrator.model.cell import Case
from orchestrator.model.grid import Grid, Preset, Selection
from orchestrator.model.matrix import own_api
from orchestrator.model.names import Api, Input, Method, Mode, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Device
    from orchestrator.model.plan import Limits

DATASET_BATCHES = 8  # distinct batches: the origin's 200 would not fit into one graph
# Starting Python, importing TensorFlow, building, first call: rough, from two shared cores.
START_S = 4.0
MOST_JOBS = 1_000_000
CALLS_AT_LEAST = 5  # a warm-up, three timed, and the outputs


FORMS: tuple[tuple[Api, Mode], ...] = tuple(itertools.product(get_args(Api), get_args(Mode)))
# `given` and `step` are what a workload file brings: no model of the guest has them.
INPUTS: tuple[Input, ...] = tuple(word for word in get_args(Input) if word != "given")
METHODS: tuple[Method, ...] = tuple(word for word in get_args(Method) if word != "step")


def load(presets: Mapping[str, Preset] = MappingProxyType({})) -> Grid:
    """The grid that ships with stackrace, and the user's own presets; UsageError for a bad one."""
    source = resources.files("orchestrator") / "resources" / "grid.toml"
    grid = codec.decode_toml(source.read_text(encoding="utf-8"), Grid, source="grid.toml")
    for name, chosen in presets.items():
        _check_preset(grid, name, chosen)
    return msgspec.structs.replace(grid, presets={**grid.presets, **presets})


def _check_preset(grid: Grid, name: str, chosen: Preset) -> None:
    where = f"stackrace.toml: [presets.{check_name(name, what='Preset')}]"
    if name in grid.presets:
        raise UsageError(f"{where} has the name of a preset that stackrace has already.")
    if chosen.rounds < 1:
        raise UsageError(f"{where} has rounds = {chosen.rounds}; a verdict needs at least 5.")
    for axis in ("sizes", "apis", "modes", "inputs", "methods"):
        if not getattr(chosen, axis):
            raise UsageError(f"{where} has no {axis}, and would measure nothing.")
    for size in chosen.sizes:
        if size not in (known := _pairs(grid)):
            raise UsageError(f"{where} has no size {size!r}. {nearest(size, known)}")
        if (reason := _shortfall(grid, size)) is not None:
            raise UsageError(f"{where}: {reason}")


def fitted(chosen: Preset, rows: Iterable[Row]) -> Preset:
    """The preset with the own api of each environment that has none of the preset's.

    Keras 3 on JAX or PyTorch has no tf.keras; it is raced, as installed, through keras.
    """
    own = [own_api(row) for row in rows if not {*row.apis} & {*chosen.apis}]
    return msgspec.structs.replace(chosen, apis=tuple(dict.fromkeys((*chosen.apis, *own))))


def preset(grid: Grid, name: str) -> Preset:
    """The preset of that name, else UsageError."""
    if name not in grid.presets:
        raise UsageError(f"There is no preset {name!r}. {nearest(name, grid.presets)}")
    return grid.presets[name]


def select(
    grid: Grid,
    chosen: Preset,
    *,
    case_globs: Sequence[str] = (),
    arm_globs: Sequence[str] = (),
    rounds: int | None = None,
    devices: Sequence[Device] = ("cpu",),
    existing: Collection[tuple[Api, Mode]] = FORMS,
) -> Selection:
    """What to run: the preset's cases and arms, or what the globs name, each on every device.

    `existing`: the forms that at least one of the environments has; no other is selected.

    A case glob picks among all cases of the preset's sizes; one that names none of them, among the
    whole grid. An arm glob, over `api/mode`, picks among all arms. UsageError when a glob matches
    nothing, with the reason.
    """
    every = [case.name for case in cases(grid)]
    near = [case.name for case in _cases(grid, chosen.sizes, INPUTS, METHODS)]
    own = [case.name for case in _cases(grid, chosen.sizes, chosen.inputs, chosen.methods)]
    picked = _pick(case_globs, [near, every], lambda glob: _no_case(grid, glob, every)) or {*own}
    forms = [f"{api}/{mode}" for api, mode in existing]
    own_forms = {f"{api}/{mode}" for api in chosen.apis for mode in chosen.modes}
    picked_forms = _pick(arm_globs, [forms], lambda glob: _no_arm(glob, forms)) or own_forms
    if not picked_forms.intersection(forms):
        raise UsageError(
            f"No environment here has one of {', '.join(sorted(own_forms))}.",
            fix=f"Name what they have with --arm, such as --arm {forms[0]}." if forms else "",
        )
    return Selection(
        cases=tuple(
            msgspec.structs.replace(case, device=device)
            for case in cases(grid)
            if case.name in picked
            for device in devices
        ),
        forms=tuple((api, mode) for api, mode in existing if f"{api}/{mode}" in picked_forms),
        rounds=chosen.rounds if rounds is None else rounds,
    )


def cases(grid: Grid) -> tuple[Case, ...]:
    """Every case that exists."""
    sizes = [size for size in _pairs(grid) if _shortfall(grid, size) is None]
    return _cases(grid, sizes, INPUTS, METHODS)


def estimate_s(grid: Grid, selection: Selection, *, environments: int, limits: Limits) -> float:
    """Rough seconds of measuring: nobody knows the user's machine before it was measured."""
    a_round = sum(
        START_S + each + min(case.iterations * each, limits.job_s)  # the first call is one more
        for case in selection.cases
        for each in [grid.seconds[case.size]]
    )
    return a_round * len(selection.forms) * environments * selection.rounds


def check_size(jobs: int, estimate_s: float) -> None:
    """UsageError for more jobs than anybody waits for, and than a plan can hold."""
    if jobs > MOST_JOBS:
        raise UsageError(
            f"No run is that long: {jobs} jobs, about {estimate_s / 86400:.0f} days of measuring.",
            fix="A verdict needs 5 rounds at least, and 20 show differences of a few percent.",
        )


def too_long(grid: Grid, selection: Selection, limits: Limits) -> dict[str, float]:
    """Sizes that will hardly fit a job's limit -> the seconds that one would need, roughly.

    A job needs a warm-up call and at least three timed ones after its first.
    """
    needed = {case.size: grid.seconds[case.size] * CALLS_AT_LEAST for case in selection.cases}
    return {size: seconds for size, seconds in needed.items() if seconds > limits.job_s}


def _pick(
    globs: Sequence[str], pools: Sequence[list[str]], none: Callable[[str], UsageError]
) -> set[str]:
    """What each glob matches in the first pool where it matches anything."""
    picked: set[str] = set()
    for glob in globs:
        matches = [[name for name in pool if fnmatchcase(name, glob)] for pool in pools]
        found = next(filter(None, matches), None)
        if found is None:
            raise none(glob)
        picked.update(found)
    return picked


def _cases(
    grid: Grid, sizes: Sequence[str], inputs: Sequence[Input], methods: Sequence[Method]
) -> tuple[Case, ...]:
    return tuple(
        _case(grid, size, given, method)
        for size, given, method in itertools.product(sizes, inputs, methods)
    )


def _case(grid: Grid, size: str, given: Input, method: Method) -> Case:
    model, data = size.split("-")
    facts = grid.models[model]
    return Case(
        model=model,
        data=data,
        input=given,
        method=method,
        batch_shape=grid.data[data],
        batches=DATASET_BATCHES if given == "dataset" else 1,
        iterations=facts.iterations,
        warmup=facts.warmup,
        parameters=facts.parameters,
    )


def _pairs(grid: Grid) -> list[str]:
    return [f"{model}-{data}" for model, data in itertools.product(grid.models, grid.data)]


def _shortfall(grid: Grid, size: str) -> str | None:
    """Why a model cannot take this data, or None when it can."""
    model, data = size.split("-")
    length, needed = grid.data[data][1], grid.models[model].minimum_length
    if length >= needed:
        return None
    return (
        f"The {model} model cannot take {data} data: its convolutions need sequences of at least "
        f"{needed} steps, and {data} data has {length}."
    )


def _no_case(grid: Grid, glob: str, names: list[str]) -> UsageError:
    for size in _pairs(grid):
        reason = _shortfall(grid, size)
        if reason is not None and fnmatchcase(size, glob.split("/", maxsplit=1)[0]):
            return UsageError(reason, fix="`stackrace list` shows every case.")
    return UsageError(
        f"No case matches {glob!r}. {nearest(glob, names)}",
        fix="A case is model-data/input/method, such as small-small/numpy/fit; '*' crosses '/'. "
        "`stackrace list` shows every case.",
    )


def _no_arm(glob: str, forms: list[str]) -> UsageError:
    return UsageError(f"No arm matches {glob!r}. {nearest(glob, forms)}")
