"""`--gpus auto|all|INDEX,...|UUID,...`: which of the GPUs a run gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.gpus.holding import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.model.gpu import Gpu


def choose(
    gpus: Sequence[Gpu],
    wanted: str = "auto",
    *,
    against: Callable[[Gpu], str | None] = lambda _: None,
) -> tuple[Gpu, ...]:
    """The GPUs that were asked for; where one is divided, its MIG devices.

    `auto` is the first that is free and that nothing speaks `against` (a reason, or None). A UUID
    may be cut short where it stays unique.
    Raises UsageError for one that is not there, EnvironmentFailedError when none can be had.
    """
    usable = tuple(gpu for gpu in gpus if not gpu.divided)
    if not usable:
        raise EnvironmentFailedError(
            "There is no GPU to choose." if not gpus else "No GPU here can be used as it is.",
            why="No NVIDIA GPU answers."
            if not gpus
            else "MIG is on, but no MIG device was made in it.",
            fix="`stackrace doctor` says what is missing. Without a GPU: --device cpu",
        )
    if wanted == "auto":
        return (_first_free(usable, against),)
    if wanted == "all":
        return usable
    chosen: dict[str, Gpu] = {}
    for word in wanted.split(","):
        for gpu in _named(gpus, word.strip()):
            chosen[gpu.uuid] = gpu
    return tuple(chosen.values())


def _first_free(gpus: Sequence[Gpu], against: Callable[[Gpu], str | None]) -> Gpu:
    reasons: list[str] = []
    for gpu in gpus:
        reason = busy(gpu) or against(gpu)
        if reason is None:
            return gpu
        reasons.append(f"{_title(gpu)}: {reason}")
    raise EnvironmentFailedError(
        "No GPU here is free and can run what was asked for.",
        why="\n".join(reasons),
        fix="Wait, or name one with --gpus. `stackrace doctor` shows what each can run.",
    )


def _named(gpus: Sequence[Gpu], word: str) -> Sequence[Gpu]:
    if word.isdigit():
        found = [gpu for gpu in gpus if gpu.parent is None and gpu.index == int(word)]
    else:
        found = [gpu for gpu in gpus if word and gpu.uuid.lower().startswith(word.lower())]
        found = [gpu for gpu in found if gpu.uuid.lower() == word.lower()] or found
    if len(found) != 1:
        there = "\n".join(_title(gpu) for gpu in gpus)
        what = "more than one GPU" if found else "no GPU"
        raise UsageError(f"{word!r} names {what} of this machine.", why=f"There is:\n{there}")
    (gpu,) = found
    if not gpu.divided:
        return found
    parts = [part for part in gpus if part.parent == gpu.uuid]
    if not parts:
        raise EnvironmentFailedError(
            f"{_title(gpu)} is divided (MIG), but has no MIG device.",
            fix="Make one as root: nvidia-smi mig -cgi 0 -C; or end MIG: nvidia-smi -mig 0",
        )
    return parts


def _title(gpu: Gpu) -> str:
    part = " (MIG is on)" if gpu.divided else ""
    return f"{gpu.index}: {gpu.name} {gpu.uuid}{part}"
