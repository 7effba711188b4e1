"""Facts about this machine: whether stackrace can work here, what it is, how busy it is."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path

import psutil

from orchestrator.errors import PlatformError
from orchestrator.model.record import Host, Load

CPUINFO = Path("/proc/cpuinfo")
CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")


def check_platform(
    system: str | None = None, machine: str | None = None, cpuinfo: Path = CPUINFO
) -> None:
    """PlatformError unless TensorFlow's old wheels can run here: Linux, x86-64, AVX."""
    system = system or platform.system()
    machine = machine or platform.machine()
    elsewhere = (
        "Work on such a machine: over ssh, in a Linux virtual machine, or in a linux/amd64 "
        "container on an x86-64 host."
    )
    if (system, machine) != ("Linux", "x86_64"):
        raise PlatformError(
            f"stackrace measures on Linux x86-64; this is {system} {machine}.",
            why="The TensorFlow releases that it compares have no wheels for anything else.",
            fix=elsewhere,
        )
    flags = _cpu_field(cpuinfo, "flags")
    if flags and "avx" not in flags.split():
        raise PlatformError(
            "This CPU has no AVX instructions.",
            why="TensorFlow wheels since 1.6 need them; x86 emulation often hides them.",
            fix=elsewhere,
        )


def facts(cpuinfo: Path = CPUINFO, cpufreq: Path = CPUFREQ) -> Host:
    """This machine. Its key `machine` covers CPU model, cores and memory, not its name."""
    cpu = _cpu_field(cpuinfo, "model name") or platform.processor() or "unknown"
    cores = len(os.sched_getaffinity(0))
    memory = psutil.virtual_memory().total
    # Memory in whole GiB: a kernel update changes the exact figure.
    identity = f"{cpu}|{cores}|{round(memory / 2**30)}"
    return Host(
        machine=hashlib.blake2b(identity.encode(), digest_size=6).hexdigest(),
        hostname=platform.node(),
        cpu=cpu,
        cores=cores,
        memory_bytes=memory,
        kernel=platform.release(),
        governor=_line(cpufreq / "scaling_governor"),
        turbo=_turbo(cpufreq.parent.parent),
        facts={
            "threads": {
                name: value
                for name, value in sorted(os.environ.items())
                if name.startswith(("OMP_", "KMP_", "MKL_", "OPENBLAS_", "TF_NUM_"))
            }
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
