"""Reports on runs with literal times: what the tests of the reports look at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from orchestrator import advice, control, quantities, reproducibility
from orchestrator.merge import merge
from orchestrator.model.findings import Findings
from orchestrator.pipeline import beside
from orchestrator.report import markdown, terminal
from orchestrator.report.context import Context
from orchestrator.verdict import compare
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from orchestrator.model.names import ContrastKind
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record

# Figures as seen on two shared cores; every second round is a little slower.
SECONDS = {
    "tf114/tf.keras/graph": 0.00662,
    "tf114/tf.keras/eager": 0.01421,
    "tf20/tf.keras/graph": 0.00761,
    "tf20/tf.keras/eager": 0.02549,
    "tf21/tf.keras/graph": 0.00662,
    "tf21/tf.keras/eager": 0.0033,
}


def usual(job: Job) -> float:
    """SECONDS, with a wobble that differs from arm to arm."""
    place = list(SECONDS).index(job.arm.name)
    return SECONDS[job.arm.name] * (1 + 0.01 * math.cos(math.pi * (job.round + place) / 2))


def scaled(factor: float, *, wobble: float = 0.0) -> Callable[[Job], float]:
    """tf20 takes `factor` times as long as tf114, give or take `wobble` from round to round."""
    return lambda job: (
        0.01 * factor * (1 + wobble * (-1) ** job.round) if job.arm.environment == "tf20" else 0.01
    )


class Reports:
    """Both reports of one run."""

    def __init__(
        self,
        plan: Plan,
        records: Sequence[Record],
        *,
        width: int = 100,
        colour: bool = False,
        reference: str | None = None,
        kinds: Collection[ContrastKind] | None = None,
        **facts: Any,  # noqa: ANN401
    ) -> None:
        frame = merge([(plan, records)])
        identifiers = [item.identifier for item in plan.environments]
        comparison = compare(
            frame,
            environments=identifiers,
            threshold=0.02,
            alpha=plan.alpha,
            reference=reference,
            kinds=kinds,
        )
        context = Context(
            environments=plan.environments,
            rounds=plan.rounds,
            cpu="Test CPU",
            cores=2,
            **facts,
        )
        findings = Findings(
            comparison=comparison,
            advice=advice.of(frame, comparison),
            quantities=quantities.of(frame),
            agreements=reproducibility.of(frame),
            changed=control.changed(frame),
            profiles=beside.profiles([(plan, records)]),
            broken=beside.broken([(plan, records)]),
        )
        self.terminal = terminal.render(frame, findings, context, width=width, colour=colour)
        self.markdown = markdown.render(frame, findings, context)

    @property
    def sentences(self) -> str:
        """The answer: the second paragraph, on one line."""
        return " ".join(self.terminal.split("\n\n")[1].split("\n"))

    def line(self, start: str) -> str:
        """The first line of the terminal that starts so, with single blanks."""
        lines = [" ".join(line.split()) for line in self.terminal.splitlines()]
        return next(line for line in lines if line.startswith(start))


def raced(seconds: Callable[[Job], float], *, rounds: int = 6, **facts: Any) -> Reports:  # noqa: ANN401
    """tf114 and tf20 in both modes, train_on_batch only."""
    plan = factories.plan(rounds=rounds)
    return Reports(plan, factories.measured(plan, seconds), **facts)
