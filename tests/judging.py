"""Races with literal times, merged and compared: what the tests of the verdict look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator.merge import merge
from orchestrator.verdict import compare
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.comparison import Comparison, Contrast
    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record

REFERENCE = "tf114/tf.keras/graph"
GRAPH = "tf20/tf.keras/graph"
EAGER = "tf20/tf.keras/eager"


def verdict(plan: Plan, records: Sequence[Record], **options: Any) -> Comparison:  # noqa: ANN401
    """Merge and compare one run, at a threshold of 2% unless said otherwise."""
    environments = [item.identifier for item in plan.environments]
    frame = merge([(plan, records)])
    return compare(frame, environments=environments, **({"threshold": 0.02} | options))


def pair(rounds: int = 6, **facts: Any) -> Plan:  # noqa: ANN401
    """Two arms of one case: tf114 and tf20, both tf.keras in graph mode."""
    return factories.plan(forms=[("tf.keras", "graph")], rounds=rounds, **facts)


def raced(ratios: Sequence[float], **options: Any) -> Contrast:  # noqa: ANN401
    """The only contrast of a run in which tf20 takes these multiples of tf114, round by round."""
    plan = pair(rounds=len(ratios))
    records = factories.measured(
        plan, factories.by_arm({REFERENCE: [0.01], GRAPH: [0.01 * ratio for ratio in ratios]})
    )
    (contrast,) = verdict(plan, records, **options).contrasts
    return contrast


def between(found: Comparison, kind: str, candidate: str, reference: str) -> Contrast:
    """The one contrast of these two arms."""
    (contrast,) = (
        item
        for item in found.contrasts
        if (item.kind, item.candidate.arm, item.reference.arm) == (kind, candidate, reference)
    )
    return contrast
