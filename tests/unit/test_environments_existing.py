"""Somebody's own interpreter is used as it is, and refused with a reason where it cannot be."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import environments, matrix
from orchestrator.environments import described as contents
from orchestrator.environments import existing, locks
from orchestrator.environments.options import Options, Wanted
from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.model.plan import Limits
from orchestrator.model.request import Request

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.matrix import Row

LIMITS = Limits(first_call_s=30.0, job_s=30.0)
FACTS = {
    "framework": {"name": "tensorflow", "version": "1.14.1"},
    "apis": {"keras": "2.2.5", "tf.keras": "2.2.4-tf"},
    "packages": {"keras": "2.2.5", "absl-py": "2.1.0", "tensorflow": "1.14.1"},
}
# Answers with what a real guest would have found, and what it saw of its own variables.
GUEST = """
import json, os, sys
request = json.load(open(sys.argv[1]))
open(os.path.dirname(sys.argv[0]) + "/seen.json", "w").write(
    json.dumps({{"request": request, "variables": dict(os.environ)}}))
json.dump({{"schema": "stackrace.result/1", **{answer!r}}}, open(sys.argv[2], "w"))
"""


def guest(folder: Path, answer: dict[str, Any]) -> Path:
    """A guest that gives this answer to whatever it is asked."""
    path = folder / "guest.py"
    path.write_text(GUEST.format(answer=answer), encoding="utf-8")
    return path


def described(folder: Path, facts: dict[str, Any], *, environ: dict[str, str] | None = None) -> Row:
    """This test's own interpreter, in which a guest finds `facts`."""
    return existing.describe(
        sys.executable,
        identifier="mine",
        guest=guest(folder, {"outcome": "ok", "metadata": facts}),
        log=folder / "logs" / "mine.log",
        known=matrix.load().rows.values(),
        environ=environ or {},
    )


def script(folder: Path, text: str) -> str:
    """An executable of these lines."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_what_is_found_becomes_a_row(tmp_path: Path) -> None:
    """Versions, apis, packages and the native mode are those that the guest found."""
    row = described(tmp_path, FACTS)
    assert ("mine", "1.14.1", "2.2.5", "graph") == (
        row.identifier,
        row.tensorflow,
        row.keras,
        row.native_mode,
    )
    assert ("keras", "tf.keras") == row.apis
    assert ("keras==2.2.5", "absl-py==2.1.0", "tensorflow==1.14.1") == row.packages["cpu"]
    assert {} == row.variables
    assert "describe" == json.loads((tmp_path / "seen.json").read_text())["request"]["action"]


def test_what_is_impossible_is_known_from_the_same_versions(tmp_path: Path) -> None:
    """A row of the same minor versions says what cannot run; for other versions nothing is."""
    assert matrix.load().rows["tf114"].impossible == described(tmp_path, FACTS).impossible
    other = {**FACTS, "apis": {"keras": "2.3.1"}}
    assert () == described(tmp_path, other).impossible


def test_keras_on_jax_keeps_its_backend(tmp_path: Path) -> None:
    """Where Keras computes with JAX its workers are told so, and it has no graph mode."""
    facts = {
        "framework": {"name": "jax", "version": "0.10.2"},
        "apis": {"keras": "3.15.1"},
        "packages": {},
    }
    row = described(tmp_path, facts)
    assert ("", "0.10.2", {"KERAS_BACKEND": "jax"}) == (row.tensorflow, row.jax, row.variables)
    assert ("eager", "run_eagerly") == row.modes


def test_keras_backend_is_passed_on_when_it_was_set(tmp_path: Path) -> None:
    """The user's KERAS_BACKEND reaches the guest, and stays with the environment."""
    row = described(tmp_path, FACTS, environ={"KERAS_BACKEND": "tensorflow"})
    seen = json.loads((tmp_path / "seen.json").read_text())["variables"]
    assert "tensorflow" == seen["KERAS_BACKEND"]
    assert {"KERAS_BACKEND": "tensorflow"} == row.variables


