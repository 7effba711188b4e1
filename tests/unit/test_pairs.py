"""Pairs on the fly: read, completed, given a Python, or refused with what would work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.version import Version

from orchestrator import matrix, pairs
from orchestrator.errors import UsageError
from orchestrator.model.names import check_name
from orchestrator.pairs.choice import basis_of, keras_of, refusal
from orchestrator.pairs.releases import releases, rules, within

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from orchestrator.model.matrix import Row
    from orchestrator.pairs.releases import Pin, Refusal

MATRIX = matrix.load()
ROWS = [row for row in MATRIX.rows.values() if row.tensorflow]
RELEASED = list(releases().tensorflow)
NIGHTLY = {"tf-nightly": "2.23.0.dev20261026", "keras-nightly": "3.16.0.dev2026102704"}


def made(*texts: str, fixed: Sequence[str] = ()) -> list[Row]:
    """The rows of these pairs, beside environments on the Pythons `fixed`."""
    asked = [pair for pair in map(pairs.parse, texts) if pair is not None]
    assert len(texts) == len(asked)

    def newest(_: str) -> Mapping[str, str]:
        return NIGHTLY

    return list(pairs.rows(asked, MATRIX, fixed_pythons=fixed, newest=newest))


def told(*rows: Row, given: Collection[str] = ()) -> str | None:
    """What is said of the Pythons of these rows."""
    return pairs.advice(rows, MATRIX, given=given)


def refused(*texts: str) -> UsageError:
    """What these pairs are refused with."""
    with pytest.raises(UsageError) as caught:
        made(*texts)
    return caught.value


@pytest.mark.parametrize("text", ["tf114", "tf2*", "my-row", "tensorflow", "keras3-jax"])
def test_names_are_not_pairs(text: str) -> None:
    """Identifiers and globs are left to the matrix."""
    assert pairs.parse(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensorflow==2.9.1", ("2.9.1", None, None)),
        ("tensorflow==2.18.1+keras==3.6.0", ("2.18.1", "3.6.0", None)),
        ("tensorflow==2.18.1+python==3.12+keras==3.6.0", ("2.18.1", "3.6.0", "3.12")),
        ("tensorflow==2.15.0.post1", ("2.15.0.post1", None, None)),
        ("tf-nightly", (None, None, None)),
        ("tf-nightly==2.23.0.dev20261026+keras==3.15.1", ("2.23.0.dev20261026", "3.15.1", None)),
    ],
)
def test_pairs_are_read(text: str, expected: tuple[str | None, str | None, str | None]) -> None:
    """The parts may stand in any order behind TensorFlow."""
    pair = pairs.parse(text)
    assert pair is not None
    assert expected == (pair.tensorflow, pair.keras, pair.python)


@pytest.mark.parametrize(
    "text",
    [
        "keras==3.6.0",
        "tensorflow-cpu==2.9.1",
        "torch==2.15.0",
        "tensorflow==",
        "tensorflow==two",
        "tensorflow+keras==3.6.0",
        "tensorflow==2.9.1+keras",
        "tensorflow==2.9.1+keras==x",
        "tensorflow==2.9.1+numpy==1.20",
        "tensorflow==2.9.1+keras==2.9.0+keras==2.9.0",
        "tensorflow==2.9.1+python==3.10.2",
        "tensorflow==2.9.1+python==2.7",
        "tensorflow==2.9.1+python==",
        "tensorflow==2.9.1+",
    ],
)
def test_what_is_no_pair_is_refused_with_the_form(text: str) -> None:
    """A slip in a pair is a usage error that shows how one is written."""
    with pytest.raises(UsageError) as caught:
        pairs.parse(text)
    assert caught.value.fix


@pytest.mark.parametrize("version", RELEASED)
def test_every_release_has_a_row(version: str) -> None:
    """Each release of the table becomes one consistent row, on a Python that has its wheel."""
    (row,) = made(f"tensorflow=={version}")
    assert version == row.tensorflow
    assert row.python in releases().tensorflow[version].pythons
    assert row.identifier == check_name(row.identifier, what="Environment")
    assert {"cpu", "gpu"} == set(row.packages) == set(row.size_mb)
    for names in row.packages.values():
        assert names[0].endswith(f"=={version}")
        assert (f"keras=={row.keras}" in names) == bool(row.keras)
        assert len(names) == len({name.split("==")[0] for name in names})
    assert ("tf_keras" in row.apis) == any("tf-keras==" in name for name in row.packages["cpu"])
    assert refusal(version, row.keras) is None
    if row.keras:
        assert releases().keras[row.keras].takes(row.python)


@pytest.mark.parametrize(
    "version", [item for item in RELEASED if item not in {row.tensorflow for row in ROWS}]
)
def test_canonical_text_gives_the_same_packages(version: str) -> None:
    """A run is resumed by the text of its row, which names all three versions."""
    (row,) = made(f"tensorflow=={version}", fixed=("3.99",))
    (again,) = made(row.spec)
    assert (row.packages, row.constraints, row.python) == (
        again.packages,
        again.constraints,
        again.python,
    )
    assert row.spec == again.spec


@pytest.mark.parametrize("version", [item for item in RELEASED if Version(item) >= Version("2.16")])
def test_keras_of_the_release_day(version: str) -> None:
    """From 2.16 on, a missing Keras is the newest that was there when TensorFlow came out."""
    keras = keras_of(version, basis_of(version, MATRIX), takes=lambda _: True)
    day = releases().tensorflow[version].date
    assert releases().keras[keras].date <= day
    newer = [item for item in releases().keras if Version(item) > Version(keras)]
    assert all(releases().keras[item].date > day for item in newer)


@pytest.mark.parametrize("row", ROWS)
def test_the_matrixs_own_pair_is_its_row(row: Row) -> None:
    """Whoever names a row's versions gets the row, with the lock that ships."""
    keras = f"+keras=={row.keras}" if row.keras else ""
    text = f"tensorflow=={row.tensorflow}{keras}"
    assert [row] == made(text)
    assert [row] == made(f"{text}+python=={row.python}")
    assert [row] == made(f"tensorflow=={row.tensorflow}")


