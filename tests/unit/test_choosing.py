"""Names of the matrix, of stackrace.toml and of pairs become rows, in the order given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.config import Config, Flags, load
from orchestrator.errors import StackraceError
from orchestrator.pipeline import choosing

if TYPE_CHECKING:
    from pathlib import Path

OWN = '[environments.mine]\ntensorflow = "2.8.2"\nkeras = "2.8.0"\npython = "3.7"\n'


def settings(folder: Path, text: str = "") -> Config:
    """The configuration with this stackrace.toml."""
    (folder / "stackrace.toml").write_text(text, encoding="utf-8")
    return load(Flags(), folder=folder, variables={})


def test_names_keep_their_order(tmp_path: Path) -> None:
    """The first is the reference, whatever kind of name it has; a second time makes a copy."""
    names = ["tensorflow==2.9.1", "mine", "tf114", "tensorflow==1.14.0", "mine", "tf2[01]"]
    rows = choosing.rows(settings(tmp_path, OWN), names)
    assert [
        ("tf2.9.1-keras2.9.0", "3.7"),
        ("mine", "3.7"),
        ("tf114", "3.7"),
        ("tf114-2", "3.7"),
        ("mine-2", "3.7"),
        ("tf20", "3.7"),
        ("tf21", "3.7"),
    ] == [(row.identifier, row.python) for row in rows]


def test_specs_find_the_same_rows_again(tmp_path: Path) -> None:
    """A run is resumed by what its plan says of each environment."""
    told = settings(tmp_path, OWN)
    rows = choosing.rows(told, ["mine", "tensorflow==2.9.1"])
    again = choosing.rows(told, [row.spec for row in rows])
    assert [row.packages for row in rows] == [row.packages for row in again]


def test_globs_find_the_users_rows(tmp_path: Path) -> None:
    """Rows of stackrace.toml stand behind those of the matrix."""
    rows = choosing.rows(settings(tmp_path, OWN), ["min*"])
    assert ["mine"] == [row.identifier for row in rows]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", "mine", "There is no environment 'mine'"),
        (OWN.replace("keras =", "kears ="), "mine", "Did you mean keras?"),
        (OWN, "tensorflow==9.9.9", "There is no TensorFlow 9.9.9"),
        (OWN.replace("mine", "tf20"), "tf20", "stackrace comes with"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, name: str, expected: str) -> None:
    """Unknown names, wrong keys and impossible pairs are one line each."""
    with pytest.raises(StackraceError, match=expected):
        choosing.rows(settings(tmp_path, text), [name])