def test_it_runs_as_it_is_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers keep the modules' library path, and compile nothing into the environment."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/module/lib")
    row = described(tmp_path, FACTS)
    prepared = environments.prepare(
        [Wanted(row=row, backend="existing", source=sys.executable)],
        variant="cpu",
        guest=tmp_path / "guest.py",
        options=Options(cache=tmp_path / "cache", interpreters={}),
        say=lambda text: pytest.fail(f"said {text}"),
    )["mine"]
    work = tmp_path / "work"
    work.mkdir()
    request = Request(action="measure", environment="mine", phase_path=str(work / "phases"))
    ended = prepared.run(request, work=work, log=tmp_path / "log", limits=LIMITS)
    seen = json.loads((tmp_path / "seen.json").read_text())["variables"]
    assert ("/opt/module/lib", "1") == (
        seen["LD_LIBRARY_PATH"],
        seen["PYTHONDONTWRITEBYTECODE"],
    )
    assert ("existing", None, 0) == (prepared.backend, prepared.image_digest, ended.exit_code)
    assert not (tmp_path / "cache").exists()


def prepared_at(folder: Path, path: str) -> existing.ExistingEnvironment:
    """The environment of an interpreter at `path`."""
    return existing.environment(
        described(folder, FACTS),
        path,
        guest=folder / "guest.py",
        gpus=("GPU-1",),
        cuda_caches=folder / "cuda",
    )


def test_an_interpreter_that_vanished_stops_the_run(tmp_path: Path) -> None:
    """It is no outcome of a job: the run ends with code 5, and can go on when it is back."""
    made = prepared_at(tmp_path, script(tmp_path, "exit 0"))
    made.path.unlink()
    request = Request(action="measure", environment="mine", phase_path=str(tmp_path / "phases"))
    with pytest.raises(EnvironmentFailedError, match="mine cannot run any more") as caught:
        made.run(request, work=tmp_path, log=tmp_path / "log", limits=LIMITS)
    assert ("--resume" in caught.value.fix, 5) == (True, caught.value.exit_code)


def test_jobs_on_a_gpu_share_what_is_compiled_for_it(tmp_path: Path) -> None:
    """The job's home goes with it; the CUDA cache, outside of it, stays for the next one."""
    made = prepared_at(tmp_path, sys.executable)
    work = tmp_path / "work"
    work.mkdir()
    request = Request(
        action="measure", environment="mine", phase_path=str(work / "phases"), device="gpu"
    )
    made.run(request, work=work, log=tmp_path / "log", limits=LIMITS)
    seen = json.loads((tmp_path / "seen.json").read_text())["variables"]
    cache = tmp_path / "cuda" / f"mine-existing-{made.lock_digest[:12]}" / "GPU-1"
    assert (str(cache), "GPU-1") == (seen["CUDA_CACHE_PATH"], seen["CUDA_VISIBLE_DEVICES"])
    assert cache.is_dir()