@pytest.mark.parametrize("row", ROWS)
def test_no_row_of_the_matrix_is_refused(row: Row) -> None:
    """What is known to fail does not include what was run."""
    assert refusal(row.tensorflow, row.keras) is None


@pytest.mark.parametrize("old", RELEASED[::8])
@pytest.mark.parametrize("new", RELEASED[::9])
def test_one_python_for_all_where_there_is_one(old: str, new: str) -> None:
    """Two releases share a Python when any has wheels of both; else the user is told."""
    first, second = made(f"tensorflow=={old}", f"tensorflow=={new}")
    kerases = [releases().keras[row.keras] for row in (first, second) if row.keras]
    both = [
        python
        for python in releases().tensorflow[old].pythons
        if python in releases().tensorflow[new].pythons
        and all(release.takes(python) for release in kerases)
    ]
    assert bool(both) == (first.python == second.python)
    assert bool(both) == (told(first, second) is None)


def test_pairs_follow_the_rows_beside_them() -> None:
    """Beside a row on Python 3.7, a pair takes 3.7 where it has wheels."""
    assert ["3.7"] == [row.python for row in made("tensorflow==2.9.1", fixed=["3.7"])]


def test_pairs_follow_the_first_row_that_they_can() -> None:
    """Beside rows on two Pythons a pair shares one of them rather than have a third."""
    assert ["3.7"] == [row.python for row in made("tensorflow==2.9.1", fixed=["3.7", "3.11"])]
    assert ["3.11"] == [row.python for row in made("tensorflow==2.12.0", fixed=["3.7", "3.11"])]
    assert ["3.12"] == [row.python for row in made("tensorflow==2.16.1", fixed=["3.7"])]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("tf114", "tf20"), None),
        (
            ("tf28", "tf218"),
            "fits them all: write tensorflow==2.8.4 for tf28, tensorflow==2.18.1 for tf218.",
        ),
        (("tf114", "tf218"), "No one Python fits them all as they are."),
        (("tf28", "keras3-jax"), "No one Python fits them all as they are."),
    ],
)
def test_rows_on_different_pythons_are_told_how_to_share_one(
    names: tuple[str, ...], expected: str | None
) -> None:
    """Where wheels of all exist for one Python, the names that bring them onto it are said."""
    found = told(*(MATRIX.rows[name] for name in names))
    assert expected is None if found is None else found.endswith(str(expected))


