"""A user's own model, read without being run: its name, its files, and what it lacks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from orchestrator import workload
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

BUILD = "def build_model(keras, batch_shape):\n    return None\n"
DATA = "def make_data(batch_shape, rng):\n    return None, None\n"
WHOLE = BUILD + DATA


def write(path: Path, text: str = WHOLE) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> UsageError:
    """What is said of a workload that cannot be raced."""
    with pytest.raises(UsageError) as caught:
        workload.read([path])
    return caught.value


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my_model.py", "my_model"),
        ("My-Model.v2.py", "my_model_v2"),
        ("9 lives.py", "9_lives"),
        ("模型.py", "workload"),
        ("__x__.py", "x"),
    ],
)
def test_names_come_from_files(tmp_path: Path, file: str, name: str) -> None:
    """They are made safe for paths and case names, where '-' divides model from data."""
    (found,) = workload.read([write(tmp_path / file)])
    assert name == found.name
    assert found.files[found.entry] == WHOLE.encode()


def test_files_of_one_name_get_their_folders_in_front(tmp_path: Path) -> None:
    """As many as tell them apart; others keep their short names."""
    files = ["a/x/model.py", "b/x/model.py", "b/y/model.py", "other.py"]
    found = workload.read([write(tmp_path / file) for file in files])
    assert ["a_x_model", "b_x_model", "y_model", "other"] == [item.name for item in found]


def test_files_that_cannot_be_told_apart(tmp_path: Path) -> None:
    """Names that differ only in what names cannot hold, and a file given twice."""
    pair = [write(tmp_path / "my-model.py"), write(tmp_path / "my_model.py")]
    with pytest.raises(UsageError, match="would both be called"):
        workload.read(pair)
    with pytest.raises(UsageError, match="is given twice"):
        workload.read([pair[0], tmp_path / "." / "my-model.py"])


def test_a_file_is_a_workload(tmp_path: Path) -> None:
    """What it says of itself is read from its text."""
    text = WHOLE + "BATCH_SHAPES = [(8, 4), (16, 4), (8, 4)]\ndef step(model, batch): ...\n"
    plain, own = workload.read([write(tmp_path / "plain.py"), write(tmp_path / "own.py", text)])
    assert ((), False) == (plain.shapes, plain.has_step)
    assert (((8, 4), (16, 4)), True) == (own.shapes, own.has_step)
    assert ("own", "own.py", own.digest) == (
        own.planned.name,
        own.planned.entry,
        own.planned.digest,
    )


def test_digests_follow_the_content(tmp_path: Path) -> None:
    """The same bytes under the same name have one digest, wherever they lie."""
    files = ["a/model.py", "b/model.py", "c/model.py"]
    texts = [WHOLE, WHOLE, WHOLE + "# changed\n"]
    one, same, other = workload.read(
        [write(tmp_path / file, text) for file, text in zip(files, texts, strict=True)]
    )
    assert one.digest == same.digest
    assert one.digest != other.digest
    assert one.digest == workload.digest(workload.files_below(tmp_path / "a"))


def test_a_folder_is_a_workload(tmp_path: Path) -> None:
    """All that is in it, but for caches, histories and the results that are written there."""
    folder = tmp_path / "My Model"
    write(folder / "workload.py", "from package import part\n" + WHOLE)
    write(folder / "package" / "part.py", "")
    write(folder / "data.bin", "1")
    for left in ("__pycache__/x.pyc", "package/__pycache__/x.pyc", ".git/config", "results/r"):
        write(folder / left, "")
    (found,) = workload.read([folder], without=folder / "results")
    assert ("my_model", "workload.py") == (found.name, found.entry)
    assert {"workload.py", "package/part.py", "data.bin"} == set(found.files)


def test_a_folder_of_a_size_that_no_run_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is told, and what to do with data."""
    write(tmp_path / "workload.py")
    write(tmp_path / "data.bin", "x" * 2_000_000)
    monkeypatch.setattr(workload, "MOST_MB", 1)
    error = refused(tmp_path)
    assert "it may hold 1 MB in 2000 files" in error.what
    assert "Keep data elsewhere" in error.fix
    monkeypatch.setattr(workload, "MOST_MB", 50)
    monkeypatch.setattr(workload, "MOST_FILES", 1)
    assert "is too large for a workload" in refused(tmp_path).what


