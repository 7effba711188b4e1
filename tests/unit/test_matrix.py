"""The matrix loads, says what is wrong with it, and is selected from by names and globs."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from packaging.version import Version

from orchestrator import matrix
from orchestrator.errors import InputError, StackraceError, UsageError
from orchestrator.model.matrix import framework

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.model.matrix import Matrix, Row

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


ROWS = list(matrix.load().rows.values())
OF_TENSORFLOW = [row for row in ROWS if row.tensorflow]


def named(row: Row) -> str:
    """What pytest calls the case of a row."""
    return row.identifier


def test_one_row_for_every_minor_release() -> None:
    """TensorFlow 1.14 to 2.21, oldest first, then Keras 3 on JAX and on PyTorch."""
    minors = [("tf114", (1, 14)), ("tf115", (1, 15))]
    minors += [(f"tf2{minor}", (2, minor)) for minor in range(22)]
    assert minors == [(row.identifier, Version(row.tensorflow).release[:2]) for row in ROWS[:-2]]
    assert [("keras3-jax", "jax"), ("keras3-torch", "torch")] == [
        (row.identifier, framework(row)[0]) for row in ROWS[-2:]
    ]


def test_two_pythons_in_all() -> None:
    """Python explains as little as wheels allow: 3.7 to TensorFlow 2.11, 3.11 from 2.12 on."""
    for row in ROWS:
        old = bool(row.tensorflow) and Version(row.tensorflow) < Version("2.12")
        assert ("3.7" if old else "3.11") == row.python


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_rows_are_consistent(row: Row) -> None:
    """Packages, apis, rules and CUDA facts of a row say the same as its versions."""
    name, version = framework(row)
    for names in row.packages.values():
        package, _, pinned = names[0].partition("==")
        assert version == pinned
        assert package.startswith(name)
        assert (f"keras=={row.keras}" in names) == bool(row.keras)
        assert ("tf_keras" in row.apis) == any(item.startswith("tf-keras==") for item in names)
    assert ("keras" in row.apis) == bool(row.keras)
    assert ("tf.keras" in row.apis) == (name == "tensorflow")
    assert row.native_mode in row.modes
    for rule in row.impossible:
        assert any(fnmatchcase(api, rule.api) for api in row.apis)
        assert any(fnmatchcase(mode, rule.mode) for mode in row.modes)
        assert rule.reason
    assert row.cuda is not None
    assert all(re.fullmatch(r"(sm|compute)_\d{2,3}", item) for item in row.cuda.architectures)
    assert row.size_mb["cpu"] <= row.size_mb["gpu"]
    assert row.title.startswith(
        {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}[name]
    )


@pytest.mark.parametrize("row", OF_TENSORFLOW, ids=named)
def test_keras_is_that_of_the_release(row: Row) -> None:
    """From 2.6 to 2.15 of the same number, from 2.16 on Keras 3 with tf_keras for graphs."""
    release = Version(row.tensorflow)
    if Version("2.6") <= release < Version("2.16"):
        assert release.release[:2] == Version(row.keras).release[:2]
    if release >= Version("2.16"):
        assert 3 == Version(row.keras).major
        refused = {(rule.api, rule.mode) for rule in row.impossible}
        assert {("keras", "graph"), ("tf.keras", "graph")} == refused


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_cuda_10_is_for_containers_only(row: Row) -> None:
    """No wheels exist for CUDA 10; whatever is newer comes with its CUDA in the lock."""
    assert row.cuda is not None
    assert row.cuda.from_wheels == (Version(row.cuda.version) >= Version("11"))
    wheels = any(re.match(r"nvidia-|.*\[|torch", item) for item in row.packages["gpu"])
    assert wheels == row.cuda.from_wheels


def test_pythons_are_those_of_the_rows(tmp_path: Path) -> None:
    """The versions that rows use, each once."""
    other = ROW.replace("[old", "[new").replace('"3.7"', '"3.8"')
    third = ROW.replace("[old", "[third")
    assert {"3.7", "3.8"} == matrix.pythons(load(tmp_path, ROW + other + third))


@pytest.mark.parametrize("row", OF_TENSORFLOW, ids=named)
def test_native_mode_follows_the_major_release(row: Row) -> None:
    """TensorFlow 1 comes in graph mode, TensorFlow 2 in eager mode."""
    assert ("graph" if row.tensorflow.startswith("1.") else "eager") == row.native_mode


@pytest.mark.parametrize("row", OF_TENSORFLOW, ids=named)
def test_small_wheels_where_they_exist(row: Row) -> None:
    """The CPU variant takes tensorflow-cpu from 2.1 on, and never a GPU build."""
    expected = "tensorflow" if Version(row.tensorflow) < Version("2.1") else "tensorflow-cpu"
    assert expected == row.packages["cpu"][0].split("==")[0]


@pytest.mark.parametrize("identifier", ["tf114", "tf115"])
def test_impossible_has_a_reason(identifier: str) -> None:
    """Stand-alone Keras on an eager TensorFlow 1 is refused with the pair's own message."""
    rules = matrix.load().rows[identifier].impossible
    (rule,) = (rule for rule in rules if (rule.api, rule.mode) == ("keras", "eager"))
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
        ('tensorflow = "1.14.0"\n', "", "names nothing to compute with"),
        ('tensorflow = "1.14.0"', 'tensorflow = "1.14.0"\njax = "0.9"', "tensorflow and jax"),
        ("cpu = 700, ", "", "packages or size_mb for cpu, but not both"),
        (', gpu = ["tensorflow-gpu==1.14.0"]', "", "packages or size_mb for gpu, but not both"),
        ('cpu = ["tensorflow==1.14.0"]', "cpu = []", "no packages for the CPU"),
        ('modes = ["graph"]', f"modes = {'[' * 20_000}", "cannot be read"),
        ("cpu = 700", f"cpu = {'7' * 5_000}", "cannot be read"),
        ('python = "3.7"', 'python = "3.7"\nspec = "x"', "there is no key 'spec'"),
        ('python = "3.7"', 'python = "3.7"\nidentifier = "x"', "there is no key 'identifier'"),
        ('python = "3.7"', 'python = "3.7"\nlock = "x"', "there is no key 'lock'"),
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
    assert ["tf22", "tf20", "tf21", "tf23"] == select("tf22", "tf2[0-3]", "tf2[0-2]")
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
        select("tf2.18")
    assert "There is no environment 'tf2.18'. Did you mean tf218?" == caught.value.what


