"""Inside of a measurement on real TensorFlow: which path ran, what it computed, what took time."""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

import orchestrator
from orchestrator import matrix, process
from orchestrator.model import codec
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request
from orchestrator.model.result import RESULT_SCHEMA, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.environments.venv import VenvEnvironment

    Run = Callable[..., Result]

pytestmark = pytest.mark.real_tensorflow

ROOT = Path(orchestrator.__file__).parent.parent
# A hundredth cannot be seen where others take turns on the same cores.
BUSY = 1.5
LIMITS = Limits(first_call_s=300.0, job_s=300.0)


@pytest.fixture
def run(
    request: pytest.FixtureRequest, environments: Mapping[str, VenvEnvironment], tmp_path: Path
) -> Run:
    """The result of one process, by the environment's name and the request's fields."""
    rows, numbers = matrix.load().rows, itertools.count()

    def started(identifier: str, **fields: Any) -> Result:  # noqa: ANN401
        known = environments
        if identifier not in known:
            known = request.getfixturevalue("keras3")
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        row = rows[identifier]
        plain: dict[str, Any] = {"action": "measure", "iterations": 12, "warmup": 3}
        asked = Request(
            environment=identifier,
            expected=Expected(tensorflow=row.tensorflow, keras=row.keras),
            phase_path=str(folder / "phases"),
            **(plain | fields),
        )
        execution = known[identifier].run(asked, work=folder, log=folder / "log", limits=LIMITS)
        assert execution.result is not None, execution
        result = codec.decode(execution.result, Result, source=folder / "log", schema=RESULT_SCHEMA)
        assert result.outcome == "ok", result.failure
        return result

    return started


def file_with(folder: Path, text: str) -> str:
    """The path of a workload file with this text."""
    path = folder / "mine.py"
    path.write_text(dedent(text), encoding="utf-8")
    return str(path)


GENERATED = (
    "training.fit > training.fit_generator > training_generator.model_iteration > "
    "training.train_on_batch"
)
EAGERLY = (
    "training.train_on_batch > training_v2_utils.train_on_batch > training_eager.train_on_batch"
)
ARRAYS, LIKE = "training_arrays.model_iteration", "training_arrays.ArrayLikeTrainingLoop"


@pytest.mark.parametrize(
    ("identifier", "mode", "source", "method", "executed", "loop", "adapter", "traces"),
    [
        (
            "tf114",
            "graph",
            "numpy",
            "train_on_batch",
            "session",
            "training.train_on_batch",
            None,
            1,
        ),
        ("tf114", "graph", "numpy", "fit", "session", f"training.fit > {ARRAYS}", None, 1),
        ("tf114", "eager", "numpy", "fit", "function", f"training.fit > {ARRAYS}", None, 1),
        (
            *("tf114", "eager", "generator", "fit", "function"),
            GENERATED,
            *(None, 1),
        ),
        ("tf114", "eager", "numpy", "call", "op by op", "base_layer.__call__", None, None),
        (
            *("tf20", "graph", "numpy", "fit", "session"),
            f"training.fit > {LIKE}.fit > {ARRAYS}",
            *(None, 1),
        ),
        (
            *("tf20", "graph", "numpy", "predict", "session"),
            f"training.predict > {LIKE}.predict > {ARRAYS}",
            *(None, 1),
        ),
        (
            *("tf20", "eager", "numpy", "train_on_batch", "op by op"),
            EAGERLY,
            *(None, None),
        ),
        (
            *("tf20", "eager", "numpy", "fit", "function"),
            "training.fit > training_v2.Loop.fit > training_v2.run_one_epoch",
            *("TensorLikeDataAdapter", 2),
        ),
        (
            *("tf20", "eager", "dataset", "evaluate", "function"),
            "training.evaluate > training_v2.Loop.evaluate > training_v2.run_one_epoch",
            *("DatasetAdapter", 1),
        ),
        (
            *("tf20", "eager", "numpy", "custom_loop_function", "function"),
            "def_function.__call__",
            *(None, 2),
        ),
        (
            *("tf218", "eager", "numpy", "fit", "function"),
            "tensorflow.trainer.fit > tensorflow.trainer.make_train_function",
            *("ArrayDataAdapter", 1),
        ),
    ],
)
def test_which_path_ran(
    run: Run,
    *,
    identifier: str,
    mode: str,
    source: str,
    method: str,
    executed: str,
    loop: str,
    adapter: str | None,
    traces: int | None,
) -> None:
    """Each version takes the way that its source says, and the result tells it."""
    result = run(identifier, mode=mode, input=source, method=method)
    assert (executed, loop, adapter) == (
        result.executed_as,
        result.training_loop,
        result.data_adapter,
    )
    assert traces == result.traces
    assert result.retraces == (None if traces is None else 0)


