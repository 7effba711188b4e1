"""Selects cases and arms: from `grid.toml` by presets and globs, or for a user's own model."""

from __future__ import annotations

import itertools
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from orchestrator.errors import UsageError, nearest
from orchestrator.grid import given, knobs, sizes
from orchestrator.grid.estimate import check_size, estimate_s, too_long
from orchestrator.grid.sizes import INPUTS, METHODS
from orchestrator.model import codec
from orchestrator.model.grid import Grid, ModelFacts, Preset, Selection
from orchestrator.model.matrix import own_api
from orchestrator.model.names import Api, Device, Mode, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from orchestrator.model.cell import Case
    from orchestrator.model.matrix import Row
    from orchestrator.model.workload import Workload

__all__ = [
    "FORMS",
    "INPUTS",
    "METHODS",
    "cases",
    "check_size",
    "estimate_s",
    "fitted",
    "load",
    "preset",
    "select",
    "too_long",
]

FORMS: tuple[tuple[Api, Mode], ...] = tuple(itertools.product(get_args(Api), get_args(Mode)))
GRID = Path(__file__).parents[1] / "resources" / "grid.toml"
SAME_WEIGHTS = MappingProxyType({"weights": "same"})


def load(presets: Mapping[str, Preset] = MappingProxyType({})) -> Grid:
    """The grid that ships with stackrace, and the user's own presets; UsageError for a bad one."""
    grid = codec.decode_toml(GRID.read_text(encoding="utf-8"), Grid, source="grid.toml")
    for name, chosen in presets.items():
        _check_preset(grid, name, chosen)
    return msgspec.structs.replace(grid, presets={**grid.presets, **presets})


def _check_preset(grid: Grid, name: str, chosen: Preset) -> None:
    where = f"stackrace.toml: [presets.{check_name(name, what='Preset')}]"
    if name in grid.presets:
        raise UsageError(f"{where} has the name of a preset that stackrace has already.")
    if chosen.rounds < 1:
        raise UsageError(f"{where} has rounds = {chosen.rounds}; a verdict needs at least 5.")
    for axis in ("sizes", "apis", "modes", "inputs", "methods", "knobs"):
        if not getattr(chosen, axis):
            raise UsageError(f"{where} has no {axis}, and would measure nothing.")
    _check_values(grid, where, chosen)


def _check_values(grid: Grid, where: str, chosen: Preset) -> None:
    for word in ("given", "step"):
        if word in (*chosen.inputs, *chosen.methods):
            raise UsageError(f"{where} names {word!r}, which only a workload file has.")
    for size in chosen.sizes:
        if size not in (known := sizes.pairs(grid)):
            raise UsageError(f"{where} has no size {size!r}. {nearest(size, known)}")
        if (reason := sizes.shortfall(grid, size)) is not None:
            raise UsageError(f"{where}: {reason}")
    for knobset in chosen.knobs:
        knobs.check(knobset, where=f"{where}: ")


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


def cases(grid: Grid) -> tuple[Case, ...]:
    """Every case that exists, without knobs."""
    found = [size for size in sizes.pairs(grid) if sizes.shortfall(grid, size) is None]
    return sizes.cases(grid, found, INPUTS, METHODS)


def select(
    grid: Grid,
    chosen: Preset,
    *,
    case_globs: Sequence[str] = (),
    arm_globs: Sequence[str] = (),
    rounds: int | None = None,
    devices: Sequence[Device] = ("cpu",),
    existing: Collection[tuple[Api, Mode]] = FORMS,
    workloads: Sequence[Workload] = (),
    same_weights: bool = False,
) -> Selection:
    """What to run: the preset's cases and arms, or what the globs name, each on every device.

    `existing`: the forms that at least one of the environments has; no other is selected.
    `workloads`: the user's own models, instead of the grid's; several are arms.

    A case glob picks among all cases of the preset's sizes; one that names none of them, among the
    whole grid. Knobs behind it, `GLOB+batch_size=64`, make cases of their own beside the plain ones
    of other globs; `GLOB@gpu` is that device alone. An arm glob, over `api/mode`, picks among all
    arms. UsageError when a glob matches nothing, with the reason.
    """
    if workloads and not case_globs:
        given.check_steps(workloads)
    if workloads:
        own, near, every = given.cases(workloads)
    elif case_globs:
        own, near, every = _pools(grid, chosen)
    else:  # the whole grid is thousands of cases
        own = near = every = sizes.cases(grid, chosen.sizes, chosen.inputs, chosen.methods)
    added = SAME_WEIGHTS if same_weights else {}
    wishes = [
        _wish(text, [near, every], devices, lambda glob: _no_case(grid, glob, every, workloads))
        for text in case_globs
    ] or [_Wish({case.name for case in own}, knobset, devices) for knobset in chosen.knobs]
    facts = {} if workloads else grid.models  # a file may have the name of a model
    return Selection(
        cases=_turned(facts, every, wishes, added),
        forms=_forms(chosen, arm_globs, existing),
        rounds=chosen.rounds if rounds is None else rounds,
        workloads=tuple(item.name for item in workloads) if len(workloads) > 1 else (None,),
    )


