"""Running one worker process on this machine with whatever interpreter an environment has."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from orchestrator.environments.variables import CUDA_CACHE, worker_variables
from orchestrator.model import codec
from orchestrator.model.execution import Execution
from orchestrator.process import run_worker, tail
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from orchestrator.model.execution import Beat
    from orchestrator.model.plan import Limits
    from orchestrator.model.request import Request

# The first phase after the first call; the guest writes it.
_AFTER_FIRST_CALL = "warmup"


def run(
    python: Path,
    guest: Path,
    request: Request,
    *,
    variables: Mapping[str, str],
    work: Path,
    log: Path,
    limits: Limits,
    beat: Beat,
    cores: Collection[int] = (),
) -> Execution:
    """Run the guest once in the empty folder `work`, its output in `log`.

    `variables` are added to what every worker gets, and win. `cores`: those that it is bound to;
    none: as the host is. The caller removes the folder: request, result and the worker's home.
    """
    asked, answer, home = work / "request.json", work / "result.json", work / "home"
    phases = Path(request.phase_path)
    home.mkdir()
    if CUDA_CACHE in variables:
        with storage_errors(Path(variables[CUDA_CACHE]), fix=NAME_CACHE):
            Path(variables[CUDA_CACHE]).mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()

    def in_first_call() -> bool:
        beat(time.monotonic() - begun)
        return _AFTER_FIRST_CALL not in _lines(phases)

    asked.write_bytes(codec.encode(msgspec.structs.replace(request, parent_pid=os.getpid())))
    ended = run_worker(
        # -s and not -I, which would ignore PYTHONHASHSEED.
        [python, "-s", guest, asked, answer],
        env={**worker_variables(os.environ, home=home, device=request.device), **variables},
        log=log,
        limits=limits,
        in_first_call=in_first_call,
        cwd=work,
        cores=cores,
    )
    entered = _lines(phases)
    return Execution(
        start=ended.start,
        end=ended.end,
        result=answer.read_bytes() if answer.exists() else None,
        exit_code=ended.exit_code,
        signal=ended.signal,
        exceeded=ended.exceeded,
        last_phase=entered[-1] if entered else None,
        log_tail=tail(log),
        start_error=ended.start_error,
        oom_kills=ended.oom_kills,
    )


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8").split()
    return []
