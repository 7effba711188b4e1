"""`stackrace clean`: what stackrace keeps on this machine, and its removal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator import config, containers
from orchestrator.environments import cleaning
from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.model.container import LostError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.environments.cleaning import Item, Removed
    from orchestrator.model.container import Engine

_UNITS_S = {"h": 3600.0, "d": 24 * 3600.0, "w": 7 * 24 * 3600.0}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What there is. `engine`: None where no container engine answers."""

    folder: Path
    items: tuple[Item, ...]
    engine: Engine | None


def look() -> Kept:
    """Everything that carries our mark: in the cache folder, and at the container engine."""
    folder = config.cache_folder()
    try:
        engine = containers.connect()
        return Kept(folder=folder, items=cleaning.every(folder, engine), engine=engine)
    # Without Docker there are no images to remove.
    except (EnvironmentFailedError, LostError, RefusedError):
        return Kept(folder=folder, items=cleaning.every(folder, None), engine=None)


def choose(kept: Kept, *, names: Sequence[str], older_than: str | None) -> tuple[Item, ...]:
    """The items of these environments that were not used for so long; UsageError for others."""
    age_s = parse_age(older_than) if older_than else 0.0
    return cleaning.choose(kept.items, names=names, older_than_s=age_s)


def remove(kept: Kept, items: Sequence[Item]) -> tuple[Removed, ...]:
    """Remove items; what is in use stays, and says so."""
    try:
        return cleaning.remove(items, folder=kept.folder, engine=kept.engine)
    except LostError as error:
        raise EnvironmentFailedError(
            "Docker Engine went away while its images were removed.",
            why=str(error),
            fix="Start it (sudo systemctl start docker), and run the same command again.",
        ) from error


def parse_age(text: str) -> float:
    """`30d`, `12h` or `2w` in seconds."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*([hdw])\s*", text)
    if found is None:
        raise UsageError(f"{text!r} is not an age.", fix="Write it as 30d, 12h or 2w.")
    return int(found[1]) * _UNITS_S[found[2]]
