"""A failed uv is told apart by its cause; the texts are uv's own, as it printed them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from orchestrator.environments import uv
from orchestrator.errors import EnvironmentFailedError
from orchestrator.process import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HASH = """error: Failed to download `six==1.17.0`
  cause: Hash mismatch for `six==1.17.0`

         Expected:
           sha256:0000000000000000000000000000000000000000000000000000000000000000
"""
OFFLINE = """error: No solution found when resolving dependencies
  cause: Because six was not found in the cache and you require six==1.17.0, we can conclude that
hint: Packages were unavailable because the network was disabled. When the network is disabled,
"""
REFUSED = """error: Failed to fetch: http://127.0.0.1:9/simple/six/
  cause: error sending request for url (http://127.0.0.1:9/simple/six/)
  cause: Connection refused (os error 111)
"""
OLDER_UV = "error: Failed to fetch: `https://index/simple/six/`\n  Caused by: dns error\n"
BROKE_OFF = "error: Failed to download `keras==2.2.5`\n  cause: request or response body error\n"
FULL = """error: Failed to install: tensorflow-1.14.0-cp37-cp37m-manylinux1_x86_64.whl
  cause: failed to copy file: No space left on device (os error 28)
"""
BUILD = f"""error: Failed to build `gast==0.2.2`
  cause: The build backend returned an error
{"output" * 2000}
hint: Build failures usually indicate a problem with the package or the build environment
"""
BUILD_OFFLINE = """error: Failed to download and build `gast==0.2.2`
  cause: Failed to resolve requirements from `setup.py` build
  cause: Failed to fetch: https://index/simple/setuptools/
"""
NO_WHEEL = """error: No solution found when resolving dependencies
  cause: Because tensorflow==2.21.0 has no wheels with a matching Python implementation tag (e.g.,
      `cp37`) and you require tensorflow==2.21.0, we can conclude that
"""
NO_VERSION = """error: No solution found when resolving dependencies
  cause: Because there is no version of six==99.0 and you require six==99.0, we can conclude that
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (HASH, "A package is not the one that the lock was made with (six==1.17.0)."),
        (OFFLINE, "The package index could not be reached."),
        (REFUSED, "The package index could not be reached (http://127.0.0.1:9/simple/six/)."),
        (OLDER_UV, "The package index could not be reached (https://index/simple/six/)."),
        (BROKE_OFF, "The package index could not be reached."),
        (FULL, "The disk is full."),
        (BUILD, "A package that has no wheel could not be built (gast==0.2.2)."),
        (
            BUILD_OFFLINE,
            "The package index could not be reached (https://index/simple/setuptools/).",
        ),
        (
            NO_WHEEL,
            "The index does not have a package that the lock names (tensorflow==2.21.0).",
        ),
        (NO_VERSION, "The index does not have a package that the lock names (six==99.0)."),
    ],
)
def test_cause(tmp_path: Path, said: str, expected: str) -> None:
    """Each cause has its own message, with a reason, a remedy and the log."""
    log = tmp_path / "log"
    log.write_text(said, encoding="utf-8")
    error = uv.diagnose(ToolError(["uv"], "failed with exit code 1", said[-4000:]), log)
    assert expected == error.what
    assert error.why
    assert error.fix.endswith(f"Log: {log}")


def test_unknown_failure_is_quoted(tmp_path: Path) -> None:
    """A failure that is not known shows uv's own last lines, not a guess."""
    tail = "\n".join(f"line {number}" for number in range(9))
    error = uv.diagnose(ToolError(["uv"], "failed with exit code 2", tail), tmp_path / "log")
    assert "uv failed with exit code 2." == error.what
    assert "line 4\nline 5\nline 6\nline 7\nline 8" == error.why


def test_uv_runs_where_no_project_is(tmp_path: Path) -> None:
    """The real uv is started in the folder given, with a cleaned environment."""
    seen: list[tuple[list[str], Path | None]] = []

    def run(
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        del log, timeout_s
        seen.append(([str(word) for word in command], cwd))
        assert not uv.DROPPED & set(env)
        raise ToolError(["uv"], "failed with exit code 1", FULL)

    with pytest.raises(EnvironmentFailedError, match="The disk is full"):
        uv.uv(["--version"], log=tmp_path / "log", cwd=tmp_path, run=run)
    ((words, cwd),) = seen
    assert "--version" == words[1]
    assert tmp_path == cwd


def test_uv_is_found_by_many_at_once() -> None:
    """Two environments are made side by side: whoever asks first must not trip the other."""
    code = (
        "import sys, threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from orchestrator.environments.uv import binary\n"
        "sys.setswitchinterval(1e-6)\n"
        "ready = threading.Barrier(8)\n"
        "def find(_):\n"
        "    ready.wait()\n"
        "    return binary()\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(len(set(pool.map(find, range(8)))))\n"
    )
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True
        )
        assert (0, "1\n", "") == (done.returncode, done.stdout, done.stderr)
