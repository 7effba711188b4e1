"""Isolated environments: found or made, probed, and ready to run workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.environments import venvs
from orchestrator.environments.venv import VenvEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from orchestrator.environments.options import Options, Wanted
    from orchestrator.model.execution import Environment
    from orchestrator.model.names import Variant


def prepare(
    wanted: Sequence[Wanted],
    *,
    variant: Variant,
    guest: Path,
    options: Options,
    say: Callable[[str], None],
) -> dict[str, Environment]:
    """Find or make every wanted environment, and return them by identifier, in order.

    `say` is told what takes time; it is called from several threads.
    """
    jobs = venvs.obtain(
        [item.row for item in wanted], variant=variant, guest=guest, options=options, say=say
    )
    return {
        identifier: VenvEnvironment(
            identifier=identifier,
            lock_digest=job.lock.digest,
            python=job.interpreter.version,
            folder=job.slot.folder,
            guest=guest,
        )
        for identifier, job in jobs.items()
    }