def test_two_environments_of_one_name_are_refused() -> None:
    """A row that is called like the copy of another must not vanish without a word."""
    other = msgspec.structs.replace(matrix.load().rows["tf20"], identifier="tf114-2")
    with pytest.raises(UsageError, match="Two environments would be called tf114-2"):
        matrix.choose(matrix.load(), ["tf114", "tf114", "tf114-2"], extra_rows={"tf114-2": other})


def test_glob_without_a_match_is_an_error() -> None:
    """A glob that selects nothing is a mistake, not an empty selection."""
    with pytest.raises(UsageError, match="No environment matches 'tf3") as caught:
        select("tf3*")
    assert caught.value.fix.startswith("Valid: tf114, tf115, tf20, ")


def test_extra_rows_keep_their_place() -> None:
    """A pair on the fly stands where the command line has it; named again, it is copied."""
    rows = matrix.load().rows
    made = msgspec.structs.replace(rows["tf29"], identifier="tf2.9.1", spec="tensorflow==2.9.1")
    extra = {"tensorflow==2.9.1": made, "tensorflow==1.14.0": rows["tf114"]}
    names = ["tf20", "tensorflow==2.9.1", "tf114", "tensorflow==2.9.1", "tensorflow==1.14.0"]
    found = matrix.choose(matrix.load(), names, extra_rows=extra)
    assert ["tf20", "tf2.9.1", "tf114", "tf2.9.1-2", "tf114-2"] == [row.identifier for row in found]
    assert "tf2.9.1" == found[3].lock_name


def defaults(_: Mapping[str, Any]) -> dict[str, Any]:
    """What a row is completed with here."""
    return {
        "keras": "2.9.0",
        "packages": {"cpu": ["tensorflow==2.9.1"]},
        "size_mb": {"cpu": 900},
        "native_mode": "eager",
        "apis": ["tf.keras"],
        "modes": ["eager"],
    }


def user(folder: Path, name: str, **table: object) -> Row:
    """The row of `[environments.NAME]` with these keys."""
    rows = matrix.load_user(
        {name: table}, folder / "stackrace.toml", matrix=matrix.load(), complete=defaults
    )
    return rows[name]


def test_a_users_row_of_three_lines(tmp_path: Path) -> None:
    """What a table leaves out is completed; what it says stays, and it is not the matrix's."""
    row = user(tmp_path, "mine", tensorflow="2.9.1", python="3.10", modes=["graph", "eager"])
    assert ("mine", "mine", "3.10", "2.9.0") == (row.identifier, row.spec, row.python, row.keras)
    assert (("graph", "eager"), ("tf.keras",)) == (row.modes, row.apis)
    assert not row.ours


@pytest.mark.parametrize(
    ("name", "table", "expected"),
    [
        ("tf20", {"tensorflow": "2.0.1", "python": "3.7"}, "stackrace comes with"),
        ("mine", {"tensorflow": "2.9.1", "pythn": "3.7"}, "'pythn'. Did you mean python?"),
        ("mine", {"tensorflow": "2.9.1"}, "has no python"),
        ("mine", {"tensorflow": 2.9, "python": "3.7"}, "tensorflow is not text"),
        ("mine", {"keras": "2.9.0", "python": "3.7"}, "names nothing to compute with"),
        ("mine", {"tensorflow": "2.9.1", "jax": "0.9", "python": "3.7"}, "tensorflow and jax"),
        ("mine", {"tensorflow": "2.9.1", "python": "3.7", "apis": ["keras2"]}, "keras2"),
        ("Mine", {"tensorflow": "2.9.1", "python": "3.7"}, "'Mine' is not a name"),
        ("mine", {"tensorflow": "banana", "python": "3.7"}, "'banana' is no version"),
        ("mine", {"jax": "0.x", "python": "3.11"}, "jax = '0.x' is no version"),
        ("mine", {"torch": "2.9.0", "keras": "y", "python": "3.11"}, "keras = 'y' is no version"),
        ("mine", {"tensorflow": "2.9.1", "python": "x"}, "python = 'x' is no Python"),
        ("mine", {"tensorflow": "2.9.1", "python": "3.7.16"}, "'3.7.16' is no Python"),
        ("mine", {"tensorflow": "2.9.1", "python": "3.7", "apis": []}, "has no apis"),
        ("mine", {"tensorflow": "2.9.1", "python": "3.7", "modes": []}, "has no modes"),
    ],
)
def test_users_rows_that_are_wrong(
    tmp_path: Path, name: str, table: dict[str, object], expected: str
) -> None:
    """A slip in stackrace.toml names the row and the key, and what was meant."""
    with pytest.raises(StackraceError, match=re.escape(expected)):
        user(tmp_path, name, **table)