def test_the_advice_gives_one_python() -> None:
    """What is advised for two rows is a command whose environments share a Python."""
    rows = made("tensorflow==2.8.4", "tensorflow==2.18.1")
    assert ["3.10", "3.10"] == [row.python for row in rows]
    assert told(*rows) is None


def test_an_environment_of_somebody_else_keeps_its_python() -> None:
    """The others are advised to come to the Python that it has, where they can."""
    (mine,) = made("tensorflow==2.15.0+python==3.9")
    mine = msgspec.structs.replace(mine, identifier="mine", python="3.9.18", spec="")
    assert str(told(mine, MATRIX.rows["tf28"], given={"mine"})).endswith(
        "3.9 for mine; 3.7 for tf28. Python 3.9 fits them all: write tensorflow==2.8.4 for tf28."
    )
    assert str(told(mine, MATRIX.rows["tf114"], given={"mine"})).endswith("as they are.")


def test_a_pair_on_a_python_of_the_users_choice_is_told_what_fits() -> None:
    """Two pairs with Pythons of their own are advised to leave them out."""
    rows = made("tensorflow==2.8.4+python==3.7", "tensorflow==2.18.0+python==3.12")
    assert str(told(*rows)).endswith(
        "Python 3.10 fits them all: write tensorflow==2.8.4 for tf28, "
        "tensorflow==2.18.0+keras==3.6.0 for tf2.18.0-keras3.6.0-py3.12."
    )


@pytest.mark.parametrize("text", ["tf-nightly+python==3.6", "tf-nightly==2.23.0+python==3.9"])
def test_a_nightly_takes_no_older_python_than_the_newest_release(text: str) -> None:
    """A Python that TensorFlow has left behind is refused, a newer one is left to the index."""
    assert "nightly" in refused("tf-nightly+python==3.6").what
    assert "has no wheel for Python" in refused(text).what
    assert ["3.14"] == [row.python for row in made("tf-nightly+python==3.14")]


def test_identifiers_name_python_only_where_it_matters() -> None:
    """The user's Python is in the name, and so is one that tells two rows apart."""
    assert ["tf2.9.1-keras2.9.0"] == [row.identifier for row in made("tensorflow==2.9.1")]
    assert ["tf2.5.2"] == [row.identifier for row in made("tensorflow==2.5.2")]
    named = made("tensorflow==2.9.1+python==3.8", "tensorflow==2.9.1+python==3.9")
    assert ["tf2.9.1-keras2.9.0-py3.8", "tf2.9.1-keras2.9.0-py3.9"] == [
        row.identifier for row in named
    ]


def test_the_same_pair_written_twice_is_one_row() -> None:
    """Two ways to write one pair are the same environment."""
    first, second = made("tensorflow==2.9.1+python==3.10", "tensorflow==2.9.1+keras==2.9.0")
    assert first == second


def test_pins_that_old_releases_need() -> None:
    """Today's protobuf, numpy and h5py break old releases: their rows hold them back."""
    (row,) = made("tensorflow==2.0.3")
    assert {"protobuf<3.21", "h5py<3", "scipy<1.5", "numpy<1.19"} == set(row.constraints)
    (row,) = made("tensorflow==2.9.1")
    assert {"protobuf<3.21", "numpy<1.24"} == set(row.constraints)


