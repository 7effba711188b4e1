"""The names that host and guest each write down must stay the same."""

from __future__ import annotations

import importlib
import json
import os
import pwd
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
import pytest

from orchestrator.environments.variables import ALLOWED, worker_variables
from orchestrator.model import codec, names, request
from orchestrator.model.result import RESULT_SCHEMA, Result

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def protocol() -> Any:  # noqa: ANN401
    """The guest's side, which the host never imports outside of tests."""
    return importlib.import_module("workloads.protocol")


@pytest.mark.parametrize("name", ["Request", "Expected", "Seeds"])
def test_same_fields_and_defaults(protocol: Any, name: str) -> None:  # noqa: ANN401
    """A request has the same fields, with the same defaults, on both sides."""
    ours = {
        field.name: field.default
        for field in msgspec.structs.fields(getattr(request, name))
        if field.name != "schema"
    }
    theirs = getattr(protocol, name)
    assert set(ours) == set(theirs._fields)
    # Those that msgspec makes anew for every request have no plain default to compare.
    plain = {key for key, value in ours.items() if value is not msgspec.NODEFAULT}
    structs = {"expected", "seeds"}
    assert {key: ours[key] for key in plain - structs} == {
        key: theirs._field_defaults[key] for key in plain - structs
    }


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("action", get_type_hints(request.Request)["action"]),
        ("api", names.Api),
        ("mode", names.Mode),
        ("input", names.Input),
        ("method", names.Method),
        ("device", names.Device),
    ],
)
def test_same_words(protocol: Any, field: str, words: Any) -> None:  # noqa: ANN401
    """Each closed vocabulary holds the same words on both sides."""
    assert set(get_args(words)) == set(protocol._CHOICES[field])


def test_same_schemas(protocol: Any) -> None:  # noqa: ANN401
    """Both sides write and expect the same labels."""
    assert request.REQUEST_SCHEMA == protocol.REQUEST_SCHEMA
    assert RESULT_SCHEMA == protocol.RESULT_SCHEMA


def test_same_frameworks(protocol: Any) -> None:  # noqa: ANN401
    """Both sides name what Keras computes with alike, and in one order."""
    titles = importlib.import_module("workloads.frameworks").TITLES
    assert list(names.FRAMEWORKS.items()) == list(titles.items())
    assert (*names.FRAMEWORKS, "keras") == protocol.Expected._fields


@pytest.mark.parametrize(
    ("found", "asked", "same"),
    [
        ("2.22.0-dev20261129", "2.22.0.dev20261129", True),
        ("2.16.0-rc1", "2.16.0rc1", True),
        ("2.9.1+cpu", "2.9.1", True),
        ("2.9.1+cpu", "2.9.1+cu128", False),
        ("2.9.1", "2.9.10", False),
    ],
)
def test_versions_have_one_spelling(found: str, asked: str, *, same: bool) -> None:
    """A version is recognised in the spelling of the package index and in the library's own."""
    normal = importlib.import_module("workloads.frameworks").normal
    assert same is (normal(found, asked) == normal(asked, asked))


def test_numbers_and_texts_that_json_cannot_hold(protocol: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """What JSON cannot hold becomes null with a reason, or text that every reader accepts."""
    path = tmp_path / "result.json"
    result = {
        "outcome": "ok",
        "losses": [0.5, float("inf"), float("nan")],
        "outputs": {"digest": "d", "summary": {"mean": float("nan"), "min": 1.0}},
        "metadata": {"flags": {"TF_X": b"\xff".decode("utf-8", "surrogateescape")}},
    }
    protocol.write_result(path, result)
    read = codec.decode(path.read_bytes(), Result, source=path, schema=RESULT_SCHEMA)
    assert read.losses == (0.5, None, None)
    assert read.outputs is not None
    assert read.outputs.summary == {"mean": None, "min": 1.0}
    expected = {
        "losses": "inf is not a finite number",
        "outputs.summary.mean": "nan is not a finite number",
    }
    assert expected == read.nulls
    assert read.metadata == {"flags": {"TF_X": "\\udcff"}}
    assert [path] == list(tmp_path.iterdir())


def test_the_home_of_the_user_is_not_told(protocol: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """Texts from anywhere in a result say `~`, and paths that only begin alike stay whole."""
    path = tmp_path / "result.json"
    home = pwd.getpwuid(os.getuid()).pw_dir
    told = f'File "{home}/venv/keras.py", HOME={home}, {home}2/x'
    failure = {"kind": "OSError", "message": home, "traceback": told}
    protocol.write_result(path, {"outcome": "failed", "failure": failure})
    read = codec.decode(path.read_bytes(), Result, source=path, schema=RESULT_SCHEMA)
    assert read.failure is not None
    expected = f'File "~/venv/keras.py", HOME=~, {home}2/x'
    assert ("~", expected) == (read.failure.message, read.failure.traceback)


def test_telling_variables_are_those_that_a_worker_gets(tmp_path: Path) -> None:
    """The guest records the settings that the host lets through, and lists no other."""
    set_by_rows = {"KERAS_BACKEND"}
    telling = set(importlib.import_module("workloads.fingerprint").TELLING) - set_by_rows
    told = {f"{prefix}X": "1" for prefix in telling}
    assert told.items() <= worker_variables(told, home=tmp_path, device="gpu").items()
    passed = {pattern[:-1] for pattern in ALLOWED if pattern.endswith("*")}
    changes_no_number = {"LC_", "SSL_CERT_"}
    assert passed - changes_no_number == telling


def test_a_failed_write_leaves_the_old_name_alone(protocol: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A result that cannot be encoded never stands under its own name, not even in part."""
    path = tmp_path / "result.json"
    with pytest.raises(TypeError):
        protocol.write_result(path, {"outcome": "ok", "metadata": {"odd": object()}})
    assert not path.exists()


def test_unknown_fields_are_refused(protocol: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A newer host's wish that this guest does not know is never ignored."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"schema": request.REQUEST_SCHEMA, "warp": 9}), encoding="utf-8")
    with pytest.raises(protocol.Stopped, match="unknown field 'warp'"):
        protocol.read_request(path)
