"""From the names on a command line to rows: the matrix's, the user's own, and pairs on the fly."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator import matrix, pairs
from orchestrator.environments import interpreters, locks
from orchestrator.pipeline import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.config import Config
    from orchestrator.model.matrix import Row


def rows(
    settings: Config, names: Sequence[str], *, described: Mapping[str, Row] = MappingProxyType({})
) -> tuple[Row, ...]:
    """What the names stand for, in the order given, a name given again as a copy.

    A name is an identifier of the matrix or of stackrace.toml, a glob, or a pair such as
    `tensorflow==2.9.1`. `described`: rows of environments that somebody else made, by name; they
    win. UsageError for what there is not, with the nearest that there is.
    """
    known = catalogue.every(settings)
    asked = [pair for pair in (pairs.parse(name) for name in names) if pair is not None]
    texts = {pair.text for pair in asked}
    others = matrix.choose(
        known, [name for name in names if name not in texts], extra_rows=described
    )

    def newest(python: str) -> Mapping[str, str]:
        found = interpreters.find(
            python,
            configured=settings.interpreters,
            downloads_folder=settings.cache / "interpreters",
        )
        return locks.newest("tf-nightly", python=found.path, folder=settings.cache / "locks")

    made = pairs.rows(
        asked,
        matrix.load(),
        fixed_pythons=[".".join(row.python.split(".")[:2]) for row in others],
        newest=newest,
    )
    return matrix.choose(
        known,
        names,
        extra_rows={
            **{pair.text: row for pair, row in zip(asked, made, strict=True)},
            **described,
        },
    )
