"""Environments that somebody else made: `--python NAME=PATH` and `--image NAME=REF`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from orchestrator.errors import UsageError
from orchestrator.model.names import Backend, check_name, is_name

if TYPE_CHECKING:
    from orchestrator.config.flags import Flags


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An environment that somebody else made: an interpreter's path, or an image's reference."""

    backend: Backend
    place: str


def sources(flags: Flags) -> dict[str, Source]:
    """Those of the command line, by the environment's name; UsageError for what is no name."""
    found: dict[str, Source] = {}
    for text in flags.pythons:
        name, _, place = text.partition("=")
        if not (name and place):
            raise UsageError(
                f"--python {text!r} is not NAME=PATH.",
                fix="Give the environment a name, such as --python mine=/opt/conda/bin/python.",
            )
        _enter(found, name, Source(backend="existing", place=place))
    for text in flags.images:
        name, sign, place = text.rpartition("=")
        if not sign:
            name, place = _only(flags.environments, text), text
        if not (name and place):
            raise UsageError(
                f"--image {text!r} is not NAME=REF.", fix="Write it as --image tf115=REF."
            )
        _enter(found, name, Source(backend="container", place=place))
    if flags.backend == "existing":
        for name in flags.environments:
            if name not in found:
                own = name if is_name(name) else "mine"
                raise UsageError(
                    f"--backend existing needs to know where {name} is.",
                    fix=f"Name its interpreter{'' if own == name else f' instead of {name}'}: "
                    f"--python {own}=/path/to/bin/python",
                )
    return found


def _only(environments: tuple[str, ...], reference: str) -> str:
    if len(environments) != 1:
        raise UsageError(
            f"--image {reference} does not say for which environment it stands.",
            fix=f"Write --image NAME={reference}, once for each environment with an image.",
        )
    return environments[0]


def _enter(sources: dict[str, Source], name: str, source: Source) -> None:
    check_name(name, what="Environment")
    if name in sources:
        raise UsageError(f"{name} is named twice, by --python or --image.", fix="Leave one out.")
    sources[name] = source
