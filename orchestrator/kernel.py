"""Whether this is Linux, and what it grants and takes: cores, and kills for want of memory."""

from __future__ import annotations

import errno
import os
import platform
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import PlatformError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

TASKS = Path("/proc/self/task")
ELSEWHERE = (
    "Work on such a machine: over ssh, in a Linux virtual machine, or in a linux/amd64 container "
    "on an x86-64 host."
)


def check_system(system: str | None = None, machine: str | None = None) -> None:
    """PlatformError unless this is Linux on x86-64."""
    system = system or platform.system()
    machine = machine or platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        raise PlatformError(
            f"stackrace measures on Linux x86-64; this is {system} {machine}.",
            why="The TensorFlow releases that it compares have no wheels for anything else.",
            fix=ELSEWHERE,
        )


def allowed() -> tuple[int, ...]:
    """The cores that this process may use, by number."""
    return tuple(sorted(os.sched_getaffinity(0)))


def text(cores: Iterable[int]) -> str:
    """Cores as Docker and taskset write them: `0-3,8`."""
    spans: list[list[int]] = []
    for core in sorted(set(cores)):
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def check(cores: Collection[int]) -> None:
    """UsageError unless this process may use every one of these cores."""
    here = allowed()
    missing = set(cores) - set(here)
    if missing:
        word = "Core" if len(missing) == 1 else "Cores"
        raise UsageError(
            f"{word} {text(missing)} cannot be had here.",
            why="There are no such cores, or a job system, a container or taskset keeps this "
            "process off them.",
            fix=f"Those that it may use: {text(here)}.",
        )


@contextmanager
def bound(cores: Collection[int]) -> Iterator[None]:
    """Start children on these cores: those that this thread starts meanwhile inherit them.

    A child has its cores before its first instruction, without code between fork and exec, and
    without a program in between. Without cores, nothing is bound. Raises OSError when they are not
    all to be had.
    """
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        if os.sched_getaffinity(0) != set(cores):  # Linux takes those that it can give
            raise OSError(errno.EINVAL, f"cores {text(cores)} cannot all be had any more")
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def kept_off(cores: Collection[int]) -> Iterator[None]:
    """Keep every thread of this process off these cores, where it has others to be on."""
    before = os.sched_getaffinity(0)
    others = before - set(cores)
    if not cores or not others:
        yield
        return
    _move(others)
    try:
        yield
    finally:
        _move(before)


def _move(cores: Collection[int]) -> None:
    """Every thread of this process; those started later inherit it from theirs."""
    for task in list(TASKS.iterdir()):
        with suppress(ProcessLookupError):  # a thread that has ended meanwhile
            os.sched_setaffinity(int(task.name), cores)


def oom_kills() -> int:
    """Processes killed for memory so far: in our own cgroup where it counts, else anywhere."""
    for path, word in _oom_counters():
        with suppress(OSError, ValueError):
            for line in path.read_text(encoding="ascii").splitlines():
                if line.startswith(f"{word} "):
                    return int(line.split()[1])
    return 0


def _oom_counters() -> list[tuple[Path, str]]:
    counters = [(Path("/proc/vmstat"), "oom_kill")]
    with suppress(OSError, ValueError):
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        for line in own.splitlines():
            number, controllers, path = line.split(":", maxsplit=2)
            if number == "0":
                file = Path(f"/sys/fs/cgroup{path}/memory.events")
                counters.insert(0, (file, "oom_kill"))
            elif "memory" in controllers.split(","):
                file = Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control")
                counters.insert(0, (file, "oom_kill"))
    return counters