def test_gpu_packages_are_those_of_the_minor_release() -> None:
    """CUDA comes as the row of the same minor release has it."""
    (row,) = made("tensorflow==2.10.0")
    assert "tensorflow==2.10.0" == row.packages["gpu"][0]
    assert "nvidia-cudnn-cu11==8.6.0.163" in row.packages["gpu"]
    (row,) = made("tensorflow==2.20.0+keras==3.12.0")
    assert "tensorflow[and-cuda]==2.20.0" == row.packages["gpu"][0]
    assert "nvidia-cudnn-cu12==9.3.0.75" in row.constraints
    (row,) = made("tensorflow==2.0.1")
    assert "tensorflow-gpu==2.0.1" == row.packages["gpu"][0]


@pytest.mark.parametrize(
    ("text", "why", "fix"),
    [
        ("tensorflow==2.0.0+keras==2.2.5", "multi-backend Keras", "tensorflow==2.0.0+keras==2.3.1"),
        ("tensorflow==2.2.0+keras==2.2.4", "multi-backend Keras", "tensorflow==2.2.0+keras==2.3.1"),
        ("tensorflow==2.3.0+keras==2.3.1", "_TensorLike", "tensorflow==2.3.0+keras==2.4.3"),
        ("tensorflow==1.15.5+keras==2.4.3", "2.2 or higher", "tensorflow==1.15.5+keras==2.3.1"),
        ("tensorflow==2.5.3+keras==2.4.3", "overwrite each other", "tensorflow==2.5.3"),
        ("tensorflow==2.9.1+keras==2.10.0", "needs Keras 2.9", "tensorflow==2.9.1+keras==2.9.0"),
        ("tensorflow==2.18.1+keras==2.15.0", "Keras 3", "tensorflow==2.18.1+keras==3.9.0"),
        ("tensorflow==2.21.0+keras==3.6.0", "3.12 or later", "tensorflow==2.21.0+keras==3.13.2"),
        ("tensorflow==2.15.1+keras==3.0.0", "needs Keras 2.15", "tensorflow==2.15.1+keras==2.15.0"),
    ],
)
def test_pairs_that_cannot_work(text: str, why: str, fix: str) -> None:
    """Refused before anything is built, with the pair's own message and the nearest that works."""
    error = refused(text)
    assert why in error.why
    assert f"Nearest that can: {fix}." == error.fix


@pytest.mark.parametrize(
    ("version", "keras"),
    [
        (version, keras)
        for version in RELEASED[::3]
        for keras in list(releases().keras)[::9]
        if refusal(version, keras) is not None
    ],
)
def test_a_refusal_names_a_pair_that_is_taken(version: str, keras: str) -> None:
    """Whatever is refused, the nearest pair that the message names is not."""
    nearest = refused(f"tensorflow=={version}+keras=={keras}").fix
    (row,) = made(nearest.removeprefix("Nearest that can: ").removesuffix("."))
    assert version == row.tensorflow


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("tensorflow==2.9.7", "Nearest: 2.9.0, 2.9.1, 2.9.2, 2.9.3."),
        ("tensorflow==1.13.1", "Nearest: 1.14.0."),
        ("tensorflow==2.99.0", "Nearest: 2.21.0."),
        ("tensorflow==2.18.1+keras==3.99.0", "Nearest: 3.15.1."),
        ("tensorflow==2.9.1+python==3.12", "It has wheels for Python 3.7, 3.8, 3.9, 3.10."),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(text: str, fix: str) -> None:
    """Unknown releases and Pythons without a wheel are refused with the nearest."""
    assert fix == refused(text).fix


def test_a_keras_that_python_is_too_old_for() -> None:
    """Keras' own oldest Python counts too."""
    error = refused("tensorflow==2.18.1+keras==3.13.2+python==3.10")
    assert "Keras 3.13.2 needs Python 3.11" in error.what


def test_a_named_python_gets_the_keras_of_the_day_that_it_takes() -> None:
    """On Python 3.10, TensorFlow 2.21 gets the newest Keras of its day that installs there."""
    (row,) = made("tensorflow==2.21.0+python==3.10")
    assert "3.12.1" == row.keras


