"""How long a selection will measure: rough, nobody knows the user's machine beforehand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from orchestrator.errors import UsageError
from orchestrator.grid import knobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.cell import Case
    from orchestrator.model.grid import Grid, Selection
    from orchestrator.model.plan import Limits

# Starting Python, importing TensorFlow, building, first call: rough, from two shared cores.
START_S: Final = 4.0
BUILD_S: Final = 0.5  # of that, what a life cycle does again
STEPS_A_LIFE: Final = 10
MOST_JOBS: Final = 1_000_000
CALLS_AT_LEAST: Final = 5  # a warm-up, three timed, and the outputs


def estimate_s(grid: Grid, selection: Selection, *, environments: int, limits: Limits) -> float:
    """Seconds of measuring; of a user's own model all that its processes may take."""
    a_round = sum(_job_s(grid, case, limits) for case in selection.cases)
    return a_round * selection.arms(environments) * selection.rounds


def check_size(jobs: int, estimate_s: float) -> None:
    """UsageError for more jobs than anybody waits for, and than a plan can hold."""
    if jobs > MOST_JOBS:
        raise UsageError(
            f"No run is that long: {jobs} jobs, about {estimate_s / 86400:.0f} days of measuring.",
            fix="A verdict needs 5 rounds at least, and 20 show differences of a few percent.",
        )


def too_long(grid: Grid, selection: Selection, limits: Limits) -> dict[str, float]:
    """Sizes that will hardly fit a job's limit -> the seconds that one would need, roughly.

    A job needs a warm-up call and at least three timed ones after its first.
    """
    needed: dict[str, float] = {}
    for case in selection.cases:
        if (each := _call_s(grid, case)) is not None:
            needed[case.size] = max(needed.get(case.size, 0.0), each * CALLS_AT_LEAST)
    return {size: seconds for size, seconds in needed.items() if seconds > limits.job_s}


def _job_s(grid: Grid, case: Case, limits: Limits) -> float:
    each = _call_s(grid, case)
    if each is None:
        return START_S + limits.job_s
    # The first call is one more.
    return START_S + each + min(case.iterations * each, limits.job_s)


def _call_s(grid: Grid, case: Case) -> float | None:
    """Seconds a timed call; None for a user's own model."""
    each = grid.seconds.get(case.size)
    if each is None:
        return None
    each *= grid.factors.get(case.method, 1.0) * grid.factors.get(case.input, 1.0) * _larger(case)
    return STEPS_A_LIFE * each + BUILD_S if case.method == "life_cycle" else each


def _larger(case: Case) -> float:
    """How many times the work is that of the case without knobs: by its numbers alone."""
    if not case.knobs:
        return 1.0
    rows = _mean(
        [int(n) for n in case.knobs.get("batch_size", str(case.batch_shape[0])).split(",")]
    )
    sample = _mean([math.prod(s) for s in knobs.shapes(case.knobs) or [case.batch_shape[1:]]])
    calls = int(case.knobs.get("batches", "1")) if case.method in {"fit", "evaluate"} else 1
    return rows * sample / math.prod(case.batch_shape) * calls


def _mean(values: Sequence[int]) -> float:
    """Importing `statistics` would take a tenth of what `list` takes in all."""
    return sum(values) / len(values)
