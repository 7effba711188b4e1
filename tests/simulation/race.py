"""Races that never ran: times drawn from noise like that of real machines, in real tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
import pandas as pd
from scipy import stats

from orchestrator.merge import merge
from orchestrator.paired import families, intervals
from orchestrator.verdict import judge
from tests import factories

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.model.names import State

Noise = Literal["normal", "bimodal", "drifting"]
NOISES: Final[tuple[Noise, ...]] = get_args(Noise)


def table(*, cases: int, rounds: int) -> pd.DataFrame:
    """The merged table of a race of two arms, before anything is known about its times."""
    plan = factories.plan(
        environments=["tf114", "tf20"],
        forms=[("tf.keras", "graph")],
        cases=[factories.case(data=f"d{number}") for number in range(cases)],
        rounds=rounds,
    )
    return merge([(plan, factories.measured(plan, lambda _: 0.01))])


def timed(
    frame: pd.DataFrame,
    random: np.random.Generator,
    *,
    noise: Noise,
    ratio: float | NDArray[np.float64] = 1.0,
) -> pd.DataFrame:
    """The table with process medians drawn anew; tf20 takes `ratio` times as long.

    `ratio`: one for all, or one a case, in the order of the table.

    Log time = process effect (sd 2%; bimodal: a quarter of the processes 6% more) + what 30 noisy
    iterations leave in a median (sd 1%) + drift (a random walk of 1% a process, in the order in
    which they ran).
    """
    count = len(frame)
    log_s = random.normal(0, 0.01, count) + random.normal(0, 0.02, count)
    if noise == "bimodal":
        log_s += 0.06 * (random.random(count) < 0.25)
    if noise == "drifting":
        order = np.argsort(frame["started_s"].to_numpy(dtype=float))
        log_s[order] += np.cumsum(random.normal(0, 0.01, count))
    case, names = pd.factorize(frame["case"])
    ratios = np.broadcast_to(ratio, len(names))[case]
    log_s += np.where(frame["environment"] == "tf20", np.log(ratios), 0.0)
    return frame.assign(median_s=0.01 * np.exp(log_s))


def log_ratios(frame: pd.DataFrame) -> NDArray[np.float64]:
    """(cases, rounds): tf20 over tf114. The table goes by round, case and arm, tf114 first."""
    seconds = frame["median_s"].to_numpy(dtype=float).reshape(frame["round"].max(), -1, 2)
    ratios: NDArray[np.float64] = np.log(seconds[:, :, 1] / seconds[:, :, 0]).T
    return ratios


def states(frame: pd.DataFrame, *, threshold: float = 0.02) -> list[State]:
    """The verdict on every case of one table: the statistics alone, a hundred times faster.

    That this is what `compare` says has a test of its own.
    """
    found = intervals.estimate(log_ratios(frame), alpha=0.05)
    count = len(found.p)
    q = families.corrected(found, ["version"] * count, np.ones(count, dtype=bool))
    return [
        judge.state(low=low, high=high, q=each, threshold=threshold, alpha=0.05)[0]
        for low, high, each in zip(found.low, found.high, q, strict=True)
    ]


def called(frame: pd.DataFrame) -> NDArray[np.bool_]:
    """Which cases of one table are `faster` or `slower`."""
    return np.array([state in {"faster", "slower"} for state in states(frame)])


def called_plainly(frame: pd.DataFrame, level: float) -> NDArray[np.bool_]:
    """The same by Benjamini and Hochberg's correction alone, at this level."""
    found = intervals.estimate(log_ratios(frame), alpha=0.05)
    beyond = (found.low > 1.02) | (found.high < 1 / 1.02)
    called: NDArray[np.bool_] = beyond & (stats.false_discovery_control(found.p) < level)
    return called