def test_a_file_of_a_size_that_no_run_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has the limit of a folder, and is not read to find that out."""
    monkeypatch.setattr(workload, "MOST_MB", 1)
    error = refused(write(tmp_path / "model.py", "#" * 1_000_001))
    assert "it may hold 1 MB in 2000 files" in error.what


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    """A link to a file is its content; one to a folder could lead anywhere."""
    write(tmp_path / "own" / "workload.py")
    write(tmp_path / "elsewhere" / "x.txt", "x")
    (tmp_path / "own" / "x.txt").symlink_to(tmp_path / "elsewhere" / "x.txt")
    (found,) = workload.read([tmp_path / "own"])
    assert b"x" == found.files["x.txt"]
    (tmp_path / "own" / "data").symlink_to(tmp_path / "elsewhere")
    assert "is a link to a folder" in refused(tmp_path / "own").what


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        (
            "def build_model(keras, batch_shape)\n    pass\n",
            ", line 1: expected ':'.",
            "    def build_model(keras, batch_shape)\n                                       ^",
        ),
        ("if x:\n\tx = (1\n", ", line 2: '(' was never closed.", "    \tx = (1\n    \t    ^"),
        ("print 'a'\n", ", line 1: Missing parentheses in call", "    print 'a'\n    ^"),
        ("x = 1\0\n", "model.py: source code string cannot contain null bytes", ""),
    ],
)
def test_syntax_errors_are_shown(tmp_path: Path, text: str, what: str, why: str) -> None:
    """With the line and the place in it, as Python shows them."""
    error = refused(write(tmp_path / "model.py", text))
    assert what in error.what
    assert why == error.why or not why


def test_other_encodings(tmp_path: Path) -> None:
    """A file says its encoding as for Python; one that is none of Python's is refused."""
    path = tmp_path / "model.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\n" + WHOLE.encode())
    assert "model" == workload.read([path])[0].name
    path.write_bytes(b"# \xe9\n" + WHOLE.encode())
    assert "model.py: invalid or missing encoding declaration." in refused(path).what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (DATA, "does not define build_model."),
        (BUILD, "does not define make_data."),
        (BUILD + "class A:\n    def make_data(self, rng): ...\n", "does not define make_data."),
        ("", "does not define build_model."),
    ],
)
def test_missing_functions(tmp_path: Path, text: str, what: str) -> None:
    """What is missing is told, with how to write it."""
    error = refused(write(tmp_path / "model.py", text))
    assert what in error.what
    assert "stackrace init" in error.fix
    missing = what.rsplit(maxsplit=1)[-1].rstrip(".")
    assert f"    def {missing}(" in error.fix


@pytest.mark.parametrize(
    "text",
    [
        BUILD + "from numpy import zeros as make_data\n",
        BUILD + "import os as make_data\n",
        BUILD + "make_data = lambda shape, rng: None\n",
        BUILD + "make_data: object = None\n",
        BUILD + "class make_data: ...\n",
        "from os.path import *\n",
        "if True:\n    def build_model(keras, batch_shape): ...\nelse:\n    pass\n" + DATA,
        f"try:\n    import x\nexcept ImportError:\n    def make_data(a, b): ...\n{BUILD}",
        "def build_model(keras, batch_shape, depth=3): ...\ndef make_data(*args): ...\n",
        r"PATTERN = '\d'" + "\n" + WHOLE,
    ],
)
def test_every_way_to_define_them(tmp_path: Path, text: str) -> None:
    """However a name comes to be there, and what nobody can know, is not held against a file."""
    assert "model" == workload.read([write(tmp_path / "model.py", text)])[0].name


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (
            "def build_model(): ...\n" + DATA,
            "line 1: build_model does not take 2 arguments.",
            "It is called as build_model(keras, batch_shape).",
        ),
        (BUILD + "def make_data(shape): ...\n", "make_data does not take 2", "batch_shape, rng"),
        (WHOLE + "def step(model, x, y): ...\n", "step does not take 2", "step(model, batch)"),
        (BUILD + "def make_data(a, b, *, c): ...\n", "make_data does not take 2", "rng"),
    ],
)
def test_functions_take_what_they_are_given(tmp_path: Path, text: str, what: str, fix: str) -> None:
    """A signature that cannot be called is known before anything is built."""
    error = refused(write(tmp_path / "model.py", text))
    assert what in error.what
    assert fix in error.fix


