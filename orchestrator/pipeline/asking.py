"""How a user asks again for what recorded runs measured."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from orchestrator import kernel
from orchestrator.config import DEFAULT_THRESHOLD
from orchestrator.model.advice import Asked
from orchestrator.workload import ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.plan import Plan, PlannedEnvironment


def asked(plans: Sequence[Plan], threshold: float) -> Asked:
    """From what their plans keep; where a workload file is, the user knows.

    `threshold`: with which they are judged now.
    """
    environments = {item.identifier: item for plan in plans for item in plan.environments}
    workloads = {item.name: item for plan in plans for item in plan.workloads}
    extra = dict.fromkeys(name for item in environments.values() for name in item.extra)
    ours = {item.backend for item in environments.values() if not item.source}
    return Asked(
        environments={name: _named(item) for name, item in environments.items()},
        workloads=tuple(
            item.name if item.entry == ENTRY else item.entry for item in workloads.values()
        ),
        options=(
            *(f"--with={name}" for name in extra),
            *(["--backend=container"] if "container" in ours else []),
            *_again(plans, threshold),
        ),
    )


def _again(plans: Sequence[Plan], threshold: float) -> Iterator[str]:
    """The cores that all of them were bound to, and what is judged otherwise than by default."""
    pins = {plan.pin for plan in plans}
    if len(pins) == 1 and any(pins):
        yield f"--pin={kernel.text(pins.pop())}"
    if threshold != DEFAULT_THRESHOLD:
        yield f"--threshold={Decimal(repr(threshold)):f}"


def _named(item: PlannedEnvironment) -> tuple[str, ...]:
    name = item.spec or item.lock or item.identifier
    if not item.source:
        return (name,)
    option = "--image" if item.backend == "container" else "--python"
    return name, f"{option}={name}={item.source}"
