"""Knobs as users write them behind a case: `GLOB+batch_size=64+compiled=no`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from orchestrator.errors import UsageError, nearest
from orchestrator.model.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.model.cell import Case
    from orchestrator.model.grid import ModelFacts

SEE = "`stackrace list` shows every knob."


def parse(text: str) -> tuple[str, dict[str, str]]:
    """The glob over cases, and the knobs behind it; UsageError names what is no knob."""
    glob, *parts = text.split("+")
    knobs: dict[str, str] = {}
    for part in parts:
        name, sign, value = part.partition("=")
        if not (name and sign and value):
            raise UsageError(
                f"In {text!r}, {part!r} is not knob=value.",
                fix="Knobs are added to a case one by one: 'small-small/numpy/fit+batch_size=64'.",
            )
        if name in knobs:
            raise UsageError(
                f"{text!r} turns {name} twice.", fix="Write --case once for each value."
            )
        knobs[name] = value
    check(knobs, where="")
    return glob, knobs


def check(knobs: Mapping[str, str], *, where: str) -> None:
    """UsageError for a knob that does not exist, or a value that it cannot have."""
    for name, value in knobs.items():
        if name not in KNOBS:
            raise UsageError(f"{where}There is no knob {name!r}. {nearest(name, KNOBS)}", fix=SEE)
        if re.fullmatch(KNOBS[name].pattern, value) is None:
            known = choices(name)
            raise UsageError(
                f"{where}{name} cannot be {value!r}: it is {' or '.join(known)}."
                if known
                else f"{where}{name} cannot be {value!r}: {KNOBS[name].summary}.",
                fix=SEE,
            )


def choices(name: str) -> tuple[str, ...]:
    """The values that a knob can have, where they are words; else nothing."""
    pattern = KNOBS[name].pattern
    return tuple(pattern.split("|")) if re.fullmatch(r"[a-z0-9_|]+", pattern) else ()


def turned(case: Case, knobs: Mapping[str, str]) -> Case:
    """The case with these knobs. What its model must have is not known for other data."""
    return msgspec.structs.replace(
        case,
        knobs=dict(knobs),
        parameters=None if "shape" in knobs else case.parameters,
    )


def reason_against(facts: ModelFacts | None, case: Case) -> str | None:
    """Why a model of the grid, with these facts, cannot take the shapes that the knob asks for."""
    if facts is None or "shape" not in case.knobs:
        return None
    rank = len(case.batch_shape) - 1
    for shape in shapes(case.knobs):
        if len(shape) != rank:
            example = "x".join(map(str, case.batch_shape[1:]))
            return f"Samples of the {case.model} model have {rank} dimensions, such as {example}."
        if shape[0] < facts.minimum_length:
            return (
                f"The {case.model} model needs sequences of at least {facts.minimum_length} steps, "
                f"not {shape[0]}."
            )
    return None


def shapes(knobs: Mapping[str, str]) -> list[tuple[int, ...]]:
    """The shapes of one sample that take turns."""
    return [tuple(map(int, text.split("x"))) for text in knobs.get("shape", "").split(",") if text]
