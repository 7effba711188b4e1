"""In what runs and machines differ, field by field, and what each difference forbids."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

from orchestrator.model.comparability import Difference
from orchestrator.model.matrix import title

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from orchestrator.model.comparability import Grade
    from orchestrator.model.names import Device
    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Host, Record

    Run = tuple[Plan, Sequence[Record]]

GRADES: Final[tuple[Grade, ...]] = ("blocking", "no_verdict", "warning")
NOT_TOLD: Final = "not told"
MACHINE: Final = "machine"
# The parts of a case that its name does not say; without any of them equal it is another case.
CASE: Final = ("batch_shape", "batches", "iterations", "warmup", "parameters")
_GIB: Final = 2**30
_NAMED: Final = 3  # subjects of one difference that are named
_MINOR: Final = 2  # parts of a Python version whose change may change which wheels there are


class _Found:
    """Values of each field as they are seen, and where; a subject is what the field is one of."""

    def __init__(self) -> None:
        self._fields: dict[tuple[Grade, str], dict[str, dict[str, dict[str, None]]]] = {}

    def note(self, grade: Grade, field: str, value: object, place: str, *, of: str = "") -> None:
        values = self._fields.setdefault((grade, field), {}).setdefault(of, {})
        values.setdefault(_text(value), {})[place] = None

    def differences(self) -> Iterator[Difference]:
        """Those with more than one value; subjects that have the same values are told as one."""
        for (grade, field), subjects in self._fields.items():
            groups: dict[tuple[tuple[str, tuple[str, ...]], ...], list[str]] = {}
            for subject, values in subjects.items():
                if len(values) > 1:
                    key = tuple((value, tuple(places)) for value, places in values.items())
                    groups.setdefault(key, []).append(subject)
            for key, members in groups.items():
                yield Difference(grade=grade, field=_field(field, members), values=dict(key))


def differences(runs: Iterable[Run]) -> tuple[Difference, ...]:
    """Every field in which these runs, or the machines of one run, differ; the gravest first.

    What says nothing about times is not looked at: names of nodes, UUIDs, clocks of the moment.
    """
    runs = list(runs)
    found = _Found()
    for plan, records in runs:
        _note_meanings(found, plan)
        _note_guests(found, plan, records)
        _note_surroundings(found, plan)
        _note_machines(found, plan, records)
    _note_loads(found, runs)
    every = _ranked(found)
    # The key is a digest: it is told where nothing else says in what the machines differ.
    known = any(item.grade == "no_verdict" and item.field != MACHINE for item in every)
    return tuple(item for item in every if not (known and item.field == MACHINE))


def blocking(runs: Iterable[Run]) -> tuple[Difference, ...]:
    """Only those with which nothing may stand in one table."""
    found = _Found()
    for plan, records in runs:
        _note_meanings(found, plan)
        _note_guests(found, plan, records)
    return _ranked(found)


def _ranked(found: _Found) -> tuple[Difference, ...]:
    return tuple(sorted(found.differences(), key=lambda item: GRADES.index(item.grade)))


def _note_meanings(found: _Found, plan: Plan) -> None:
    """What the names of a plan stand for: one name means one thing in every run."""
    for item in plan.environments:
        minor = ".".join(item.python.split(".")[:_MINOR])
        found.note(
            "blocking",
            "versions",
            f"{title(item)}, Python {minor}",
            plan.run_id,
            of=item.identifier,
        )
    for case in plan.cases:
        for name in CASE:
            found.note("blocking", name, getattr(case, name), plan.run_id, of=case.name)
    for workload in plan.workloads:
        found.note(
            "blocking", "workload digest", workload.digest[:12], plan.run_id, of=workload.name
        )


def _note_guests(found: _Found, plan: Plan, records: Sequence[Record]) -> None:
    """Results of changed code are never compared."""
    for digest in {plan.guest_digest: None} | {record.guest_digest: None for record in records}:
        found.note("blocking", "guest_digest", digest, plan.run_id)


def _note_surroundings(found: _Found, plan: Plan) -> None:
    """How each environment was made."""
    for item in plan.environments:
        minor = ".".join(item.python.split(".")[:_MINOR])
        facts = {
            f"Python {minor}": item.python,  # another minor version is another environment
            "lock": item.lock_digest[:12],
            "backend": item.backend,
            "source": item.source,
            "image": (item.image_digest or "")[:19],
        }
        for name, value in facts.items():
            found.note("warning", name, value or NOT_TOLD, plan.run_id, of=item.identifier)


def _note_machines(found: _Found, plan: Plan, records: Sequence[Record]) -> None:
    """Where each process ran; what makes up the key of a machine is graver than the rest."""
    hosts = _hosts(records)
    nodes = {host.node for _, host in hosts}
    for device, host in hosts:
        place = _place(plan, host, nodes)
        # Of one machine, cases on its GPU have another key than those that leave it alone.
        found.note("no_verdict", MACHINE, host.machine, place, of=_ON[device])
        for name, value in _identity(host).items():
            found.note("no_verdict", name, value, place)
        told = {
            "kernel": host.kernel,
            "governor": host.governor or NOT_TOLD,
            "turbo": host.turbo or NOT_TOLD,
            "thread variables": host.facts.get("threads", {}),
            "pinned cores": host.facts.get("pin", []),
        }
        for name, value in told.items():
            found.note("warning", name, value, place)
    for engine in {record.engine.get("name", "") for record in records} - {""}:
        found.note("warning", "engine", engine, plan.run_id)


_ON: Final[dict[Device, str]] = {"cpu": "", "gpu": "GPU cases"}


def _hosts(records: Sequence[Record]) -> list[tuple[Device, Host]]:
    """Each machine once a device, as often as it changed."""
    known: dict[tuple[str, str, Device], list[Host]] = {}
    for record in records:
        of = (record.host.machine, record.host.node, record.case.device)
        same = known.setdefault(of, [])
        if record.host not in same:
            same.append(record.host)
    return [(device, host) for (*_, device), hosts in known.items() for host in hosts]


def _place(plan: Plan, host: Host, nodes: set[str]) -> str:
    """The run; where it had several machines, also which of them."""
    return plan.run_id if len(nodes) == 1 else f"{plan.run_id} on {host.node}"


def _identity(host: Host) -> dict[str, object]:
    """What the key of a machine is made of: its GPUs as well, where it stands for them."""
    found: dict[str, object] = {
        "CPU": host.cpu,
        "cores": host.cores,
        "memory": f"{round(host.memory_bytes / _GIB)} GiB",
    }
    if not host.gpus:
        return found
    gpus = sorted(host.gpus, key=lambda gpu: str(gpu.get("name")))
    return found | {
        "GPU": [gpu.get("name") for gpu in gpus],
        "GPU memory": [f"{round(gpu.get('memory_bytes', 0) / _GIB)} GiB" for gpu in gpus],
        "GPU power limit": [_watts(gpu.get("power_limit_w")) for gpu in gpus],
        "GPU driver": sorted({str(gpu.get("driver")) for gpu in gpus}),
    }


def _note_loads(found: _Found, runs: Sequence[Run]) -> None:
    """How busy the machines were, where that differs by more than all of their cores.

    A worker is load itself, and not every model uses as many cores: less is no difference.
    """
    loads: dict[str, float] = {}
    cores = 1
    for plan, records in runs:
        nodes = {record.host.node for record in records}
        by_place: dict[str, list[float]] = {}
        for record in records:
            if record.before is not None:
                place = _place(plan, record.host, nodes)
                by_place.setdefault(place, []).append(record.before.load_1m)
                cores = max(cores, record.host.cores)
        loads |= {place: statistics.median(values) for place, values in by_place.items()}
    if loads and max(loads.values()) - min(loads.values()) > cores:
        for place, load in loads.items():
            found.note("warning", "load", f"{load:.1f}", place)


def _field(field: str, subjects: Sequence[str]) -> str:
    """`kernel`, `batches of small-small/numpy/fit and 3 more`."""
    named = [subject for subject in subjects[:_NAMED] if subject]
    if not named:
        return field
    more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
    return f"{field} of {', '.join(named)}{more}"


def _watts(value: float | None) -> str:
    return NOT_TOLD if value is None else f"{value:.0f} W"


def _text(value: Any) -> str:  # noqa: ANN401 - whatever a record holds
    """As people read it."""
    if isinstance(value, dict):
        value = [f"{name}={one}" for name, one in sorted(value.items())]
    if isinstance(value, (list, tuple)):
        return ", ".join(str(one) for one in value) or "none"
    return "none" if value is None else str(value)
