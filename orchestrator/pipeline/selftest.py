"""`stackrace selftest`: an environment against a copy of itself, which shows the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.errors import UsageError
from orchestrator.model.matrix import own_api
from orchestrator.model.phrases import count
from orchestrator.pipeline import choosing, racing

if TYPE_CHECKING:
    from orchestrator.config import Config
    from orchestrator.model.names import Api

# Short and longer iterations, three ways to call: about three minutes on two cores.
CASES: Final = (
    "mlp-small/numpy/train_on_batch",
    "small-small/numpy/predict",
    "lstm-small/numpy/fit",
)
API: Final[Api] = "tf.keras"


def selftest(settings: Config, hints: racing.Hints) -> int:
    """Race an environment against itself, in its own mode. Returns the exit code.

    Of stackrace.toml only where things are counts: what is raced is always the same.
    """
    rows = choosing.rows(settings, settings.environments)
    if len(rows) != 1:
        named = ", ".join(row.identifier for row in rows)
        raise UsageError(
            f"A selftest is of one environment, not of {count(len(rows), 'environment')}: {named}.",
            fix=f"Name one: stackrace selftest {rows[0].identifier}",
        )
    if settings.devices is not None and len(settings.devices) > 1:
        raise UsageError(
            "A selftest is of one device.",
            fix="Do one with --device cpu and one with --device gpu.",
        )
    if settings.rounds == 1:
        raise UsageError("One round shows no noise.", fix="Leave --rounds out, or name 2 or more.")
    (row,) = rows
    api = API if API in row.apis else own_api(row)
    return racing.race(
        msgspec.structs.replace(
            settings,
            environments=(*settings.environments, *settings.environments),
            cases=settings.cases or CASES,
            arms=(f"{api}/{row.native_mode}",),
            reference=None,
            goal=None,
            workloads=(),
            packages=(),
            same_weights=False,
            profile=False,
            selftest=True,
        ),
        hints,
    )