def test_nightly_takes_its_versions_from_the_index() -> None:
    """The row of a nightly names the day's versions, so that a resumed run gets the same."""
    (row,) = made("tf-nightly", fixed=["3.11"])
    assert ("2.23.0.dev20261026", "3.16.0.dev2026102704") == (row.tensorflow, row.keras)
    assert "tf-nightly==2.23.0.dev20261026" == row.packages["cpu"][0]
    assert "keras-nightly==3.16.0.dev2026102704" in row.packages["cpu"]
    assert ("keras", "tf.keras") == row.apis
    (again,) = made(row.spec)
    assert row.packages == again.packages


def test_nightly_with_a_release_of_keras() -> None:
    """A Keras that the user names takes the place of the nightly one."""
    (row,) = made("tf-nightly+keras==3.15.1")
    assert ("tf-nightly==2.23.0.dev20261026", "keras==3.15.1") == row.packages["cpu"]


@pytest.mark.parametrize("rule", rules().refusals)
def test_refusals_are_about_something(rule: Refusal) -> None:
    """Each rule refuses at least one pair of releases."""
    assert any(rule.holds(version, keras) for version in RELEASED for keras in releases().keras)


@pytest.mark.parametrize("pin", rules().pins)
def test_pins_are_about_something(pin: Pin) -> None:
    """Each pin applies to at least one release."""
    assert any(within(version, pin.tensorflow) for version in RELEASED)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"tensorflow": "2.9.1", "python": "3.10"}, ("tensorflow-cpu==2.9.1", "keras==2.9.0")),
        (
            {"tensorflow": "2.18.0", "keras": "3.5.0", "python": "3.12"},
            ("tensorflow-cpu==2.18.0", "keras==3.5.0", "tf-keras==2.18.0"),
        ),
        (
            {"jax": "0.9.0", "keras": "3.12.0", "python": "3.11"},
            ("jax==0.9.0", "keras==3.12.0"),
        ),
        ({"torch": "2.9.0", "python": "3.12"}, ("torch==2.9.0", "keras==3.15.1")),
    ],
)
def test_user_rows_are_completed(table: dict[str, str], expected: tuple[str, ...]) -> None:
    """A row of three lines gets the rest from the closest row of the matrix."""
    found = pairs.complete(table, MATRIX)
    assert list(expected) == list(found["packages"]["cpu"])
    assert not {"identifier", "lock", "spec"} & set(found)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            {"tensorflow": "2.15.1", "python": "3.7"},
            "TensorFlow 2.15.1 has no wheel",
        ),
        ({"tensorflow": "2.5.3", "keras": "2.4.3", "python": "3.7"}, "cannot work"),
        ({"tensorflow": "2.20.0", "keras": "3.13.0", "python": "3.10"}, "needs Python 3.11"),
    ],
)
def test_user_rows_that_cannot_work(table: dict[str, str], expected: str) -> None:
    """They are refused as a pair is, unless they name packages of their own."""
    with pytest.raises(UsageError, match=expected):
        pairs.complete(table, MATRIX)
    own = pairs.complete({**table, "packages": {"cpu": ["mine==1"]}}, MATRIX)
    assert table["python"] == own["python"]


def test_a_user_row_of_an_unknown_release_is_left_to_the_index() -> None:
    """A fork's version is nobody's business here."""
    found = pairs.complete({"tensorflow": "2.15.1+nv24.1", "python": "3.10"}, MATRIX)
    assert "tensorflow==2.15.1+nv24.1" == found["packages"]["cpu"][0]


def test_user_rows_with_packages_of_their_own_get_no_gpu() -> None:
    """Who names packages for the CPU alone has no GPU build."""
    table = {"tensorflow": "2.9.1", "python": "3.10", "packages": {"cpu": ["mine==1"]}}
    found = pairs.complete(table, MATRIX)
    assert found["cuda"] is None
    assert ["cpu"] == list(found["size_mb"])
