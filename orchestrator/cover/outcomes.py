"""What became of the combinations of a sweep's processes, counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from orchestrator.model import codec
from orchestrator.model.coverage import Covered, Reason
from orchestrator.model.result import RESULT_SCHEMA, Failure, Result, Swept

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.model.execution import Execution
    from orchestrator.model.names import Api, Mode, Outcome
    from orchestrator.model.request import SweepCell

# No number, and yet nothing is wrong.
KNOWLEDGE = ("ok", "unsupported")


def judge(execution: Execution, cells: Sequence[SweepCell]) -> list[Swept] | None:
    """One outcome a cell, in order; None when the process ended before it could tell.

    A process that was refused as a whole refused each of its cells. One cell that ended its process
    is `crashed`, or `timed_out`.
    """
    found = _result(execution)
    if found is not None and len(found.sweep) == len(cells):
        return list(found.sweep)
    if found is not None and found.failure is not None and found.outcome != "ok":
        return [_swept(cell, found.outcome, found.failure) for cell in cells]
    if len(cells) > 1:
        return None
    outcome: Outcome = "timed_out" if execution.exceeded else "crashed"
    ended = f"signal {execution.signal}" if execution.signal else f"code {execution.exit_code}"
    last = execution.log_tail.strip().splitlines()[-1:]
    message = " ".join([f"Its process ended with {ended}.", *last])
    return [_swept(cell, outcome, Failure(kind="process", message=message)) for cell in cells]


def tally(api: Api, mode: Mode, swept: Iterable[Swept]) -> Covered:
    """The outcomes of one api and mode, and every reason once."""
    every = list(swept)
    reasons: dict[tuple[Outcome, str], list[Swept]] = {}
    for item in every:
        if item.outcome != "ok":
            message = item.failure.message if item.failure else "no reason was given"
            reasons.setdefault((item.outcome, message), []).append(item)
    return Covered(
        api=api,
        mode=mode,
        outcomes=dict(sorted(Counter(item.outcome for item in every).items())),
        reasons=tuple(
            Reason(outcome=outcome, message=message, cells=len(items), example=_name(items[0]))
            for (outcome, message), items in sorted(
                reasons.items(), key=lambda pair: (pair[0][0], -len(pair[1]))
            )
        ),
    )


def failed(covered: Covered) -> list[str]:
    """A line for every reason that is more than a refusal: `tf.keras/eager: failed tiny/...`."""
    return [
        f"{covered.api}/{covered.mode}: {reason.outcome} {reason.example}: {reason.message}"
        for reason in covered.reasons
        if reason.outcome not in KNOWLEDGE
    ]


def _result(execution: Execution) -> Result | None:
    if execution.result is None:
        return None
    return codec.decode(execution.result, Result, source="a sweep's result", schema=RESULT_SCHEMA)


def _swept(cell: SweepCell, outcome: Outcome, failure: Failure) -> Swept:
    return Swept(
        model=cell.model,
        input=cell.input,
        method=cell.method,
        knobs=cell.knobs,
        outcome=outcome,
        failure=failure,
    )


def _name(item: Swept) -> str:
    knobs = "".join(f"+{name}={value}" for name, value in sorted(item.knobs.items()))
    return f"{item.model}/{item.input}/{item.method}{knobs}"