def test_shapes_that_vary_are_traced_anew(run: Run) -> None:
    """A function is made once for each of the shapes that take turns, and not in the others."""
    shapes = {"knobs": {"shape": "20x30,24x30,28x30,32x30"}, "method": "call_function"}
    result = run("tf20", mode="eager", warmup=1, **shapes)
    assert result.traces == 4
    assert result.retraces == 2  # the first call and the one that is watched had the others


@pytest.mark.parametrize("model", ["small", "lstm"])
def test_same_weights_compute_the_same(run: Run, model: str) -> None:
    """Versions that define a layer alike answer alike; a gate that was redefined is seen."""
    shape = {"small": (8, 140, 30), "lstm": (8, 10, 8)}[model]
    same = {"knobs": {"weights": "same"}, "model": model, "batch_shape": shape, "iterations": 1}
    found = {}
    for identifier, mode in (("tf114", "graph"), ("tf20", "eager"), ("tf218", "eager")):
        before = run(identifier, mode=mode, **same).outputs_before
        assert before is not None
        assert len(before.values) == 8
        found[identifier] = before.values
    assert found["tf218"] == pytest.approx(found["tf20"], rel=1e-4)
    # TensorFlow 1's LSTM has a hard sigmoid for its gates.
    alike = found["tf114"] == pytest.approx(found["tf20"], rel=1e-4)
    assert alike is (model == "small")


SLEEPY = """
import time


def build_model(keras, batch_shape):
    class Slow(keras.layers.Layer):
        def call(self, inputs):
            time.sleep({layer})
            return inputs

    inputs = keras.layers.Input(batch_shape=(None, *batch_shape[1:]))
    outputs = keras.layers.Dense(1)(Slow()(inputs))
    model = keras.models.Model(inputs, outputs)
    model.compile("sgd", "mse"{compiled})
    time.sleep({build})
    return model


def make_data(batch_shape, rng):
    return rng.randn(batch_shape[0], 8), rng.randn(batch_shape[0], 1)


def rows(x, y):
    while True:
        time.sleep({generator})
        yield x, y


def step(model, batch):
    {step}
"""
FIT = {
    "tf114": "model.fit_generator(rows(*batch), steps_per_epoch=10, verbose=0)",
    "tf20": "model.fit(rows(*batch), steps_per_epoch=10, verbose=0)",
}


def sleepy(folder: Path, **planted: object) -> dict[str, Any]:
    """A request to profile a model of three sleeps."""
    plain = {"layer": 0, "build": 0, "generator": 0, "compiled": ""}
    text = SLEEPY.format(**(plain | planted))
    return {
        "action": "profile",
        "workload": file_with(folder, text),
        "input": "given",
        "method": "step",
        "batch_shape": (8, 8),
        "trace_folder": str(folder / "trace"),
    }


@pytest.mark.measures
@pytest.mark.parametrize("identifier", ["tf114", "tf20"])
def test_sleeps_in_a_generator_are_data(run: Run, tmp_path: Path, identifier: str) -> None:
    """What a user's generator takes, in whichever thread it runs, counts to the data."""
    asked = sleepy(tmp_path, generator=0.2, step=FIT[identifier])
    profile = run(identifier, mode="eager", iterations=2, **asked).profile
    assert profile is not None
    whole = profile.data + profile.training + profile.other + profile.unattributed
    assert whole == pytest.approx(100, abs=1)
    slept = 100 * 0.2 * 20 / profile.run_s
    assert profile.data == pytest.approx(slept, abs=max(5.0, 100 - slept))
    assert profile.data > 80


