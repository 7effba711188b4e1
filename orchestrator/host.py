"""Facts about this machine: whether stackrace can work here, what it is, how busy it is."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from orchestrator import kernel
from orchestrator.errors import PlatformError
from orchestrator.model.health import Other, Surroundings
from orchestrator.model.record import Host, Load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CPUINFO = Path("/proc/cpuinfo")
CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
CPUS = Path("/sys/devices/system/cpu")
STAT = Path("/proc/stat")
LOOK_S: Final = 0.2
MUCH: Final = 0.25  # of a core: what uses less is not felt
MOST_OTHERS: Final = 5
_STEAL: Final = 7  # where it stands among the times of /proc/stat


def check_cpu(cpuinfo: Path = CPUINFO) -> None:
    """PlatformError when this CPU, or its emulation, lacks what TensorFlow's wheels need."""
    flags = _cpu_field(cpuinfo, "flags")
    if flags and "avx" not in flags.split():
        raise PlatformError(
            "This CPU has no AVX instructions.",
            why="TensorFlow wheels since 1.6 need them; x86 emulation often hides them.",
            fix=kernel.ELSEWHERE,
        )


def facts(
    cpuinfo: Path = CPUINFO,
    cpufreq: Path = CPUFREQ,
    cpu_max: Path = CPU_MAX,
    *,
    pin: Sequence[int] = (),
) -> Host:
    """This machine. Its key `machine` covers CPU model, cores and memory, not its name.

    `pin`: the cores that workers are bound to; `cores` counts what workers have.
    """
    cpu = _cpu_field(cpuinfo, "model name") or platform.processor() or "unknown"
    granted = min(len(pin) or len(os.sched_getaffinity(0)), _quota(cpu_max))
    memory = psutil.virtual_memory().total
    # Memory in whole GiB: a kernel update changes the exact figure.
    identity = f"{cpu}|{granted}|{round(memory / 2**30)}"
    return Host(
        machine=hashlib.blake2b(identity.encode(), digest_size=6).hexdigest(),
        node=hashlib.blake2b(platform.node().encode(), digest_size=6).hexdigest(),
        cpu=cpu,
        cores=granted,
        memory_bytes=memory,
        kernel=platform.release(),
        governor=_line(cpufreq / "scaling_governor"),
        turbo=_turbo(cpufreq.parent.parent),
        facts={
            **({"pin": list(pin)} if pin else {}),
            "threads": {
                name: value
                for name, value in sorted(os.environ.items())
                if name.startswith(("OMP_", "KMP_", "MKL_", "OPENBLAS_", "TF_NUM_"))
            },
        },
    )


def cores() -> int:
    """Those of the whole machine, which its load is of, whoever may use them."""
    return psutil.cpu_count() or len(os.sched_getaffinity(0))


def load() -> Load:
    """How busy the machine is now."""
    frequency = None
    with suppress(OSError, NotImplementedError, AttributeError):
        frequency = psutil.cpu_freq()
    return Load(
        load_1m=os.getloadavg()[0],
        available_bytes=psutil.virtual_memory().available,
        cpu_mhz=frequency.current if frequency else None,
    )


def surroundings(
    cpuinfo: Path = CPUINFO,
    cpus: Path = CPUS,
    stat: Path = STAT,
    *,
    rest: Callable[[], None] = lambda: time.sleep(LOOK_S),
) -> Surroundings:
    """What shares this machine with the workers; `rest` is what passes between two looks."""
    before, spent, began = _ticks(stat), _spent(), time.monotonic()
    rest()
    after, now, lasted = _ticks(stat), _spent(), time.monotonic() - began
    used = {one: seconds - spent[one] for one, seconds in now.items() if one in spent}
    others = [
        Other(name=one.name, cores=round(seconds / lasted, 2))
        for one, seconds in used.items()
        if seconds > MUCH * lasted
    ]
    return Surroundings(
        virtual="hypervisor" in _cpu_field(cpuinfo, "flags").split(),
        stolen=_stolen(before, after),
        cores=cores(),
        siblings=_siblings(cpus),
        swap_bytes=psutil.swap_memory().used,
        others=tuple(sorted(others, key=lambda other: -other.cores)[:MOST_OTHERS]),
    )


class _Process(NamedTuple):
    pid: int
    name: str


def _spent() -> dict[_Process, float]:
    """Seconds of CPU that every process but ours has used; those that may not be seen are not."""
    me = psutil.Process()
    ours = {me.pid, *(child.pid for child in me.children(recursive=True))}
    found = {}
    for one in psutil.process_iter(["name", "cpu_times"]):
        times = one.info["cpu_times"]
        if times is not None and one.pid not in ours:
            found[_Process(one.pid, one.info["name"] or "?")] = times.user + times.system
    return found


def _ticks(stat: Path) -> list[int]:
    """The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal..."""
    words = (_line(stat) or "").partition("\n")[0].split()
    return [int(word) for word in words[1:]] if words[:1] == ["cpu"] else []


def _stolen(before: list[int], after: list[int]) -> float | None:
    if min(len(before), len(after)) <= _STEAL:
        return None
    # Guest time, behind steal, is counted in user time as well.
    spent = [new - old for old, new in zip(before, after, strict=True)][: _STEAL + 1]
    return max(0, spent[_STEAL]) / sum(spent) if sum(spent) > 0 else None


def _siblings(cpus: Path) -> tuple[tuple[int, ...], ...]:
    """The cores that this process may use, those together that are threads of one."""
    groups: dict[str, list[int]] = {}
    for core in kernel.allowed():
        shared = _line(cpus / f"cpu{core}" / "topology" / "thread_siblings_list")
        groups.setdefault(shared or str(core), []).append(core)
    return tuple(tuple(group) for group in groups.values())


def _cpu_field(cpuinfo: Path, name: str) -> str:
    with suppress(OSError):
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""


def _quota(cpu_max: Path) -> int:
    """Cores that a container may use at once, rounded up; a large number without a limit."""
    quota, _, period = (_line(cpu_max) or "max").partition(" ")
    if not (quota.isdigit() and period.isdigit()):
        return sys.maxsize
    return math.ceil(int(quota) / int(period))


def _turbo(cpu: Path) -> str | None:
    no_turbo = _line(cpu / "intel_pstate" / "no_turbo")
    if no_turbo is not None:
        return "off" if no_turbo == "1" else "on"
    boost = _line(cpu / "cpufreq" / "boost")
    return None if boost is None else ("on" if boost == "1" else "off")


def _line(path: Path) -> str | None:
    with suppress(OSError):
        return path.read_text(encoding="ascii").strip()
    return None
