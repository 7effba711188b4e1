"""`stackrace doctor`: looks at this machine, and hands what it found to those who judge it."""

from __future__ import annotations

import hashlib
import platform
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec

from orchestrator import containers, doctor, gpus, host, kernel
from orchestrator.environments import cache, interpreters, locks
from orchestrator.errors import StackraceError
from orchestrator.model.container import LostError, RefusedError
from orchestrator.model.health import EngineFact, Facts, Health, PythonFact
from orchestrator.model.names import Device, Variant
from orchestrator.pipeline import choosing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from orchestrator.config import Config
    from orchestrator.environments.interpreters import Interpreter
    from orchestrator.model.container import Engine
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Backend
    from orchestrator.model.record import Host

DEVICES: tuple[Device, ...] = get_args(Device)
VARIANTS: tuple[Variant, ...] = get_args(Variant)
OLDEST_DOWNLOAD = (3, 7)
UNAVAILABLE = 5


def examine(
    settings: Config, *, backends: Sequence[Backend], nvml: gpus.Nvml | None = None
) -> Health:
    """What this machine can run of the environments that are named, or of all.

    Only what was named can fail: without names the exit code is 0.
    """
    rows = choosing.rows(settings, settings.environments or ("*",))
    devices = settings.devices or DEVICES
    facts = gather(rows, settings, backends=backends, nvml=nvml)
    cells = doctor.cells(rows, devices, backends, facts)
    named = [row.identifier for row in rows] if settings.environments else []
    failed = doctor.failing(cells, named, devices=settings.devices, backend=settings.backend)
    return Health(
        exit_code=UNAVAILABLE if failed else 0,
        checks=doctor.checks(rows, devices, facts),
        cells=cells,
        facts=facts,
    )


def with_gpus(machine: Host, uuids: Collection[str], nvml: gpus.Nvml | None = None) -> Host:
    """The machine as records keep it, with what those of its GPUs are that a run uses.

    Its key then covers what makes GPUs alike as well: model with MIG profile, memory, power limit,
    driver; not which of several they are, nor what they do at the moment.
    """
    if not uuids:
        return machine
    used = [gpu for gpu in gpus.find(nvml) if gpu.uuid in uuids]
    kinds = sorted(
        f"{gpu.name}|{round(gpu.memory_bytes / 2**30)}|{gpu.power_limit_w or 0:.0f}|{gpu.driver}"
        for gpu in used
    )
    identity = "|".join((machine.machine, *kinds))
    return msgspec.structs.replace(
        machine,
        machine=hashlib.blake2b(identity.encode(), digest_size=6).hexdigest(),
        gpus=tuple(gpu.lasting() for gpu in used),
    )


def gather(
    rows: Sequence[Row],
    settings: Config,
    *,
    backends: Sequence[Backend],
    nvml: gpus.Nvml | None = None,
    connect: Callable[[], Engine] = containers.connect,
) -> Facts:
    """The facts that these rows depend on. Nothing is downloaded, made or held."""
    problem, fix = _platform()
    found = gpus.survey(nvml)
    pythons = {version: _python(version, settings) for version in {row.python for row in rows}}
    here = {version: item for version, item in pythons.items() if not isinstance(item, PythonFact)}
    return Facts(
        system=f"{platform.system()} {platform.machine()}",
        problem=problem,
        fix=fix,
        host=host.facts(pin=settings.pin),
        load=host.load(),
        surroundings=host.surroundings(),
        pin=settings.pin,
        pythons={
            version: item
            if isinstance(item, PythonFact)
            else PythonFact(path=str(item.path), version=item.version)
            for version, item in pythons.items()
        },
        locks=frozenset(
            path.stem
            for row in rows
            for variant in VARIANTS
            if (path := locks.lock_path(row, variant)).exists()
        ),
        made=_made(rows, here, settings.cache),
        cache=str(settings.cache),
        free_bytes=_free(settings.cache),
        engine=engine(connect) if "container" in backends else None,
        gpus=found.gpus,
        gpu_problem=found.problem,
    )


def _platform() -> tuple[str, str]:
    try:
        kernel.check_system()
        host.check_cpu()
    except StackraceError as error:
        return error.what, error.fix
    return "", ""


def _python(version: str, settings: Config) -> Interpreter | PythonFact:
    try:
        found = interpreters.installed(
            version,
            configured=settings.interpreters,
            downloads_folder=settings.cache / "interpreters",
        )
    except StackraceError as error:
        return PythonFact(problem=error.what)
    numbers = tuple(int(part) for part in version.split(".")[:2])
    return PythonFact(download=numbers >= OLDEST_DOWNLOAD) if found is None else found


def _made(rows: Sequence[Row], here: Mapping[str, Interpreter], folder: Path) -> frozenset[str]:
    """Environments that are in the cache already; those of pairs on the fly are not looked for."""
    names: set[str] = set()
    for row in rows:
        for variant in VARIANTS:
            if not (row.ours and row.python in here and locks.lock_path(row, variant).exists()):
                continue
            slot = cache.slot(
                row,
                variant,
                lock=locks.read(row, variant),
                interpreter=here[row.python],
                cache=folder,
            )
            if slot.manifest() is not None:
                names.add(f"{row.lock_name}-{variant}")
    return frozenset(names)


def _free(folder: Path) -> int | None:
    """Of the disk on which the cache is, or will be."""
    with suppress(OSError):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        return shutil.disk_usage(there).free
    return None


def engine(connect: Callable[[], Engine] = containers.connect) -> EngineFact:
    """What the container engine can do, or why it does not answer."""
    try:
        with closing(connect()) as engine:
            found = engine.abilities()
    except StackraceError as error:
        return EngineFact(problem=error.what.rstrip("."), fix=error.fix)
    except (LostError, RefusedError) as error:
        return EngineFact(problem=f"Docker Engine does not answer: {error}", fix="docker info")
    here = found.place.startswith("unix://")
    hook = here and shutil.which("nvidia-container-runtime-hook") is not None
    named = any("nvidia.com/gpu" in device for device in found.cdi_devices)
    listed = here and any(any(Path(folder).glob("nvidia*")) for folder in found.cdi_folders)
    return EngineFact(
        place=found.place,
        version=found.version,
        api=found.api,
        storage=found.storage,
        cgroup=found.cgroup,
        machine=found.machine,
        nvidia=hook or "nvidia" in found.runtimes,
        cdi=named or listed,
        elsewhere=bool(containers.elsewhere()),
    )
