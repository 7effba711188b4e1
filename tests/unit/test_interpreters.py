"""Interpreters: what is on the machine comes first, and only what runs and fits is taken."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.environments import downloads, interpreters
from orchestrator.environments.interpreters import Interpreter, Way
from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.process import ToolError, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GOOD = {
    "version": "3.7.16",
    "build": "3.7.16 (default)",
    "machine": "x86_64",
    "bits": 64,
    "implementation": "CPython",
}


def fake_python(path: Path, **facts: object) -> Path:
    """A script that answers as an interpreter with these facts would."""
    return script(path, f"echo '{json.dumps({**GOOD, **facts})}'")


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


class NoUv:
    """Runs what it is given, except uv, which fails as if there were no network."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def __call__(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        """Run an interpreter; refuse uv."""
        words = [str(word) for word in command]
        if Path(words[0]).name == "uv":
            self.commands.append(words[1:])
            raise ToolError(words, "failed with exit code 2", "error: dns error")
        return run_tool(command, env=env, log=log, timeout_s=timeout_s, cwd=cwd)


def find(version: str, folder: Path, **environ: str) -> Interpreter:
    """Search with these variables, without a network."""
    folder.mkdir(exist_ok=True)
    (folder / "blocked").write_text("a file where the folder of downloads should be")
    return interpreters.find(
        version,
        configured={},
        downloads_folder=folder / "blocked",
        environ={"PATH": "", **environ},
        run=NoUv(),
    )


def test_this_python_is_found_fit(tmp_path: Path) -> None:
    """A real interpreter passes, with its exact version and build."""
    import platform  # noqa: PLC0415
    import sys  # noqa: PLC0415

    version = ".".join(platform.python_version_tuple()[:2])
    python = Path(sys.executable)
    found = interpreters.find(version, configured={version: python}, downloads_folder=tmp_path)
    assert Interpreter(path=python, version=platform.python_version(), build=sys.version) == found


def test_newest_patch_of_pyenv_wins(tmp_path: Path) -> None:
    """The real binaries of pyenv are taken, by patch number and not by spelling."""
    for patch in ("9", "16", "2"):
        fake_python(tmp_path / f"versions/3.7.{patch}/bin/python", version=f"3.7.{patch}")
    fake_python(tmp_path / "versions/3.7.99-dev/bin/python")
    fake_python(tmp_path / "versions/3.70.1/bin/python", version="3.70.1")
    found = find("3.7", tmp_path / "downloads", PYENV_ROOT=str(tmp_path))
    assert ("3.7.16", tmp_path / "versions/3.7.16/bin/python") == (found.version, found.path)


def test_pyenv_in_the_home_folder(tmp_path: Path) -> None:
    """Without PYENV_ROOT, pyenv's usual place is looked at."""
    python = fake_python(tmp_path / ".pyenv/versions/3.7.16/bin/python")
    assert python == find("3.7", tmp_path / "downloads", HOME=str(tmp_path)).path


def test_shims_that_do_not_run_are_passed_over(tmp_path: Path) -> None:
    """A pyenv shim of an inactive version does not hide the Python behind it on PATH."""
    script(tmp_path / "shims/python3.7", "echo 'pyenv: not found' >&2; exit 127")
    real = fake_python(tmp_path / "usr/bin/python3.7")
    path = f"{tmp_path}/shims:{tmp_path}/missing::{tmp_path}/usr/bin"
    assert real == find("3.7", tmp_path / "downloads", PATH=path).path


def test_configured_path_comes_first(tmp_path: Path) -> None:
    """What the user configured is taken, whatever else there is."""
    fake_python(tmp_path / "versions/3.7.17/bin/python", version="3.7.17")
    mine = fake_python(tmp_path / "mine/python")
    found = interpreters.find(
        "3.7",
        configured={"3.7": mine},
        downloads_folder=tmp_path,
        environ={"PYENV_ROOT": str(tmp_path)},
    )
    assert mine == found.path


