"""What is said of whole tables: findings, changed machines, heat, and medians after warm-up.

Everything goes through the real table. Seeds are fixed: a test passes always or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from orchestrator import control, quantities, reproducibility
from orchestrator.merge import merge
from orchestrator.paired import intervals
from orchestrator.verdict import compare
from tests import factories
from tests.simulation import race, values

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.model.plan import Plan
    from orchestrator.model.quantities import Finding
    from orchestrator.model.record import Record

GRIDS = 5 * values.TIMES
RUNS = 200 * values.TIMES


def planned(*, cases: int, rounds: int) -> Plan:
    """A race of two arms."""
    return factories.plan(
        environments=["tf114", "tf20"],
        forms=[("tf.keras", "graph")],
        cases=[factories.case(data=f"d{number}") for number in range(cases)],
        rounds=rounds,
    )


def records(plan: Plan, log_s: NDArray[np.float64]) -> list[Record]:
    """Records of processes with these iterations, ten of them warm-up, in the plan's order."""
    seconds = np.exp(log_s).tolist()
    memory = (100_000_000, *(130_000_000,) * 21)
    return [
        factories.record(
            plan,
            job,
            at=place * factories.JOB_S,
            result=factories.result(
                seconds[place][10:],
                warmup_s=tuple(seconds[place][:10]),
                rss_bytes=memory,
                retraces=0,
            ),
        )
        for place, job in enumerate(plan.jobs)
    ]


@pytest.mark.parametrize("rounds", [3, 6])
def test_a_grid_without_faults_has_no_findings(rounds: int) -> None:
    """100 cells of noise that depends on itself: one grid in a hundred at most has a finding."""
    plan = planned(cases=50, rounds=rounds)
    found: list[Finding] = []
    for seed in range(GRIDS):
        log_s = values.noisy(0.6, series=len(plan.jobs), seed=seed)[: len(plan.jobs)]
        frame = merge([(plan, records(plan, log_s))])
        found += quantities.of(frame).findings
        assert {"equal"} == {
            item.state for item in reproducibility.of(frame).items if item.scope == "processes"
        }
    assert len(found) <= 0.01 * GRIDS


def test_warm_up_of_any_length_leaves_the_interval_right() -> None:
    """A version against itself, each process with a warm-up of its own: 5% of intervals miss 1."""
    plan = planned(cases=100, rounds=10)
    random = np.random.default_rng(2)
    missed = []
    for seed in range(4 * values.TIMES):
        count = len(plan.jobs)
        log_s = values.noisy(0.3, series=count, seed=seed)[:count]
        log_s += random.normal(0, 0.02, (count, 1))
        length = random.integers(0, 120, (count, 1))
        log_s += np.where(np.arange(values.ITERATIONS) < length, np.log(1.5), 0)
        frame = merge([(plan, records(plan, log_s))])
        found = intervals.estimate(race.log_ratios(frame), alpha=0.05)
        missed += list((found.low > 1) | (found.high < 1))
        # A twentieth of what the warm-up adds to a plain median.
        assert np.abs(np.log(frame["median_s"] / np.exp(-5)).mean()) < 0.005
    assert 0.02 <= np.mean(missed) <= 0.08


def controlled(frame: pd.DataFrame, log_s: NDArray[np.float64]) -> pd.DataFrame:
    """The table with these readings of the control: one before each job, and one after the last."""
    order = np.argsort(frame["started_s"].to_numpy(dtype=float))
    both = np.empty((len(frame), 2))
    both[order, 0], both[order, 1] = np.exp(log_s[:-1]), np.exp(log_s[1:])
    return frame.assign(control_before_s=both[:, 0], control_after_s=both[:, 1])


@pytest.fixture(scope="module")
def raced() -> pd.DataFrame:
    """Ten rounds of two cases: 41 readings of the control."""
    return race.table(cases=2, rounds=10)


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize("rounds", [5, 10, 20])
def test_a_machine_of_one_speed_is_not_told(rounds: int, rho: float) -> None:
    """One run in a hundred at most has a block that is said to differ, however short it is."""
    raced = race.table(cases=1, rounds=rounds)
    readings = values.noisy(rho, series=RUNS, iterations=len(raced) + 1, scatter=0.02)
    told = [bool(control.changed(controlled(raced, log_s))) for log_s in readings[:RUNS]]
    assert np.mean(told) <= 0.01


