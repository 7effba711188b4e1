"""The platform check and facts about the machine."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import pytest

from orchestrator import host, kernel
from orchestrator.errors import PlatformError

if TYPE_CHECKING:
    from pathlib import Path


def cpuinfo(folder: Path, flags: str) -> Path:
    """A /proc/cpuinfo with these flags."""
    path = folder / "cpuinfo"
    path.write_text(f"model name\t: A CPU @ 2 GHz\nflags\t\t: {flags}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("system", "machine"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "aarch64")]
)
def test_other_platforms_are_refused(system: str, machine: str) -> None:
    """Anything but Linux x86-64 is refused, with the ways round it."""
    with pytest.raises(PlatformError, match=f"this is {system} {machine}") as caught:
        kernel.check_system(system, machine)
    assert "linux/amd64 container" in caught.value.fix
    assert caught.value.exit_code == 5


def test_cpu_without_avx_is_refused(tmp_path: Path) -> None:
    """Old wheels need AVX: better said now than as an illegal instruction."""
    with pytest.raises(PlatformError, match="no AVX"):
        host.check_cpu(cpuinfo(tmp_path, "fpu sse4_2"))


def test_cpu_with_avx_is_accepted(tmp_path: Path) -> None:
    """A CPU with AVX passes; so does one that tells nothing."""
    for path in (cpuinfo(tmp_path, "fpu avx avx2"), tmp_path / "none"):
        host.check_cpu(path)
    assert "avx" not in cpuinfo(tmp_path, "sse").read_text()


def test_facts_of_this_machine(tmp_path: Path) -> None:
    """Facts come from the system; what it does not say is null."""
    found = host.facts(cpuinfo(tmp_path, "avx"), tmp_path / "no-cpufreq")
    assert found.cpu == "A CPU @ 2 GHz"
    assert found.cores >= 1
    assert found.memory_bytes > 0
    assert (None, None) == (found.governor, found.turbo)


def test_machine_key_is_hardware_and_nothing_else(tmp_path: Path) -> None:
    """The key covers CPU model, cores and memory; flags may differ, the model may not."""
    first = host.facts(cpuinfo(tmp_path, "avx"), tmp_path)
    same = host.facts(cpuinfo(tmp_path, "avx avx2"), tmp_path)
    other = cpuinfo(tmp_path, "avx")
    other.write_text(other.read_text().replace("2 GHz", "3 GHz"))
    assert first.machine == same.machine
    assert first.machine != host.facts(other, tmp_path).machine


def test_records_do_not_name_the_host(tmp_path: Path) -> None:
    """The host's name is a digest: enough to tell two nodes apart."""
    name = platform.node()
    assert name
    assert name not in host.facts(cpuinfo(tmp_path, "avx"), tmp_path).node


def test_cores_of_a_container_are_its_quota(tmp_path: Path) -> None:
    """A CPU quota below the number of cores is what counts."""
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert host.facts(cpu_max=tmp_path / "cpu.max").cores == 1
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert host.facts(cpu_max=tmp_path / "cpu.max").cores == len(os.sched_getaffinity(0))


def test_governor_and_turbo(tmp_path: Path) -> None:
    """Governor and turbo are read where the kernel shows them."""
    cpufreq = tmp_path / "cpu0" / "cpufreq"
    cpufreq.mkdir(parents=True)
    (cpufreq / "scaling_governor").write_text("powersave\n")
    (tmp_path / "intel_pstate").mkdir()
    (tmp_path / "intel_pstate" / "no_turbo").write_text("1\n")
    found = host.facts(cpufreq=cpufreq)
    assert found.governor == "powersave"
    cpu = tmp_path / "cpu" / "cpu0" / "cpufreq"
    cpu.mkdir(parents=True)
    (tmp_path / "cpu" / "cpufreq").mkdir()
    (tmp_path / "cpu" / "cpufreq" / "boost").write_text("1\n")
    assert host.facts(cpufreq=cpu).turbo == "on"


def test_load_is_finite() -> None:
    """The load is what the system says now."""
    found = host.load()
    assert found.load_1m >= 0
    assert found.available_bytes > 0