def test_configured_path_must_be_fit(tmp_path: Path) -> None:
    """A configured path that is wrong is an error, not a reason to take another Python."""
    other = fake_python(tmp_path / "python", version="3.8.1")
    with pytest.raises(UsageError, match=r"cannot be used: .*python is Python 3\.8\.1\."):
        interpreters.find("3.7", configured={"3.7": other}, downloads_folder=tmp_path)


def test_configured_version_that_nothing_uses() -> None:
    """A version that no environment has would be ignored: it is refused, with the nearest."""
    interpreters.check_configured(["3.8", "3.7"], versions={"3.7", "3.8"})
    with pytest.raises(UsageError) as caught:
        interpreters.check_configured(["3.7", "3.7.16"], versions={"3.7", "3.8"})
    expected = "[interpreters] names Python '3.7.16', which no environment uses. Did you mean 3.7?"
    assert expected == caught.value.what


def test_libraries_of_a_module_are_found(tmp_path: Path) -> None:
    """A Python that needs the user's LD_LIBRARY_PATH runs, and gets no other of the variables."""
    answer = f"echo '{json.dumps(GOOD)}'"
    needs = f'[ "$LD_LIBRARY_PATH" = /module/lib ] && [ -z "$PYTHONHOME" ] && {answer}'
    python = script(tmp_path / "bin/python3.7", needs)
    found = find(
        "3.7",
        tmp_path / "downloads",
        PATH=str(python.parent),
        LD_LIBRARY_PATH="/module/lib",
        PYTHONHOME="/elsewhere",
    )
    assert python == found.path


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"version": "3.8.18"}, "is Python 3.8.18"),
        ({"machine": "aarch64"}, "is a 64-bit aarch64 build; TensorFlow's wheels are for x86-64"),
        ({"bits": 32}, "is a 32-bit x86_64 build; TensorFlow's wheels are for x86-64"),
        ({"implementation": "PyPy"}, "is PyPy; TensorFlow needs CPython"),
    ],
)
def test_unfit_interpreters(tmp_path: Path, facts: dict[str, object], expected: str) -> None:
    """Another version, machine, width or implementation is passed over, and said so."""
    python = fake_python(tmp_path / "python", **facts)
    assert expected == interpreters.inspect(python, "3.7")


def test_what_is_no_interpreter(tmp_path: Path) -> None:
    """A program that answers something else, or is not there, is passed over."""
    assert "is not a Python: it printed something else" == interpreters.inspect(
        script(tmp_path / "python", "echo hello"), "3.7"
    )
    assert "does not run: could not be started: No such file or directory" == (
        interpreters.inspect(tmp_path / "none", "3.7")
    )
    assert "does not run: failed with exit code 127 (pyenv: not found)" == (
        interpreters.inspect(
            script(tmp_path / "shim", "echo 'pyenv: not found' >&2; exit 127"), "3.7"
        )
    )


def test_failure_lists_what_was_tried_and_every_way(tmp_path: Path) -> None:
    """With no Python to be had, one message says what was tried and how to get one."""
    shim = script(tmp_path / "shims/python3.7", "exit 127")
    with pytest.raises(EnvironmentFailedError, match=r"no Python 3\.7") as caught:
        find("3.7", tmp_path / "downloads", PATH=str(shim.parent))
    why, fix = caught.value.why, caught.value.fix
    assert f"- PATH: {shim} does not run" in why
    assert "- pyenv: none" in why
    assert "- uv's download: uv offers none before 3.8" in why
    assert "- portable build: " in why
    for way in ("pyenv install 3.7", "conda create", "portable build", "[interpreters]"):
        assert way in fix


def test_failed_download_is_part_of_the_message(tmp_path: Path) -> None:
    """A download that cannot be reached is a line of the message, not a traceback."""
    with pytest.raises(EnvironmentFailedError) as caught:
        find("3.9", tmp_path / "downloads")
    assert "- uv's download: it could not be downloaded: error: dns error" in caught.value.why


def test_uv_gets_no_download_when_it_only_searches() -> None:
    """Pythons that uv has already are looked for without downloading any."""
    run = NoUv()
    assert [] == list(downloads.uv_managed("3.9", run=run))
    assert "--no-python-downloads" in run.commands[0]


