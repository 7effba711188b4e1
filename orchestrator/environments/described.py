"""What is in an environment that somebody else made, as a row: what its guest found there."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from orchestrator.model.matrix import Row, framework
from orchestrator.model.names import Api, Framework, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.model.matrix import Impossible
    from orchestrator.model.result import Result

NOTHING = "it has no TensorFlow and no Keras"
SELECTS = "KERAS_BACKEND"
# TensorFlow 1 builds graphs unless it is told otherwise.
_EAGER_SINCE = 2
_MODES: dict[Framework, tuple[Mode, ...]] = {
    "tensorflow": ("graph", "eager", "run_eagerly"),
    "jax": ("eager", "run_eagerly"),
    "torch": ("eager", "run_eagerly"),
}


def row(
    found: Result, *, identifier: str, place: str, python: str, known: Iterable[Row]
) -> Row | None:
    """A row of what the guest found, or None when that is nothing to race.

    `place`: the interpreter or image that the user named. `known`: rows whose knowledge of what is
    impossible holds for the same versions. `packages` are all that is installed: `name==version`.
    """
    metadata = found.metadata
    kind, version = _framework(metadata.get("framework"))
    apis = metadata.get("apis") or {}
    usable = tuple(api for api in get_args(Api) if api in apis)
    if kind is None or not usable:
        return None
    packages = tuple(f"{name}=={number}" for name, number in metadata["packages"].items())
    graphs = kind == "tensorflow" and int(version.split(".")[0]) < _EAGER_SINCE
    made = Row(
        identifier=identifier,
        tensorflow=version if kind == "tensorflow" else "",
        jax=version if kind == "jax" else "",
        torch=version if kind == "torch" else "",
        keras=apis.get("keras", ""),
        python=python,
        packages={"cpu": packages, "gpu": packages},
        size_mb={"cpu": 0, "gpu": 0},
        native_mode="graph" if graphs else "eager",
        apis=usable,
        modes=_MODES[kind],
        # Else Keras 3 would look for TensorFlow.
        variables={} if kind == "tensorflow" else {SELECTS: kind},
        spec=f"{identifier}={place}",
    )
    return msgspec.structs.replace(made, impossible=_impossible(made, known))


def digest(row: Row) -> str:
    """What stands for a lock's digest: that of everything installed, by name and version."""
    return hashlib.sha256("\n".join(sorted(row.packages["cpu"])).encode()).hexdigest()


def _framework(found: Any) -> tuple[Framework | None, str]:  # noqa: ANN401 - free-form metadata
    if isinstance(found, dict):
        for kind in get_args(Framework):
            if found.get("name") == kind:
                return kind, str(found.get("version"))
    return None, ""


def _impossible(row: Row, known: Iterable[Row]) -> tuple[Impossible, ...]:
    """What the row of the same minor versions cannot do; what else cannot be, the guest says."""
    kind, version = framework(row)
    same = (kind, _minor(version), _minor(row.keras))
    for other in known:
        name, number = framework(other)
        if (name, _minor(number), _minor(other.keras)) == same:
            return other.impossible
    return ()


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
