"""The matrix loads, says what is wrong with it, and is selected from by names and globs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator import matrix
from orchestrator.errors import InputError, StackraceError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.matrix import Matrix

ROW = """
[old]
tensorflow = "1.14.0"
keras = "2.2.5"
python = "3.7"
packages = { cpu = ["tensorflow==1.14.0"], gpu = ["tensorflow-gpu==1.14.0"] }
size_mb = { cpu = 700, gpu = 1200 }
native_mode = "graph"
apis = ["keras"]
modes = ["graph"]
[old.cuda]
version = "10.0"
cudnn = "7.4"
architectures = ["sm_70"]
minimum_driver = "410.48"
base_image = "image"
from_wheels = false
"""


def load(folder: Path, text: str) -> Matrix:
    """Load a matrix with this text."""
    path = folder / "matrix.toml"
    path.write_text(text, encoding="utf-8")
    return matrix.load(path)


def problem(folder: Path, text: str) -> str:
    """The message that a matrix with this text is refused with."""
    with pytest.raises(StackraceError) as caught:
        load(folder, text)
    return caught.value.what


def test_rows_are_the_pairs_in_order_of_release() -> None:
    """The published matrix has one row for each pair, oldest first."""
    rows = matrix.load().rows
    assert [
        ("tf114", "1.14.0", "2.2.5"),
        ("tf115", "1.15.5", "2.3.1"),
        ("tf20", "2.0.0", "2.3.1"),
        ("tf21", "2.1.0", "2.3.1"),
        ("tf22", "2.2.0", "2.3.1"),
        ("tf23", "2.3.0", "2.4.3"),
    ] == [(row.identifier, row.tensorflow, row.keras) for row in rows.values()]


def test_all_rows_share_one_python() -> None:
    """Python explains no difference: every row has the same."""
    assert {"3.7"} == {row.python for row in matrix.load().rows.values()}


def test_pythons_are_those_of_the_rows(tmp_path: Path) -> None:
    """The versions that rows use, each once."""
    other = ROW.replace("[old", "[new").replace('"3.7"', '"3.8"')
    third = ROW.replace("[old", "[third")
    assert {"3.7", "3.8"} == matrix.pythons(load(tmp_path, ROW + other + third))


def test_native_mode_follows_the_major_release() -> None:
    """TensorFlow 1 comes in graph mode, TensorFlow 2 in eager mode."""
    for row in matrix.load().rows.values():
        expected = "graph" if row.tensorflow.startswith("1.") else "eager"
        assert expected == row.native_mode


def test_small_wheels_where_they_exist() -> None:
    """The CPU variant takes tensorflow-cpu from 2.1 on, and never a GPU build."""
    names = {
        row.identifier: row.packages["cpu"][0].split("==")[0] for row in matrix.load().rows.values()
    }
    assert {
        "tf114": "tensorflow",
        "tf115": "tensorflow",
        "tf20": "tensorflow",
        "tf21": "tensorflow-cpu",
        "tf22": "tensorflow-cpu",
        "tf23": "tensorflow-cpu",
    } == names


@pytest.mark.parametrize("identifier", ["tf114", "tf115"])
def test_impossible_has_a_reason(identifier: str) -> None:
    """Stand-alone Keras on an eager TensorFlow 1 is refused with the pair's own message."""
    (rule,) = matrix.load().rows[identifier].impossible
    assert ("keras", "eager") == (rule.api, rule.mode)
    assert "eager execution" in rule.reason


def test_unknown_key_names_file_row_key_and_the_nearest(tmp_path: Path) -> None:
    """A misspelled key is an error that names where it stands and what was meant."""
    what = problem(tmp_path, ROW.replace("native_mode", "natve_mode"))
    path = tmp_path / "matrix.toml"
    expected = f"{path}: row 'old': there is no key 'natve_mode'. Did you mean native_mode?"
    assert expected == what


def test_unknown_key_of_an_inner_table(tmp_path: Path) -> None:
    """A misspelled key of the CUDA facts is found as well."""
    what = problem(tmp_path, ROW.replace("cudnn", "cudn"))
    assert what.endswith("row 'old', table cuda: there is no key 'cudn'. Did you mean cudnn?")


def test_unknown_key_of_a_rule(tmp_path: Path) -> None:
    """A misspelled key of an impossible combination is found as well."""
    what = problem(tmp_path, ROW + '[[old.impossible]]\nmodes = "eager"\nreason = "no"\n')
    assert what.endswith("there is no key 'modes'. Did you mean mode?")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('native_mode = "graph"', 'native_mode = "lazy"', "Invalid enum value 'lazy'"),
        ('keras = "2.2.5"', "keras = 2.2", "Expected `str`, got `float` - at `$.keras`"),
        ('keras = "2.2.5"\n', "", "missing required field `keras`"),
        ("[old.cuda]\n", "cuda = 3\n[old.impossible]\n", "got `int` - at `$.cuda`"),
        ("[old]", "[Old]", "Environment 'Old' is not a name"),
        ('modes = ["graph"]', "modes = [", "is not TOML"),
    ],
)
def test_wrong_values(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """A value of the wrong kind, a missing key, a bad name and bad TOML each say what is wrong."""
    assert expected in problem(tmp_path, ROW.replace(old, new))


def test_a_row_must_be_a_table(tmp_path: Path) -> None:
    """A bare value at the top is not taken for a row."""
    with pytest.raises(InputError, match="row 'old' is not a table"):
        load(tmp_path, "old = 3")


def select(*names: str) -> list[str]:
    """Identifiers that the published matrix selects for these names."""
    return [row.identifier for row in matrix.select(matrix.load(), names)]


def test_selection_keeps_the_order_given() -> None:
    """The first one named is the reference, so order counts."""
    assert ["tf20", "tf114"] == select("tf20", "tf114")


def test_globs_collapse() -> None:
    """What several globs match, or a name has named already, counts once."""
    assert ["tf22", "tf20", "tf21", "tf23"] == select("tf22", "tf2*", "tf2?")
    assert ["tf114", "tf115"] == select("tf11*", "tf114")


def test_a_name_given_again_makes_a_copy() -> None:
    """An environment can be raced against itself: copies share the lock, not the identifier."""
    first, second, third = matrix.select(matrix.load(), ["tf114", "tf114", "tf114"])
    assert ["tf114", "tf114-2", "tf114-3"] == [row.identifier for row in (first, second, third)]
    assert {"tf114"} == {row.lock_name for row in (first, second, third)}
    assert first.packages == third.packages


def test_unknown_name_is_answered_with_the_nearest() -> None:
    """A misspelled identifier costs one line."""
    with pytest.raises(UsageError) as caught:
        select("tf11")
    assert "There is no environment 'tf11'. Did you mean tf115?" == caught.value.what


def test_glob_without_a_match_is_an_error() -> None:
    """A glob that selects nothing is a mistake, not an empty selection."""
    with pytest.raises(UsageError, match="No environment matches 'tf3") as caught:
        select("tf3*")
    assert "Valid: tf114, tf115, tf20, tf21, tf22, tf23." == caught.value.fix
