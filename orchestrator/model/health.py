"""What this machine can run: the facts, and what `stackrace doctor` makes of them."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orchestrator.model.gpu import Gpu
from orchestrator.model.names import Backend, Device
from orchestrator.model.record import Host, Load

HEALTH_SCHEMA: Final = "stackrace.health/1"
Level = Literal["ok", "warning", "cannot"]


class PythonFact(msgspec.Struct, frozen=True, kw_only=True):
    """One version of Python that environments need. Without a `path` it is not here."""

    path: str = ""
    version: str = ""  # in full: 3.7.16
    download: bool = False  # it would be downloaded
    problem: str = ""  # why a configured one cannot be used


class EngineFact(msgspec.Struct, frozen=True, kw_only=True):
    """The container engine. With a `problem` the rest is empty."""

    place: str = ""
    version: str = ""
    api: str = ""
    storage: str = ""
    cgroup: str = ""
    machine: str = ""
    nvidia: bool = False  # the NVIDIA toolkit is there
    cdi: bool = False  # or a CDI specification names NVIDIA's GPUs
    elsewhere: bool = False  # on another machine, whose GPUs cannot be seen from here
    problem: str = ""
    fix: str = ""


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """A process that is none of ours, by its name alone."""

    name: str
    cores: float  # that it keeps busy


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What shares this machine with the workers, looked at for a fraction of a second."""

    virtual: bool = False  # a hypervisor shows itself to the CPU
    stolen: float | None = None  # fraction of the time that the hypervisor gave to others
    cores: int = 0  # of the whole machine, which its load is of; 0: unknown
    siblings: tuple[tuple[int, ...], ...] = ()  # of each physical core, the threads we may use
    swap_bytes: int = 0  # in use
    others: tuple[Other, ...] = ()  # those that use much, most first


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on this machine; what was not looked for keeps its default."""

    system: str = ""  # Linux x86_64
    problem: str = ""  # why TensorFlow cannot run here at all
    fix: str = ""
    host: Host | None = None
    load: Load | None = None
    surroundings: Surroundings | None = None
    pin: tuple[int, ...] = ()  # cores that workers are bound to
    pythons: dict[str, PythonFact] = {}
    locks: frozenset[str] = frozenset()  # those that are there: tf114-cpu
    made: frozenset[str] = frozenset()  # environments in the cache, named alike
    cache: str = ""
    free_bytes: int | None = None
    engine: EngineFact | None = None
    gpus: tuple[Gpu, ...] = ()
    gpu_problem: str = ""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `fix` is the exact line that mends it."""

    subject: str
    level: Level
    text: str
    fix: str = ""


class HealthCell(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an environment can run on a device, isolated by a backend, and why not.

    `lasting`: waiting, installing or making room would not change it.
    """

    environment: str
    backend: Backend
    device: Device
    level: Level = "ok"
    reason: str = ""
    fix: str = ""
    lasting: bool = False


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer of `stackrace doctor`."""

    schema: Literal["stackrace.health/1"] = HEALTH_SCHEMA
    exit_code: int
    checks: tuple[Check, ...]
    cells: tuple[HealthCell, ...]
    facts: Facts