def test_one_stray_reading_is_not_told(raced: pd.DataFrame) -> None:
    """It stands for two jobs of a block, and is one of three readings of it all the same."""
    (log_s,) = values.noisy(0.3, series=1, iterations=len(raced) + 1, scatter=0.01)[:1]
    log_s[21] += np.log(1.4)  # in the middle of the eleventh block
    assert () == control.changed(controlled(raced, log_s))


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_a_machine_that_was_throttled_half_way_is_told(raced: pd.DataFrame, rho: float) -> None:
    """A fifth slower from the middle on: such a run is told, with its blocks."""
    readings = values.noisy(rho, series=RUNS, iterations=len(raced) + 1, scatter=0.02)
    told = 0
    for log_s in readings[:RUNS:4]:
        slowed = log_s + np.where(np.arange(len(log_s)) >= len(log_s) / 2, np.log(1.2), 0)
        found = control.changed(controlled(raced, slowed))
        told += bool(found)
        if found:
            assert 8 <= len(found) <= 12
            ratios = [max(item.ratio, 1 / item.ratio) for item in found]
            assert 1.2 == pytest.approx(np.median(ratios), rel=0.05)
    assert told >= 0.95 * RUNS / 4


def test_one_disturbed_block_is_told(raced: pd.DataFrame) -> None:
    """By its place, with how much slower the machine was."""
    (log_s,) = values.noisy(0.3, series=1, iterations=len(raced) + 1, scatter=0.01)[:1]
    log_s[10:13] += np.log(1.4)  # around both jobs of the sixth block
    (found,) = control.changed(controlled(raced, log_s))
    ordered = raced.sort_values("started_s")
    assert (ordered["case"].iloc[10], 3) == (found.case, found.round)
    assert 1.4 == pytest.approx(found.ratio, rel=0.05)
    assert () == control.changed(controlled(raced, log_s), spreads={"m0": 0.2})


def test_without_readings_nothing_is_told(raced: pd.DataFrame) -> None:
    """A run of before there was a control, or whose clock died."""
    assert () == control.changed(raced)


def overheated(plan: Plan, throttle: list[str] | None, attempt: int = 1) -> list[Record]:
    """Every process on tf20 takes half as long again in the end; its GPU says so, or nothing."""
    made = []
    for place, job in enumerate(plan.jobs):
        hot = job.arm.environment == "tf20"
        seconds = np.exp(values.noisy(0.3, series=1, seed=place)[0])
        rising = seconds * np.linspace(1, 1.5, len(seconds)) if hot else seconds
        state: dict[str, object] = {"throttle": None if throttle is None else []}
        told = throttle if hot and throttle else []
        gpu = {"uuid": "GPU-1", "before": state, "after": state, "throttle": told}
        made.append(
            factories.record(
                plan,
                job,
                attempt=attempt,
                at=(100 * attempt + place) * factories.JOB_S,
                result=factories.result(rising.tolist()),
                outcome="invalid" if told else "ok",
                kind="throttled",
                message="The GPU slowed itself down while it was measured",
                engine={"gpus": [gpu]},
            )
        )
    return made


@pytest.fixture
def on_gpus() -> Plan:
    """Six rounds of two versions on a GPU."""
    return factories.plan(
        environments=[factories.environment(name, variant="gpu") for name in ("tf114", "tf20")],
        forms=[("tf.keras", "graph")],
        cases=[factories.case(device="gpu")],
        rounds=6,
    )


def test_heat_is_told_instead_of_a_version(on_gpus: Plan) -> None:
    """`Training gets slower and slower` was the heat: three times in a row, and no number."""
    made = [
        record
        for attempt in (1, 2, 3)
        for record in overheated(on_gpus, ["thermal slowdown"], attempt)
    ]
    frame = merge([(on_gpus, made)])
    comparison = compare(frame, environments=["tf114", "tf20"], threshold=0.02, kinds=["version"])
    (contrast,) = comparison.contrasts
    assert (None, None) == (contrast.ratio, contrast.state)
    assert "The GPU slowed itself down" in (contrast.reason or "")


def test_heat_that_a_gpu_does_not_tell_is_seen_in_its_times(on_gpus: Plan) -> None:
    """The arm whose times rise is named; the other one is not."""
    found = quantities.of(merge([(on_gpus, overheated(on_gpus, None))])).findings
    told = [(item.arm, item.shown) for item in found if item.kind == "throttle unknown"]
    assert [("tf20/tf.keras/graph", 6)] == told
