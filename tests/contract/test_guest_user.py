"""A user's own workload file: what it may do, and how its mistakes are told."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from orchestrator.model.result import Iterations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.model.result import Failure, Result
    from tests.contract.conftest import RunGuest

    RunFile = Callable[..., Result]

MODEL = """
def build_model(keras, batch_shape):
    model = keras.models.Model(keras.layers.Input(), keras.layers.Dense())
    model.compile(keras.optimizers.Adam(1e-4), "binary_crossentropy")
    return model
"""
DATA = """
def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.randn(batch_shape[0], 1)
"""


@pytest.fixture
def run_file(python: Path, run_guest: RunGuest, weird_path: Path) -> RunFile:
    """Run the guest on a workload file with this text."""

    def run(text: str, fields: Mapping[str, object] | None = None) -> Result:
        folder = weird_path / "theirs"
        folder.mkdir(exist_ok=True)
        file = folder / "mine.py"
        file.write_text(text, encoding="utf-8")
        asked = {"workload": str(file), "model": "mine", "input": "given", "method": "fit"}
        ended = run_guest(python, {**asked, **(fields or {})})
        assert ended.exit_code == 0, ended.log
        assert ended.result is not None
        return ended.result

    return run


def failure_of(result: Result) -> Failure:
    """The failure that a result has to have, by the user's fault."""
    assert (result.outcome, result.failure and result.failure.kind) == ("failed", "workload")
    assert result.failure is not None
    return result.failure


@pytest.mark.parametrize("method", ["fit", "train_on_batch", "evaluate", "predict"])
def test_measures_the_users_model(run_file: RunFile, method: str) -> None:
    """A file of two functions is measured by any method of Keras, with seeded data of its own."""
    result = run_file(MODEL + DATA, {"method": method})
    assert result.outcome == "ok", result.failure
    assert result.iterations == Iterations(asked=25, done=25)
    assert result.parameters == 609
    assert len(result.losses) == (0 if method == "predict" else 25)


def test_measures_the_users_step(run_file: RunFile) -> None:
    """A step of the user's own gets the model and one batch; what it returns is the loss."""
    step = """
    def step(model, batch):
        x, y = batch
        assert x.shape == (2, 3, 4) and y.shape == (2, 1)
        model.train_on_batch(x, y)
        return 0.125
    """
    result = run_file(MODEL + DATA + dedent(step), {"method": "step"})
    assert result.outcome == "ok", result.failure
    assert result.losses == (0.125,) * 25


def test_a_step_without_a_loss(run_file: RunFile) -> None:
    """A step that returns nothing has no losses, and is measured all the same."""
    step = "def step(model, batch):\n    model.train_on_batch(*batch)\n"
    result = run_file(MODEL + DATA + step, {"method": "step"})
    assert result.outcome == "ok", result.failure
    assert set(result.losses) <= {None}


def test_files_beside_it_are_found(run_file: RunFile, weird_path: Path) -> None:
    """It imports what lies beside it, and nothing is left in its folder."""
    folder = weird_path / "theirs"
    folder.mkdir()
    (folder / "parts.py").write_text(MODEL, encoding="utf-8")
    result = run_file("from parts import build_model\n" + DATA)
    assert result.outcome == "ok", result.failure
    assert ["mine.py", "parts.py"] == sorted(path.name for path in folder.iterdir())


def test_a_model_that_is_built_later(run_file: RunFile) -> None:
    """A subclassed model has no weights before its first call, and is counted after it."""
    text = """
    def build_model(keras, batch_shape):
        class Later(keras.models.Model):
            called = False

            def train_on_batch(self, x, y):
                self.called = True
                return super().train_on_batch(x, y)

            def count_params(self):
                if not self.called:
                    raise ValueError("not yet built")
                return 7

        model = Later(keras.layers.Input(), keras.layers.Dense())
        model.compile(None, "binary_crossentropy")
        model.optimizer = keras.optimizers.Adam(1e-4)
        return model
    """
    result = run_file(dedent(text) + DATA, {"method": "train_on_batch"})
    assert result.outcome == "ok", result.failure
    assert (result.parameters, result.dtype) == (7, "float32")