def test_ways_are_tried_lazily(tmp_path: Path) -> None:
    """No download begins while an earlier way has something."""
    good = fake_python(tmp_path / "python")

    def never() -> Iterator[Path]:
        pytest.fail("a later way was tried")

    ways = [Way("first", lambda: iter([tmp_path / "none", good])), Way("second", never)]
    assert good == interpreters.first_fit("3.7", ways).path


def installer(request: str, destination: Path, *, arch: str, platform: str) -> None:
    """Unpack a portable build that is a script."""
    assert ("3.7", "x86_64", "linux") == (request, arch, platform)
    fake_python(destination / "bin" / "python3.7")


def test_portable_build_is_installed_once(tmp_path: Path) -> None:
    """A portable build is downloaded whole, and found again afterwards."""
    (python,) = downloads.portable("3.7", tmp_path, install=installer)
    assert "3.7.16" == _version(python)

    def never(request: str, destination: Path, *, arch: str, platform: str) -> None:
        pytest.fail(f"downloaded again: {request} {destination} {arch} {platform}")

    assert [python] == list(downloads.portable("3.7", tmp_path, install=never))


def test_broken_download_leaves_nothing(tmp_path: Path) -> None:
    """A download that breaks off is never taken for an interpreter, and leaves no rest."""

    def broken(request: str, destination: Path, *, arch: str, platform: str) -> None:
        installer(request, destination, arch=arch, platform=platform)
        raise ConnectionError("connection lost")

    with pytest.raises(downloads.UnavailableError, match="connection lost"):
        list(downloads.portable("3.7", tmp_path, install=broken))
    assert [".cpython-3.7.lock"] == [path.name for path in tmp_path.iterdir()]
    (python,) = downloads.portable("3.7", tmp_path, install=installer)
    assert "3.7.16" == _version(python)


def test_rest_of_a_killed_download_is_removed(tmp_path: Path) -> None:
    """What a killed command left half unpacked is cleared away by the next."""
    stale = tmp_path / ".cpython-3.7.0123.tmp"
    stale.mkdir()
    list(downloads.portable("3.7", tmp_path, install=installer))
    assert not stale.exists()


def _version(python: Path) -> str:
    found = interpreters.inspect(python, "3.7")
    assert isinstance(found, Interpreter)
    return found.version


def test_what_an_interpreter_said_holds_while_its_file_stays_the_same(tmp_path: Path) -> None:
    """It is run once, and again when it was replaced; a script is run every time."""
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    shutil.copy(Path(sys.executable).resolve(), program)
    asked: list[str] = []

    def run(command: Sequence[str | Path], **_: object) -> str:
        asked.append(Path(command[0]).name)
        return json.dumps(GOOD)

    def find(path: Path) -> Interpreter:
        way = Way("here", lambda: iter([path]))
        return interpreters.first_fit("3.7", [way], environ={}, run=run, known=tmp_path / "known")

    assert find(program) == find(program)
    assert ["python3"] == asked
    program.unlink()
    shutil.copy(Path(sys.executable).resolve(), program)
    find(program)
    shim = script(tmp_path / "bin" / "shim", "exit 0")
    find(shim)
    find(shim)
    assert ["python3", "python3", "shim", "shim"] == asked


def test_a_version_that_is_not_wanted_is_not_remembered_as_fit(tmp_path: Path) -> None:
    """What was found fit for one version is asked again for another."""
    program = tmp_path / "python"
    shutil.copy(Path(sys.executable).resolve(), program)

    def run(command: Sequence[str | Path], **_: object) -> str:
        assert command
        return json.dumps(GOOD)

    way = Way("here", lambda: iter([program]))
    interpreters.first_fit("3.7", [way], environ={}, run=run, known=tmp_path / "known")
    with pytest.raises(EnvironmentFailedError, match="There is no Python 3"):
        interpreters.first_fit("3.8", [way], environ={}, run=run, known=tmp_path / "known")
