"""The command as a process of its own: imports, streams, signals, other systems."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator import cli

ROOT = str(Path(cli.__file__).parents[2])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in an empty folder: a stackrace.toml of somebody's own changes nothing."""
    monkeypatch.chdir(tmp_path)


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run a snippet in a fresh interpreter that finds the package and nothing else."""
    return subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ROOT},
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        *([name, "--help"] for name in ("run", "doctor", "clean")),
        ["list"],
        ["--version"],
    ],
)
def test_quick_commands_import_nothing_heavy(words: list[str]) -> None:
    """Help and lists come at once: nothing heavy lies on their way."""
    code = (
        "import sys\n"
        "from orchestrator import __main__\n"
        f"code = __main__.run({words!r})\n"
        "heavy = {'pandas', 'scipy', 'numpy', 'pyarrow', 'docker', 'pynvml', 'rich'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy or code else 0)"
    )
    done = python(code)
    assert (0, "") == (done.returncode, done.stderr)


def test_help_does_not_depend_on_docstrings() -> None:
    """Python that is told to drop docstrings (PYTHONOPTIMIZE=2) shows the same help."""
    code = (
        "import sys; from orchestrator import cli\n"
        "missing = [name for name, one in cli.stackrace.commands.items() if not one.help]\n"
        "sys.exit(str(missing) if missing or not cli.stackrace.help else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ROOT},
    )
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("words", ["list", "--help", "run --help"])
def test_reader_that_leaves_is_no_error(words: str) -> None:
    """`stackrace list | head -1` ends quietly, with code 0."""
    command = f"set -o pipefail; {sys.executable} -m orchestrator {words} | head -1 >/dev/null"
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin"},
    )
    assert (0, "") == (done.returncode, done.stderr)


def test_letters_that_the_locale_has_not(tmp_path: Path) -> None:
    """A path with an umlaut on an ASCII terminal is shown escaped, not a crash."""
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "status", "m\u00fcll"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": ROOT, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )
    assert done.returncode == 2
    assert "is not a run folder" in done.stderr


@pytest.mark.parametrize("missing", ["signal.SIGKILL", "signal.SIGHUP", "os.pidfd_open"])
def test_other_platforms_are_refused_plainly(missing: str) -> None:
    """On a system without Linux's signals and calls: the refusal, code 5, no traceback."""
    code = (
        "import os, platform, signal, sys\n"
        f"del {missing}\n"
        "platform.system = lambda: 'Windows'\n"
        "platform.machine = lambda: 'AMD64'\n"
        "from orchestrator.__main__ import run\n"
        "sys.exit(run(['list']))"
    )
    done = python(code)
    assert done.returncode == 5
    assert "this is Windows AMD64" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_while_preparing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """A signal before anything was measured ends the command with its code, and nothing is left."""
    hanging = tmp_path / "python3.7"
    hanging.write_text("#!/bin/sh\necho started > started\nexec sleep 60\n")
    hanging.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "prepare", "tf114"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={
            "PYTHONPATH": ROOT,
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "PYENV_ROOT": "/nowhere",
            "HOME": str(tmp_path),
            "STACKRACE_CACHE": str(tmp_path / "cache"),
        },
    )
    for _ in range(1000):
        if process.poll() is not None or list(tmp_path.rglob("started")):
            break
        time.sleep(0.02)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert (code, f"stackrace: exit code {code}") == (process.returncode, told.splitlines()[-1])
    assert f"Stopped ({number.name})" in told


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
def test_closed_streams_change_no_code(closed: str) -> None:
    """Whoever closes our streams gets the command's own exit code."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m orchestrator rum {closed}"],
        check=False,
        env={"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [["list"], ["--help"]])
def test_an_output_that_takes_nothing_is_told(words: list[str]) -> None:
    """Not as a disk on which environments have no room; and nothing follows the message."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", *words],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ROOT},
        )
    first, *rest = done.stderr.splitlines()
    assert (5, "stackrace: The output cannot be written: No space left on device.") == (
        done.returncode,
        first,
    )
    assert "stackrace: exit code 5" == rest[-1]
