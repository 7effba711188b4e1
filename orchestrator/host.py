"""Facts about this machine: whether stackrace can work here, what it is, how busy it is."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from orchestrator import kernel
from orchestrator.errors import PlatformError
from orchestrator.model.record import Host, Load

if TYPE_CHECKING:
    from collections.abc import Sequence

CPUINFO = Path("/proc/cpuinfo")
CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


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
    cores = min(len(pin) or len(os.sched_getaffinity(0)), _quota(cpu_max))
    memory = psutil.virtual_memory().total
    # Memory in whole GiB: a kernel update changes the exact figure.
    identity = f"{cpu}|{cores}|{round(memory / 2**30)}"
    return Host(
        machine=hashlib.blake2b(identity.encode(), digest_size=6).hexdigest(),
        node=hashlib.blake2b(platform.node().encode(), digest_size=6).hexdigest(),
        cpu=cpu,
        cores=cores,
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
