"""How a user asks again for what recorded runs measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator import kernel
from orchestrator.config import DEFAULT_THRESHOLD
from orchestrator.model.advice import Asked
from orchestrator.workload import ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.plan import Plan, PlannedEnvironment


def asked(plans: Sequence[Plan]) -> Asked:
    """From what their plans keep; where a workload file is, the user knows."""
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
            *_alike(plans),
        ),
    )


def _alike(plans: Sequence[Plan]) -> Iterator[str]:
    """What was asked of all of them, and changes what is measured or judged."""
    pins = {plan.pin for plan in plans}
    thresholds = {plan.threshold for plan in plans}
    if len(pins) == 1 and any(pins):
        yield f"--pin={kernel.text(pins.pop())}"
    if len(thresholds) == 1 and thresholds != {DEFAULT_THRESHOLD}:
        yield f"--threshold={thresholds.pop():.6g}"


def _named(item: PlannedEnvironment) -> tuple[str, ...]:
    name = item.spec or item.lock or item.identifier
    if not item.source:
        return (name,)
    option = "--image" if item.backend == "container" else "--python"
    return name, f"{option}={name}={item.source}"