@pytest.mark.measures
def test_sleeps_op_by_op_are_training(run: Run, tmp_path: Path) -> None:
    """What a user's layer takes counts to the training, what building takes to the build."""
    asked = sleepy(
        tmp_path,
        layer=0.05,
        build=2,
        compiled=", run_eagerly=True",
        step="model.train_on_batch(*batch)",
    )
    profile = run("tf20", mode="eager", iterations=30, **asked).profile
    assert profile is not None
    slept = {
        root: sum(f.own_s for f in profile.functions if "sleep" in f.name and f.root == root)
        for root in ("build", "training", "data", "other")
    }
    share = {root: 100 * seconds / profile.run_s for root, seconds in slept.items()}
    assert share["training"] == pytest.approx(100 * 30 * 0.05 / profile.run_s, abs=5)
    assert share["build"] == pytest.approx(100 * (2 + 0.05) / profile.run_s, abs=5)
    assert (share["data"], share["other"]) == (0, 0)
    assert profile.training >= share["training"]
    assert profile.build >= share["build"]


@pytest.mark.parametrize(("identifier", "mode"), [("tf114", "graph"), ("tf20", "eager")])
def test_the_frameworks_own_trace(run: Run, tmp_path: Path, identifier: str, mode: str) -> None:
    """Before TensorFlow had its profiler, the statistics of a step are a trace."""
    result = run(identifier, mode=mode, action="profile", trace_folder=str(tmp_path / "trace"))
    assert result.profile is not None
    assert result.profile.trace == "timeline.json"
    trace = json.loads((tmp_path / "trace" / "timeline.json").read_text(encoding="utf-8"))
    assert any("MatMul" in event.get("name", "") for event in trace["traceEvents"])


def test_a_subclassed_model(run: Run, tmp_path: Path) -> None:
    """A model that is built in its first call is measured, and counted after it."""
    text = """
    import tensorflow as tf


    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(3)

        def call(self, inputs):
            return self.dense(inputs)


    def build_model(keras, batch_shape):
        model = Model()
        model.compile("sgd", "mse")
        return model


    def make_data(batch_shape, rng):
        return rng.randn(8, 4).astype("float32"), rng.randn(8, 3)
    """
    asked = {"workload": file_with(tmp_path, text), "input": "given", "knobs": {"weights": "same"}}
    result = run("tf20", mode="eager", **asked)
    assert (result.parameters, result.executed_as) == (15, "op by op")
    assert result.outputs_before is not None
    assert all(value is not None and math.isfinite(value) for value in result.outputs_before.values)


def test_memory_after_every_cycle(run: Run) -> None:
    """A life cycle is read after each, so that few of them tell a leak."""
    result = run("tf114", mode="graph", method="life_cycle", iterations=4, warmup=1)
    assert len(result.rss_bytes) == 1 + 4 + 1
    assert len(result.values_s) == 4


@pytest.mark.measures
def test_harness_costs_nothing(environments: Mapping[str, VenvEnvironment], tmp_path: Path) -> None:
    """Turn and turn about in one process, the harness takes what the origin's bare loop takes."""
    load = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    if load > BUSY and os.environ.get("STACKRACE_REQUIRE_ALL") != "1":
        pytest.skip(f"the machine is busy: load {load:.1f} a core")
    log, told = tmp_path / "log", tmp_path / "told.json"
    python = environments["tf114"].folder / "bin" / "python"
    process.run_tool(
        [python, "-s", ROOT / "tests" / "integration" / "harness_against_bare.py", told],
        env={
            "PATH": os.defpath,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CUDA_VISIBLE_DEVICES": "-1",
        },
        log=log,
        timeout_s=300,
    )
    found = json.loads(told.read_text(encoding="utf-8"))
    assert found["pairs"] >= 20
    assert found["overhead_s"] > 0
    # How narrow the interval gets is the machine's; that it lies beyond would be the harness's.
    assert found["high"] >= 0.98
    assert found["low"] <= 1.02