def test_digest_is_that_of_the_packages(tmp_path: Path) -> None:
    """The order in which packages are found does not matter; a version does."""
    row = described(tmp_path, FACTS)
    turned = msgspec.structs.replace(row, packages={"cpu": row.packages["cpu"][::-1]})
    newer = msgspec.structs.replace(row, packages={"cpu": ("keras==2.2.6",)})
    assert contents.digest(row) == contents.digest(turned)
    assert contents.digest(row) != contents.digest(newer)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 3", "does not run: failed with exit code 3"),
        ("echo hello", "is not a Python: it printed something else"),
        ('echo "Unknown option: -I" >&2; exit 2', "is older than Python 3.4"),
        (
            (
                """echo '{"version": "3.10.1", "build": "", "machine": "x86_64", "bits": 64, """
                """"implementation": "PyPy"}'"""
            ),
            "is PyPy; TensorFlow needs CPython",
        ),
        (
            (
                """echo '{"version": "3.5.2", "build": "", "machine": "x86_64", "bits": 64, """
                """"implementation": "CPython"}'"""
            ),
            "is Python 3.5.2",
        ),
        (
            (
                """echo '{"version": "3.11.1", "build": "", "machine": "aarch64", "bits": 64, """
                """"implementation": "CPython"}'"""
            ),
            "is a 64-bit aarch64 build",
        ),
    ],
)
def test_what_is_no_fit_python_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """What cannot run the worker is bad input, named with what is wrong with it."""
    with pytest.raises(UsageError, match=problem) as caught:
        existing.describe(
            script(tmp_path, text), identifier="mine", guest=tmp_path, log=tmp_path / "log"
        )
    assert "bin/python" in caught.value.fix


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/etc", "is a folder"),
        ("/no/such/python", "No such file"),
        ("~nosuchuser/bin/python", "no such user"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, path: str, problem: str) -> None:
    """A folder, a missing file and an unknown user are told apart."""
    with pytest.raises(UsageError, match=problem):
        existing.describe(path, identifier="mine", guest=tmp_path, log=tmp_path / "log")


def test_a_python_without_tensorflow_is_refused(tmp_path: Path) -> None:
    """What the guest says is missing is told, and that nothing is installed for the user."""
    failure = {"kind": "import", "message": "No module named 'tensorflow'\nmore"}
    with pytest.raises(EnvironmentFailedError, match="No module named 'tensorflow'") as caught:
        existing.describe(
            sys.executable,
            identifier="mine",
            guest=guest(tmp_path, {"outcome": "failed", "failure": failure}),
            log=tmp_path / "log",
        )
    assert "install what it lacks" in caught.value.fix


def test_a_python_with_nothing_to_race_is_refused(tmp_path: Path) -> None:
    """A framework without any Keras is nothing to race."""
    facts = {"framework": {"name": "torch", "version": "2.15.0"}, "apis": {}, "packages": {}}
    with pytest.raises(EnvironmentFailedError, match="no TensorFlow and no Keras"):
        described(tmp_path, facts)


def test_what_differs_from_the_row_is_told(tmp_path: Path) -> None:
    """Framework, Keras, Python and packages are compared with the row of the same name."""
    row = msgspec.structs.replace(matrix.load().rows["tf114"], python="2.7")
    text = "# tf114\nabsl-py==2.1.0 \\\nkeras==2.2.4 \\\ntensorflow==1.14.0 \\\nzipp==1.0\n"
    (tmp_path / "tf114-cpu.txt").write_text(text, encoding="utf-8")
    facts = {**FACTS, "apis": {"keras": "2.2.4"}}
    found = msgspec.structs.replace(described(tmp_path, facts), python="3.7.16")
    assert [
        "TensorFlow 1.14.1 where tf114 has TensorFlow 1.14.0",
        "Keras 2.2.4 where tf114 has Keras 2.2.5",
        "Python 3.7.16 where tf114 has 2.7",
        (
            "3 packages not as in the lock of tf114: keras 2.2.5 for 2.2.4, tensorflow 1.14.1 for "
            "1.14.0, zipp missing for 1.0"
        ),
    ] == existing.differences(row, found, folder=tmp_path)


def test_a_row_itself_does_not_differ(tmp_path: Path) -> None:
    """What holds the row's own lock has no differences."""
    row = matrix.load().rows["tf114"]
    pins = locks.read(row, "cpu").pins
    facts = {
        "framework": {"name": "tensorflow", "version": "1.14.0"},
        "apis": {"keras": "2.2.5"},
        "packages": {name.replace("-", "_").upper(): version for name, version in pins.items()},
    }
    found = msgspec.structs.replace(described(tmp_path, facts), python="3.7.3")
    assert [] == existing.differences(row, found)
