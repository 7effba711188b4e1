"""The guest with the real TensorFlow: what each pair can do, and how it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from orchestrator import matrix
from orchestrator.model import codec
from orchestrator.model.names import METHOD_GROUPS, Input, Method
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request, SweepCell
from orchestrator.model.result import RESULT_SCHEMA, Iterations, Result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.model.execution import Environment

    Environments = Mapping[str, Environment]

pytestmark = pytest.mark.real_tensorflow

VERSIONS = {
    name: Expected(tensorflow=row.tensorflow, keras=row.keras)
    for name, row in matrix.load().rows.items()
    if name in {"tf114", "tf20", "tf218"}
}
OLD = ("tf114", "tf20")
REFUSALS = (
    "needs a TensorFlow 1 graph",
    "not compatible with eager execution",
    "has no graph mode",
    "has no run_eagerly",
)
LIMITS = Limits(first_call_s=300.0, job_s=300.0)

# How each arm trains with train_on_batch and with fit; None where it is refused.
Executed = Literal["session", "function", "op by op"] | None
EXECUTED: dict[tuple[str, str, str], tuple[Executed, Executed]] = {
    ("tf114", "tf.keras", "graph"): ("session", "session"),
    ("tf114", "tf.keras", "eager"): ("function", "function"),
    ("tf114", "tf.keras", "run_eagerly"): ("op by op", "op by op"),
    ("tf114", "keras", "graph"): ("session", "session"),
    ("tf114", "keras", "eager"): (None, None),
    ("tf20", "tf.keras", "graph"): ("session", "session"),
    ("tf20", "tf.keras", "eager"): ("op by op", "function"),
    ("tf20", "tf.keras", "run_eagerly"): ("op by op", "op by op"),
    ("tf20", "keras", "graph"): ("session", "session"),
    ("tf20", "keras", "eager"): ("function", "function"),
    ("tf20", "keras", "run_eagerly"): (None, None),
    ("tf218", "tf.keras", "graph"): (None, None),
    ("tf218", "tf.keras", "eager"): ("function", "function"),
    ("tf218", "tf_keras", "graph"): ("session", "session"),
}
CELLS = [
    (*arm, source, method, how)
    for arm, both in EXECUTED.items()
    for method, how, source in zip(
        ("train_on_batch", "fit"), both, ("numpy", "dataset"), strict=True
    )
]
INPUTS: tuple[Input, ...] = (
    "numpy",
    "tensor",
    "generator",
    "sequence",
    "dataset",
    "dataset_cached",
    "dataset_prefetch",
)
METHODS: tuple[Method, ...] = tuple(
    method for group in METHOD_GROUPS for method in group if method != "step"
)
# Every method, and every input once at least: what an environment runs as installed is swept whole
# by test_grid_real.
COVER: tuple[SweepCell, ...] = (
    *(
        SweepCell(input=INPUTS[place % len(INPUTS)], method=method)
        for place, method in enumerate(METHODS)
    ),
    # What Keras 2.3.1 cannot do in a graph of TensorFlow 2.
    SweepCell(model="lstm", input="numpy", method="train_on_batch"),
    SweepCell(input="numpy", method="train_on_batch", knobs={"loaded": "yes"}),
)
# Forms whose Keras or whose optimizers need a graph, and that have none.
TRAIN_NOTHING = {("tf114", "keras", "eager"), ("tf114", "tf.python.keras", "run_eagerly")}
AS_INSTALLED = (("tf114", "tf.keras", "graph"), ("tf20", "tf.keras", "eager"))
SWEEPS = [
    (identifier, api, mode)
    for identifier in OLD
    for api in matrix.load().rows[identifier].apis
    for mode in matrix.load().rows[identifier].modes
    if (identifier, api, mode) not in AS_INSTALLED
]


def run(environment: Environment, folder: Path, **fields: Any) -> Result:  # noqa: ANN401
    """The result of one process."""
    work = folder / "work"
    work.mkdir()
    plain: dict[str, Any] = {"action": "measure", "expected": VERSIONS[environment.identifier]}
    request = Request(
        environment=environment.identifier,
        phase_path=str(work / "phases"),
        **(plain | fields),
    )
    log = folder / "log"
    execution = environment.run(request, work=work, log=log, limits=LIMITS)
    assert execution.result is not None, execution
    return codec.decode(execution.result, Result, source=log, schema=RESULT_SCHEMA)


@pytest.mark.parametrize(("identifier", "api", "mode", "source", "method", "executed"), CELLS)
def test_every_cell_measures_or_says_why_not(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    *,
    identifier: str,
    api: str,
    mode: str,
    source: str,
    method: str,
    executed: Executed,
) -> None:
    """Each way to train works, as its version is known to do it, or is refused with a reason."""
    result = run(
        request.getfixturevalue("environments" if identifier in OLD else "keras3")[identifier],
        tmp_path,
        api=api,
        mode=mode,
        input=source,
        method=method,
        iterations=12,
        warmup=3,
        parameters=609,
    )
    if executed is None:
        assert result.outcome == "unsupported"
        assert result.failure is not None
        assert any(text in result.failure.message for text in REFUSALS)
        return
    assert result.outcome == "ok", result.failure
    assert executed == result.executed_as
    assert result.iterations == Iterations(asked=12, done=12)
    assert all(loss is not None and loss > 0 for loss in result.losses)
    assert result.outputs is not None
    assert result.outputs.digest is not None
    assert result.proof is not None
    assert result.proof.device == "cpu"
    assert result.metadata["keras"]["api"] == api


@pytest.mark.parametrize(("identifier", "api", "mode"), SWEEPS)
def test_every_combination_runs_or_says_why_not(
    environments: Environments, tmp_path: Path, identifier: str, api: str, mode: str
) -> None:
    """In one process, what an api and a mode combine with runs, or is refused with a reason."""
    result = run(
        environments[identifier],
        tmp_path,
        action="sweep",
        api=api,
        mode=mode,
        batches=2,
        cells=COVER,
    )
    if result.outcome == "unsupported":
        assert result.failure is not None
        assert any(text in result.failure.message for text in REFUSALS)
        return
    assert result.outcome == "ok", result.failure
    assert len(COVER) == len(result.sweep)
    broken = [cell for cell in result.sweep if cell.outcome not in ("ok", "unsupported")]
    assert [] == broken
    reasons = {cell.failure.message for cell in result.sweep if cell.failure is not None}
    assert all(reason.endswith(".") for reason in reasons)
    trained = {cell.outcome for cell in result.sweep if cell.method in ("train_on_batch", "fit")}
    assert ({"unsupported"} if (identifier, api, mode) in TRAIN_NOTHING else {"ok"}) <= trained


@pytest.mark.parametrize(
    ("model", "lengths", "parameters"),
    [
        ("tiny", (8, 200), 609),
        ("small", (140, 1400), 162_049),
        ("medium", (140, 1400), 3_046_273),
        ("large", (1400, 1600), 41_737_669),
    ],
)
def test_parameters_do_not_depend_on_the_length_of_the_data(
    environments: Environments,
    tmp_path: Path,
    model: str,
    lengths: tuple[int, int],
    parameters: int,
) -> None:
    """A model has the same parameters on short and on long data, in both versions."""
    found = [
        run(
            environments[identifier],
            tmp_path / name,
            model=model,
            batch_shape=(1, length, 30),
            parameters=parameters,
        ).parameters
        for identifier in OLD
        for length in lengths
        if (name := make(tmp_path, f"{identifier}-{length}"))
    ]
    assert [parameters] * 4 == found


def make(folder: Path, name: str) -> str:
    """Make a folder for one of several processes."""
    (folder / name).mkdir()
    return name


@pytest.mark.parametrize("identifier", OLD)
def test_seeds_reach_every_generator(
    environments: Environments, tmp_path: Path, identifier: str
) -> None:
    """The same process twice computes the same losses."""
    first, second = (
        run(environments[identifier], tmp_path / make(tmp_path, name), iterations=3, mode="graph")
        for name in ("first", "second")
    )
    # Not to the last bit: the order of sums over threads is open.
    assert first.losses == pytest.approx(second.losses, rel=1e-5)


@pytest.mark.parametrize(
    ("fixture", "identifier", "apis"),
    [
        (
            "environments",
            "tf114",
            {"tf.keras": "2.2.4-tf", "keras": "2.2.5", "tf.python.keras": "2.2.4-tf"},
        ),
        (
            "environments",
            "tf20",
            {"tf.keras": "2.2.4-tf", "keras": "2.3.1", "tf.python.keras": "2.2.4-tf"},
        ),
        (
            "keras3",
            "tf218",
            {
                "tf.keras": "3.9.0",
                "keras": "3.9.0",
                "tf_keras": "2.18.0",
                "tf.python.keras": "2.18.1",
            },
        ),
    ],
)
def test_tells_what_is_in_an_environment(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    *,
    fixture: str,
    identifier: str,
    apis: dict[str, str],
) -> None:
    """Without being told what to expect, it finds the framework and every Keras that trains."""
    environment = request.getfixturevalue(fixture)[identifier]
    result = run(environment, tmp_path, action="describe", expected=Expected())
    assert result.outcome == "ok", result.failure
    version = VERSIONS[identifier].tensorflow
    assert result.metadata["framework"] == {"name": "tensorflow", "version": version}
    assert apis == result.metadata["apis"]
