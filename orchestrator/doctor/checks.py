"""The machine itself: each thing that matters, how it is, and the line that mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.doctor import quiet
from orchestrator.doctor.cells import GET_DRIVER, GET_TOOLKIT, NO_GPU
from orchestrator.gpus import busy
from orchestrator.model.health import Check
from orchestrator.model.phrases import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.gpu import Gpu
    from orchestrator.model.health import EngineFact, Facts
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Device

_GB = 1e9
_MIB = 2**20


def checks(rows: Sequence[Row], devices: Sequence[Device], facts: Facts) -> tuple[Check, ...]:
    """What was looked at, in the order in which a user would mend it."""
    return (
        *_machine(facts),
        *_pythons(rows, facts),
        *_locks(rows, devices, facts),
        *_disk(rows, devices, facts),
        *_engine(facts.engine),
        *_gpus(facts),
    )


def hints(facts: Facts, *, noisy: bool = False) -> tuple[Check, ...]:
    """What would make this machine less noisy; where it is too `noisy`, what may as well."""
    found = [*(quiet.checks(facts) if facts.host else ()), *map(_gpu, facts.gpus)]
    return tuple(check for check in found if check.level != "ok" or (noisy and check.fix))


def _machine(facts: Facts) -> Iterator[Check]:
    if facts.problem:
        yield Check(subject="platform", level="cannot", text=facts.problem, fix=facts.fix)
    host = facts.host
    if host is None:
        return
    if not facts.problem:
        memory = host.memory_bytes / 2**30
        text = (
            f"{facts.system}, kernel {host.kernel}; {host.cpu}, {count(host.cores, 'core')}, AVX; "
            f"{memory:.0f} GiB of memory"
        )
        yield Check(subject="platform", level="ok", text=text)
    yield from quiet.checks(facts)


def _pythons(rows: Sequence[Row], facts: Facts) -> Iterator[Check]:
    for version, python in sorted(facts.pythons.items(), key=lambda item: _numbers(item[0])):
        subject = f"Python {version}"
        using = count(sum(row.python == version for row in rows), "environment")
        get = f"pyenv install {version}"
        if python.path:
            text = f"{python.version} in {python.path}"
            yield Check(subject=subject, level="ok", text=text)
        elif python.problem:
            fix = f'stackrace.toml: [interpreters] "{version}" = "/path/to/bin/python{version}"'
            yield Check(subject=subject, level="cannot", text=python.problem, fix=fix)
        elif python.download:
            text = f"not here; will be downloaded for {using} when it is needed"
            yield Check(subject=subject, level="warning", text=text, fix=get)
        else:
            text = f"not here, and needed for {using}"
            yield Check(subject=subject, level="cannot", text=text, fix=get)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _names(rows: Sequence[Row], devices: Sequence[Device]) -> dict[str, int]:
    """Environments to make, with their MB: a copy of a row shares its own."""
    return {
        f"{row.lock_name}-{device}": row.size_mb[device]
        for row in rows
        for device in devices
        if device in row.packages and device in row.size_mb
    }


def _locks(rows: Sequence[Row], devices: Sequence[Device], facts: Facts) -> Iterator[Check]:
    names = _names([row for row in rows if row.ours], devices)
    missing = [name for name in names if name not in facts.locks]
    if missing:
        text = f"missing: {', '.join(missing)}"
        yield Check(subject="locks", level="cannot", text=text, fix="nox -s lock")
    elif names:
        text = "it is there" if len(names) == 1 else f"all {len(names)} are there"
        yield Check(subject="locks", level="ok", text=text)


def _disk(rows: Sequence[Row], devices: Sequence[Device], facts: Facts) -> Iterator[Check]:
    if facts.free_bytes is None:
        return
    possible = [device for device in devices if device == "cpu" or facts.gpus]
    names = _names(rows, possible)
    wanted = {name: size for name, size in names.items() if name not in facts.made}
    needed = sum(wanted.values()) / 1000
    free = facts.free_bytes / _GB
    text = f"{facts.cache} has {free:.0f} GB free"
    if names:
        made = len(names) - len(wanted)
        text += f", and {made} of {count(len(names), 'environment')} made"
    if wanted:
        text += f"; what is missing takes about {needed:.1f} GB"
    fix = "stackrace clean; or another disk: export STACKRACE_CACHE=/disk UV_CACHE_DIR=/disk"
    enough = free > needed
    yield Check(
        subject="disk", level="ok" if enough else "warning", text=text, fix="" if enough else fix
    )


def _engine(engine: EngineFact | None) -> Iterator[Check]:
    if engine is None:
        return
    if engine.problem:
        yield Check(subject="Docker", level="cannot", text=engine.problem, fix=engine.fix)
        return
    text = (
        f"Engine {engine.version} (API {engine.api}) at {engine.place}; storage {engine.storage}, "
        f"cgroup v{engine.cgroup}"
    )
    yield Check(subject="Docker", level="ok", text=text)
    if engine.elsewhere:
        text = "on another machine, whose GPUs cannot be seen from here: containers get none"
        yield Check(subject="Docker GPUs", level="warning", text=text, fix="Run stackrace there.")
        return
    ways = [word for word, there in (("toolkit", engine.nvidia), ("CDI", engine.cdi)) if there]
    if ways:
        yield Check(subject="Docker GPUs", level="ok", text=f"NVIDIA {' and '.join(ways)}")
    else:
        text = "no NVIDIA toolkit and no CDI: containers get no GPU"
        yield Check(subject="Docker GPUs", level="warning", text=text, fix=GET_TOOLKIT)


def _gpus(facts: Facts) -> Iterator[Check]:
    if facts.gpu_problem or not facts.gpus:
        text = facts.gpu_problem or NO_GPU
        yield Check(subject="GPU", level="warning", text=text, fix=GET_DRIVER)
    if facts.gpus:
        first = facts.gpus[0]
        text = f"{first.driver}, for CUDA up to {first.cuda}"
        yield Check(subject="driver", level="ok", text=text)
    for gpu in facts.gpus:
        yield _gpu(gpu)


def _gpu(gpu: Gpu) -> Check:
    subject = f"GPU {gpu.index}" + (" part" if gpu.parent else "")
    text = (
        f"{gpu.name}, compute capability {gpu.capability}, {gpu.free_bytes // _MIB} of "
        f"{gpu.memory_bytes // _MIB} MiB free, {gpu.uuid}"
    )
    if gpu.divided:
        return Check(subject=subject, level="ok", text=f"{text}; divided into MIG devices")
    held = busy(gpu)
    if held is not None:
        fix = "Wait until it has ended, or take another with --gpus."
        return Check(subject=subject, level="warning", text=f"{text}; {held}", fix=fix)
    if gpu.state.throttle:
        text = f"{text}; throttled: {', '.join(gpu.state.throttle)}"
        return Check(
            subject=subject, level="warning", text=text, fix="nvidia-smi -q -d PERFORMANCE"
        )
    return Check(subject=subject, level="ok", text=text)