@pytest.mark.parametrize(
    ("text", "wrong", "message"),
    [
        (DATA + "def build_model(keras, batch_shape):\n", "    return {}[1]", "KeyError: 1"),
        (MODEL + "def make_data(batch_shape, rng):\n", "    1 / 0", "ZeroDivisionError: "),
        (MODEL + DATA, "raise SystemExit(3)", "SystemExit: 3"),
        (MODEL + DATA + "def step(model, batch):\n", "    model.lift()", "AttributeError: "),
        (MODEL + DATA, "import no_such_package.part", "ModuleNotFoundError: "),
    ],
    ids=["build_model", "make_data", "exits", "step", "import"],
)
def test_errors_are_shown_from_the_users_first_line(
    run_file: RunFile, text: str, wrong: str, message: str
) -> None:
    """What goes wrong in their file is told by their traceback alone."""
    method = "step" if "def step" in text else "fit"
    failure = failure_of(run_file(text + wrong + "\n", {"method": method}))
    assert failure.message.startswith(message)
    assert failure.traceback is not None
    head, frame, *_ = failure.traceback.split("\n  File ")
    assert head == "Traceback (most recent call last):"
    assert f'mine.py", line {text.count(chr(10)) + 1}, in ' in frame
    assert wrong.strip() in frame
    assert "workloads" not in failure.traceback


def test_a_file_that_does_not_compile(run_file: RunFile) -> None:
    """A syntax error is shown with its line, without the frames of whoever imported it."""
    failure = failure_of(run_file("def build_model(:\n"))
    assert failure.message.startswith("SyntaxError: ")
    assert failure.traceback is not None
    assert "mine.py" in failure.traceback
    assert "def build_model(:" in failure.traceback
    assert "importlib" not in failure.traceback


@pytest.mark.parametrize(
    ("module", "package"),
    [("no_such_package.part", "no_such_package"), ("sklearn.svm", "scikit-learn")],
)
def test_a_missing_package_is_told_with_what_adds_it(
    run_file: RunFile, module: str, package: str
) -> None:
    """Whoever imports what is not there reads how to add a package, or files of their own."""
    failure = failure_of(run_file(f"import {module}\n"))
    hint = f"A package is added with --with {package}; for files beside yours, give the folder"
    assert hint in failure.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DATA, "mine.py defines no function build_model."),
        (MODEL, "mine.py defines no function make_data."),
        (
            DATA + "def build_model(keras, batch_shape):\n    pass\n",
            "build_model returned nothing, where a compiled model is expected.",
        ),
        (
            DATA + MODEL.replace("    model.compile", "    0 and model.compile"),
            "build_model returned a model without compile(): fit needs one.",
        ),
        (
            MODEL + "def make_data(batch_shape, rng):\n    return rng.randn(*batch_shape)\n",
            "make_data returned a numpy.Array, where (x, y) or a tf.data.Dataset is expected.",
        ),
        (
            MODEL + "def make_data(batch_shape, rng):\n    return [1], [0]\n",
            "make_data returned a list of 1 in its x or y, where arrays or dicts are expected.",
        ),
        (
            MODEL
            + "def make_data(batch_shape, rng):\n    return rng.randn(3, 2), rng.randn(4, 1)\n",
            "make_data returned arrays of different lengths: 3 and 4 rows.",
        ),
    ],
    ids=["no model", "no data", "nothing", "not compiled", "x alone", "lists", "lengths"],
)
def test_wrong_returns_are_one_sentence(run_file: RunFile, text: str, message: str) -> None:
    """What a function should have returned is told in words, without any traceback."""
    failure = failure_of(run_file(text))
    assert (message, None) == (failure.message, failure.traceback)


def test_a_model_of_another_keras(run_file: RunFile) -> None:
    """A model that was built with another Keras than the arm's gives no number."""
    text = """
    class Model:
        optimizer = fit = predict_on_batch = print

    def build_model(keras, batch_shape):
        return Model()
    """
    result = run_file(dedent(text) + DATA)
    assert (result.outcome, result.failure and result.failure.kind) == ("invalid", "wrong_keras")
    assert result.failure is not None
    expected = "build_model returned a mine.Model, which is no model of tf.keras: it has to build "
    assert result.failure.message == expected + "with the keras that it is given."


def test_what_is_no_fault_of_theirs_keeps_its_reason(run_file: RunFile) -> None:
    """Memory that runs out in the user's file is an outcome of its own."""
    result = run_file(MODEL + "def make_data(batch_shape, rng):\n    raise MemoryError\n")
    assert result.outcome == "out_of_memory"