@pytest.mark.parametrize(
    ("value", "shapes"),
    [
        ("(8, 4)", ((8, 4),)),
        ("[[8, 4], (16, 4, 3)]", ((8, 4), (16, 4, 3))),
        ("((32,),)", ((32,),)),
    ],
)
def test_shapes_are_literals(
    tmp_path: Path, value: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    """One shape, or a list of them."""
    path = write(tmp_path / "model.py", f"{WHOLE}BATCH_SHAPES = {value}\n")
    assert shapes == workload.read([path])[0].shapes


@pytest.mark.parametrize(
    "value",
    [
        "[]",
        "[(8, n)]",
        "[(8, -4)]",
        "[(8, 4.0)]",
        "[(True, 4)]",
        "[(8, 10000000000)]",
        "8",
        "{8: 4}",
        "f()",
    ],
)
def test_shapes_that_are_none(tmp_path: Path, value: str) -> None:
    """It is read without running the file, so nothing in it can be computed."""
    error = refused(write(tmp_path / "model.py", f"{WHOLE}BATCH_SHAPES = {value}\n"))
    assert "BATCH_SHAPES is no list of shapes" in error.what
    assert "BATCH_SHAPES = [(32, 140, 30), (64, 140, 30)]" in error.fix


def test_a_file_that_needs_others_beside_it(tmp_path: Path) -> None:
    """A single file is copied alone: what it imports from its folder is named beforehand."""
    path = write(tmp_path / "model.py", "from layers import x\nimport numpy\n" + WHOLE)
    assert "model" == workload.read([path])[0].name
    write(tmp_path / "layers.py", "")
    error = refused(path)
    assert "imports layers, which stands beside it and would be missing." in error.what
    assert "--workload FOLDER" in error.fix
    os.rename(path, tmp_path / "workload.py")  # noqa: PTH104 - what the user is told to do
    assert {"workload.py", "layers.py"} == set(workload.read([tmp_path])[0].files)


def test_what_is_no_workload(tmp_path: Path) -> None:
    """Missing files, other files, and folders without the one that is imported."""
    assert "There is no workload" in refused(tmp_path / "nowhere.py").what
    assert "stackrace init" in refused(tmp_path / "nowhere.py").fix
    assert "is no Python file" in refused(write(tmp_path / "model.ipynb", "{}")).what
    (tmp_path / "empty").mkdir()
    assert "has no workload.py" in refused(tmp_path / "empty").what
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    assert "There is no workload" in refused(loop).what


def test_importing_reads_and_never_runs(tmp_path: Path) -> None:
    """A file is not run on the host: its imports need not exist here."""
    mark = tmp_path / "ran"
    text = f"import tensorflow_of_another_machine\nopen({str(mark)!r}, 'w')\n{WHOLE}"
    assert "model" == workload.read([write(tmp_path / "model.py", text)])[0].name
    assert not mark.exists()


def test_a_typo_gets_the_nearest_name(tmp_path: Path) -> None:
    """A Python file or a folder of one; what is no workload, or far from it, is not told."""
    for name in ("my_model.py", "other/workload.py", "notes.txt"):
        write(tmp_path / name)
    assert refused(tmp_path / "my_modle.py").what.endswith(f"Did you mean {tmp_path}/my_model.py?")
    assert refused(tmp_path / "othr").what.endswith(f"Did you mean {tmp_path}/other?")
    assert refused(tmp_path / "note.txt").what.endswith("note.txt.")