def _pools(grid: Grid, chosen: Preset) -> tuple[tuple[Case, ...], ...]:
    """The preset's own cases; all of its sizes; all there are."""
    return (
        sizes.cases(grid, chosen.sizes, chosen.inputs, chosen.methods),
        sizes.cases(grid, chosen.sizes, INPUTS, METHODS),
        cases(grid),
    )


class _Wish(NamedTuple):
    """What one glob asks for: cases by name, with knobs, on devices."""

    names: set[str]
    knobs: Mapping[str, str]
    devices: Sequence[Device]


def _wish(
    text: str,
    pools: Sequence[Sequence[Case]],
    devices: Sequence[Device],
    none: Callable[[str], UsageError],
) -> _Wish:
    front, knobset = knobs.parse(text)
    glob, sign, device = front.partition("@")
    only = [item for item in devices if item == device]
    if sign and not only:
        raise UsageError(
            f"{text!r} names the device {device!r}, and this run is on {', '.join(devices)}.",
            fix=f"Add --device {device}." if device in get_args(Device) else "Write @gpu or @cpu.",
        )
    return _Wish(_matching(glob, pools, none), knobset, only or devices)


def _turned(
    facts: Mapping[str, ModelFacts],
    every: Sequence[Case],
    wishes: Sequence[_Wish],
    added: Mapping[str, str],
) -> tuple[Case, ...]:
    """The cases that were picked, each with the knobs that were asked for with it, once.

    UsageError where a wish is for nothing but what its models cannot take.
    """
    found: dict[str, Case] = {}
    reasons: dict[int, str] = {}
    granted: set[int] = set()
    for case in every:
        name = case.name
        for place, wish in enumerate(wishes):
            if name not in wish.names:
                continue
            made = knobs.turned(case, {**added, **wish.knobs})
            against = knobs.reason_against(facts.get(case.model), made)
            if against is not None:
                reasons[place] = against
                continue
            granted.add(place)
            for device in wish.devices:
                on_device = msgspec.structs.replace(made, device=device)
                found.setdefault(on_device.name, on_device)
    for place, reason in reasons.items():
        if place not in granted:
            raise UsageError(reason)
    return tuple(found.values())


def _forms(
    chosen: Preset, arm_globs: Sequence[str], existing: Collection[tuple[Api, Mode]]
) -> tuple[tuple[Api, Mode], ...]:
    forms = [f"{api}/{mode}" for api, mode in existing]
    own = {f"{api}/{mode}" for api in chosen.apis for mode in chosen.modes}
    picked: set[str] = set()
    for glob in arm_globs:
        matches = [form for form in forms if fnmatchcase(form, glob)]
        if not matches:
            raise UsageError(f"No arm matches {glob!r}. {nearest(glob, forms)}")
        picked.update(matches)
    picked = picked or own
    if not picked.intersection(forms):
        raise UsageError(
            f"No environment here has one of {', '.join(sorted(own))}.",
            fix=f"Name what they have with --arm, such as --arm {forms[0]}." if forms else "",
        )
    return tuple((api, mode) for api, mode in existing if f"{api}/{mode}" in picked)


def _matching(
    glob: str, pools: Sequence[Sequence[Case]], none: Callable[[str], UsageError]
) -> set[str]:
    """What a glob matches in the first pool where it matches anything."""
    for pool in pools:
        found = {case.name for case in pool if fnmatchcase(case.name, glob)}
        if found:
            return found
    raise none(glob)


def _no_case(
    grid: Grid, glob: str, every: Sequence[Case], workloads: Sequence[Workload]
) -> UsageError:
    names = [case.name for case in every]
    if workloads:
        return UsageError(
            f"No case of the workload matches {glob!r}. {nearest(glob, names)}",
            fix=f"It is called {names[0]}; every input and method may be named instead.",
        )
    for size in sizes.pairs(grid):
        reason = sizes.shortfall(grid, size)
        if reason is not None and fnmatchcase(size, glob.split("/", maxsplit=1)[0]):
            return UsageError(reason, fix="`stackrace list` shows every case.")
    return UsageError(
        f"No case matches {glob!r}. {nearest(glob, names)}",
        fix="A case is model-data/input/method, such as small-small/numpy/fit; '*' crosses '/', "
        "and knobs stand behind it: +batch_size=64. `stackrace list` shows every case.",
    )
