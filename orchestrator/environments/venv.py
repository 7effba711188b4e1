"""A virtual environment on this machine that runs one worker process at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orchestrator.environments import workers
from orchestrator.environments.variables import gpu_variables
from orchestrator.errors import EnvironmentFailedError
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

    `variables`: the row's own, such as KERAS_BACKEND. `gpus`: UUIDs that jobs on a GPU get.
    `cuda_cache`: where code that is compiled for a GPU is kept from job to job.
    """

    identifier: str
    lock_digest: str
    python: str
    folder: Path
    guest: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    cuda_cache: Path | None = None
    cores: tuple[int, ...] = ()  # that workers are bound to; none: as the host is

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
        """Run one worker process in the empty folder `work`, its output in `log`.

        Raises EnvironmentFailedError when the environment or the guest was removed meanwhile.
        """
        python = self.folder / "bin" / "python"
        for path in (python, self.guest):
            if not path.exists():
                raise EnvironmentFailedError(
                    f"{self.identifier} cannot run any more: {path} is gone.",
                    why="Its cache was cleaned, or the Python that it was made with was removed,\n"
                    "while the run went on.",
                    fix="Go on with --resume: what is missing is made again, from the same lock.",
                )
        variables = dict(self.variables)
        if request.device == "gpu":
            variables |= self._gpu_variables()
        ended = workers.run(
            python,
            self.guest,
            request,
            variables=variables,
            work=work,
            log=log,
            limits=limits,
            beat=beat,
            cores=self.cores,
        )
        return replace(ended, mend=f"Delete {self.folder}: it is then made again.")

    def _gpu_variables(self) -> dict[str, str]:
        libraries = self.folder.glob("lib/python*/site-packages/nvidia/*/lib")
        return gpu_variables(
            os.environ, gpus=self.gpus, libraries=sorted(libraries), cache=self.cuda_cache
        )
