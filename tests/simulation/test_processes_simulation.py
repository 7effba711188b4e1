"""Real processes of the real guest, whose true times are known because they sleep.

The frameworks are the stand-ins of the contract tests: nothing is computed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator import guest, record, run
from orchestrator.engines import local
from orchestrator.environments.existing import ExistingEnvironment
from orchestrator.merge import merge
from orchestrator.model import attempts
from orchestrator.model.record import Load
from orchestrator.store import RunFolder
from orchestrator.verdict import compare
from tests import factories
from tests.simulation.values import TIMES

if TYPE_CHECKING:
    from orchestrator.model.cell import Case
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record
    from tests.simulation.figures import Keep

STUBS = Path(__file__).parent.parent / "contract" / "stubs"
LOAD = Load(load_1m=0.1, available_bytes=2**33)
RATIOS: Final = (1.0, 1.02, 1.05, 1.1, 2.0)
RUNS = 10 * TIMES
ROUNDS = 3  # an interval needs no more, and 300 processes take long enough
ARMS = ("even", "other")
# A process has a speed of its own, as real ones have; it is drawn from its job's key, so that the
# same races are run every time. Sleep ends late by a varying while, so the rest is waited for.
SLEEPING = """
import os, random, time

OWN = random.Random(os.path.basename(os.getcwd())).gauss(0, 0.01)
SECONDS = 0.001 * {ratio} * (1 + OWN)


def build_model(keras, batch_shape):
    model = keras.models.Model(keras.layers.Input(), keras.layers.Dense())
    model.compile(keras.optimizers.Adam(1e-4), "binary_crossentropy")
    return model


def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.randn(batch_shape[0], 1)


def step(model, batch):
    end = time.perf_counter() + SECONDS
    time.sleep(0.7 * SECONDS)
    while time.perf_counter() < end:
        pass
    return 0.5
"""


class Silence:
    """Progress that nobody sees."""

    def start(self, text: str) -> None:
        """Nothing."""

    def advance(self, text: str) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> ExistingEnvironment:
    """This interpreter, with the stand-ins for numpy, TensorFlow and Keras."""
    return ExistingEnvironment(
        identifier="tf20",
        lock_digest="lock-tf20",
        python="3.11",
        path=Path(sys.executable),
        guest=guest.build(tmp_path_factory.mktemp("guest")).path,
        variables={"PYTHONPATH": str(STUBS)},
    )


def planned(case: Case, *, run_id: str, files: tuple[str, ...], rounds: int) -> Plan:
    """The user's own files against each other, in one environment."""
    return factories.plan(
        environments=["tf20"],
        forms=[("tf.keras", "eager")],
        cases=[case],
        rounds=rounds,
        run_id=run_id,
        workloads=files or (None,),
    )


def measured(
    plan: Plan, environment: ExistingEnvironment, results: Path, files: dict[str, str]
) -> list[Record]:
    """The records of a plan worked through by real processes."""
    folder = RunFolder.create(results, plan)
    for name, text in files.items():
        folder.workload_path(name).mkdir(parents=True)
        (folder.workload_path(name) / f"{name}.py").write_text(text, encoding="utf-8")

    def measure(job: Job, *, attempt: int) -> Record:
        case = plan.case(job.case)
        return record.make(
            job,
            case,
            local.execute(
                job,
                case,
                plan=plan,
                attempt=attempt,
                folder=folder,
                environments={"tf20": environment},
            ),
            plan=plan,
            attempt=attempt,
            host=factories.HOST,
            before=LOAD,
            after=LOAD,
            engine=local.FACTS,
        )

    run.work_through(plan.blocks, folder, attempts.by_key([]), measure, Silence())
    return folder.records()


def small(method: str, **facts: object) -> Case:
    """A case that the stand-ins can do, of few iterations."""
    return factories.case(
        method, **{"batch_shape": (2, 3, 4), "iterations": 15, "warmup": 2, **facts}
    )


def test_intervals_of_real_processes_hold_the_true_ratio(
    environment: ExistingEnvironment, tmp_path: Path, keep: Keep
) -> None:
    """From plan to verdict, in 44 of 50 races at least; in 93% of the full size."""
    held: dict[float, list[bool]] = {ratio: [] for ratio in RATIOS}
    for ratio, number in ((ratio, number) for ratio in RATIOS for number in range(RUNS)):
        case = small("step", input="given")
        plan = planned(case, run_id=f"sleep-{ratio}-{number}", files=ARMS, rounds=ROUNDS)
        files = {ARMS[0]: SLEEPING.format(ratio=1), ARMS[1]: SLEEPING.format(ratio=ratio)}
        records = measured(plan, environment, tmp_path, files)
        assert {"ok"} == {made.outcome for made in records}, records[0].failure
        comparison = compare(
            merge([(plan, records)]), environments=["tf20"], threshold=0.02, kinds=["workload"]
        )
        (contrast,) = comparison.contrasts
        assert contrast.low is not None
        assert contrast.high is not None
        held[ratio].append(contrast.low <= ratio <= contrast.high)
    least = 0.93 if TIMES > 1 else 0.88
    for ratio, each in held.items():
        found = f"{sum(each)} of {len(each)}"
        size = f"races of {ROUNDS} rounds, real processes"
        keep(
            "R11",
            f"true ratio {ratio:g}",
            bound=f"{least:.0%} of all ratios together",
            found=found,
            size=size,
        )
    every = [hold for each in held.values() for hold in each]
    assert sum(every) >= least * len(every)


@pytest.mark.parametrize("method", ["train_on_batch", "fit", "predict"])
def test_clock_and_store_cost_less_than_a_microsecond(
    environment: ExistingEnvironment, method: str, tmp_path: Path, keep: Keep
) -> None:
    """Every worker measures it, and leaves it in its result; the median of eleven workers."""
    plan = planned(small(method), run_id="clock", files=(), rounds=11)
    records = measured(plan, environment, tmp_path, {})
    assert {"ok"} == {made.outcome for made in records}, records[0].failure
    costs = [
        made.result.timing.overhead_s for made in records if made.result and made.result.timing
    ]
    assert len(costs) == len(records)
    cost = statistics.median(costs)
    size = f"{len(costs)} workers of 1000 empty calls"
    keep("R10", method, bound="at most 1 µs", found=f"{cost * 1e6:.2f} µs", size=size)
    assert 0 < cost <= 1e-6


def test_nothing_but_the_call_is_timed() -> None:
    """Between two readings of the clock there is one statement, in every loop that times."""
    tree = ast.parse(inspect.getsource(importlib.import_module("workloads.timing")))
    bodies = [
        node.body
        for node in ast.walk(tree)
        if isinstance(node, (ast.For, ast.While, ast.FunctionDef, ast.With))
    ]
    between = []
    for body in bodies:
        told = [ast.unparse(line) for line in body]
        if "start = perf_counter()" in told:
            first, last = told.index("start = perf_counter()"), told.index("end = perf_counter()")
            between.append(told[first + 1 : last])
    assert [["answer = call()"], ["for _ in turns:\n    answer = call()"]] == between
