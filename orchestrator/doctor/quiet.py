"""Whether a machine is quiet: what makes times vary on it, each with the line that mends it.

A check that is `ok` and has a fix may stay as it is, unless the machine turns out to be too noisy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator import kernel
from orchestrator.model.health import Check
from orchestrator.model.phrases import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.health import Facts, Level, Surroundings
    from orchestrator.model.record import Host, Load

QUIET: Final = 0.3  # load per core below which a machine is quiet enough
MANY_CORES: Final = 8  # threads wander on so many
SUGGESTED: Final = 8  # cores that --pin is suggested for, at most
LITTLE: Final = 0.1  # of the memory: with less available, others are swapped out
STOLEN: Final = 0.01  # of the time: what a hypervisor takes on a quiet host
_GIB: Final = 2**30


def checks(facts: Facts) -> Iterator[Check]:
    """What was looked at, in the order in which a user would mend it; nothing without a host."""
    host, around = facts.host, facts.surroundings
    if host is None:
        return
    yield _governor(host.governor)
    yield _turbo(host.turbo)
    if facts.load is not None:
        yield _load(facts.load, (around and around.cores) or host.cores)
    if around is not None and around.others:
        yield _others(around, facts.pin)
    if facts.load is not None and around is not None:
        yield _memory(facts.load, host, around)
    if around is not None:
        yield from _cores(around, facts.pin)
        yield from _virtual(around)


def _check(subject: str, text: str, fix: str = "", *, level: Level = "warning") -> Check:
    return Check(subject=subject, level=level, text=text, fix=fix)


def _governor(governor: str | None) -> Check:
    if governor in {None, "performance"}:
        text = governor or "not told (a virtual machine, or a container)"
        return _check("governor", text, level="ok")
    return _check(
        "governor",
        f"{governor}: clocks follow the load, and times with them",
        "sudo cpupower frequency-set -g performance",
    )


def _turbo(turbo: str | None) -> Check:
    if turbo != "on":
        return _check("turbo", turbo or "not told", level="ok")
    return _check(
        "turbo",
        "on: clocks vary with heat, which interleaving evens out",
        "Turn it off: sudo sh -c 'cd /sys/devices/system/cpu; echo 1 > intel_pstate/no_turbo || "
        "echo 0 > cpufreq/boost'",
        level="ok",
    )


def _load(load: Load, cores: int) -> Check:
    """`cores`: of the whole machine, not only those that workers are bound to."""
    text = f"{load.load_1m:.1f} on {count(cores, 'core')}"
    if load.load_1m <= QUIET * cores:
        return _check("load", text, level="ok")
    return _check(
        "load",
        f"{text}: others are at work, or were a minute ago, and are measured too",
        "End what else is running: top",
    )


def _others(around: Surroundings, pin: Sequence[int]) -> Check:
    told = ", ".join(f"{other.name} ({other.cores:.1f})" for other in around.others)
    fix = "End them, or bind them to other cores" if pin else "End them, or --pin workers elsewhere"
    return _check("others", f"busy now, in cores: {told}", fix)


def _memory(load: Load, host: Host, around: Surroundings) -> Check:
    swap = f", {around.swap_bytes / _GIB:.1f} GiB of swap in use" if around.swap_bytes else ""
    text = f"{load.available_bytes / _GIB:.1f} GiB available{swap}"
    if load.available_bytes >= LITTLE * host.memory_bytes:
        return _check("memory", text, level="ok")
    return _check(
        "memory",
        f"{text}: with so little left, Linux takes time to find some",
        "End what holds it: ps axo rss,comm --sort -rss | head",
    )


def _cores(around: Surroundings, pin: Sequence[int]) -> Iterator[Check]:
    """Threads that share a core, and threads that wander."""
    used = [[core for core in group if not pin or core in pin] for group in around.siblings]
    shared = sum(len(group) > 1 for group in used)
    if shared:
        yield _check(
            "hyper-threads",
            f"on: {count(shared, 'core')} of those that workers use have several threads, which "
            "slow each other down",
            f"Use one thread of each: --pin {kernel.text(group[0] for group in used if group)}",
            level="ok",
        )
    if pin:
        yield _check("pinning", f"workers are bound to cores {kernel.text(pin)}", level="ok")
    elif len(around.siblings) >= MANY_CORES:
        first = [group[0] for group in around.siblings]
        cores = first[1 : 1 + min(SUGGESTED, len(first) - 1)]  # the first does the kernel's work
        yield _check(
            "pinning",
            f"none: threads of workers wander over {count(len(first), 'core')}",
            f"Bind them to as many as your model is to use, such as: --pin {kernel.text(cores)}",
            level="ok",
        )


def _virtual(around: Surroundings) -> Iterator[Check]:
    stolen = around.stolen or 0.0
    if stolen > STOLEN:
        yield _check(
            "virtual machine",
            f"its host gave {stolen:.0%} of the time to others just now",
            "Measure on a machine, or on cores, that nobody shares with you.",
        )
    elif around.virtual:
        yield _check(
            "virtual machine",
            "what its neighbours do is measured too, and cannot be seen from inside",
            "Measure on a machine, or on cores, that nobody shares with you.",
            level="ok",
        )
