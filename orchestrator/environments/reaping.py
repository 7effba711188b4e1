"""Whose a container, a volume or an unfinished image is, and the end of those whose owner is dead.

Each carries its owner in a label: the machine, its boot, the process and when that started. The
next command removes what a killed one left, and nothing that somebody else may still use.
"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.model.container import MARK, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.model.container import Engine

OWNER = f"{MARK}.owner"
# A volume that outlives its owner: the CUDA cache of a GPU and an environment.
KEEP = f"{MARK}.keep"
IMAGE = f"{MARK}.image"  # the image that such a volume goes with
ENVIRONMENT = f"{MARK}.environment"

_PROC = Path("/proc")
_STARTED = 19  # field of /proc/PID/stat, counted after the command: ticks from boot to its start


def owner(pid: int | None = None) -> str:
    """What names a process of this machine for good: `node.boot.pid.start`."""
    pid = os.getpid() if pid is None else pid
    return f"{_machine()}.{pid}.{_started(pid)}"


def alive(label: str) -> bool:
    """Whether the owner may still be there; of other machines nothing is known."""
    node, _, rest = label.partition(".")
    if node != _machine().partition(".")[0]:
        return True
    boot, _, process = rest.partition(".")
    pid, _, started = process.partition(".")
    same_boot = boot == _machine().partition(".")[2]
    return same_boot and pid.isdigit() and _started(int(pid)) == started


def reap(engine: Engine, *, alive: Callable[[str], bool] = alive) -> int:
    """Remove containers, volumes and unfinished images of dead owners; returns how many."""

    def stale(labels: Mapping[str, str]) -> bool:
        return OWNER in labels and KEEP not in labels and not alive(labels[OWNER])

    removed = 0
    # One that cannot be removed, such as an image that somebody's container uses, is for later.
    for container in engine.containers():
        if stale(container.labels):
            with suppress(RefusedError):
                engine.remove(container.id)
                removed += 1
    for volume in engine.volumes():
        if stale(volume.labels):
            with suppress(RefusedError):
                engine.remove_volume(volume.id)
                removed += 1
    for image in engine.images():
        if not image.tags and stale(image.labels):
            with suppress(RefusedError):
                engine.remove_image(image.id)
                removed += 1
    return removed


def _machine() -> str:
    # Containers may share the name of their host, but process numbers they count for themselves.
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink(_PROC / "self/ns/pid")  # noqa: PTH115 (it names no path)
    place = f"{platform.node()}|{namespace}"
    node = hashlib.blake2b(place.encode(), digest_size=6).hexdigest()
    boot = "0"
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    return f"{node}.{boot}"


def _started(pid: int) -> str:
    """When a process started; empty when there is none."""
    with suppress(OSError, IndexError):
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[_STARTED]
    return ""
