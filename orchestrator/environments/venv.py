"""A virtual environment on this machine that runs one worker process at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.environments import workers
from orchestrator.model.execution import Beat, Execution, silent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.model.names import Backend
    from orchestrator.model.plan import Limits
    from orchestrator.model.request import Request


@dataclass(frozen=True, kw_only=True)
class VenvEnvironment:
    """A prepared environment: `folder` holds its `bin/python`, `guest` is the zipapp to run.

    `variables`: the row's own, such as KERAS_BACKEND.
    """

    identifier: str
    lock_digest: str
    python: str
    folder: Path
    guest: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def backend(self) -> Backend:
        """How it is isolated."""
        return "venv"

    @property
    def image_digest(self) -> None:
        """It runs in no image."""
        return

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """Run one worker process in the empty folder `work`, its output in `log`."""
        return workers.run(
            self.folder / "bin" / "python",
            self.guest,
            request,
            variables=self.variables,
            work=work,
            log=log,
            limits=limits,
            beat=beat,
        )
