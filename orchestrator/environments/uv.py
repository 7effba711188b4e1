"""uv, as stackrace calls it: its own binary, a cleaned environment, and failures with a cause."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from uv import find_uv_bin

from orchestrator.errors import EnvironmentFailedError
from orchestrator.process import ToolError, run_tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Wheels of 100 to 500 MB on a slow line.
TIMEOUT_S = 3600.0

_MOST_LETTERS = 400
_looking = threading.Lock()
_OFFLINE = "network (?:connectivity is|was) disabled"

# What would change which files are installed, or where to: locks and paths decide that alone. The
# user's indexes, credentials, certificates, proxies and uv's cache folder stay.
DROPPED = frozenset(
    {
        "CONDA_PREFIX",
        "PYTHONHOME",
        "PYTHONPATH",
        "UV_BUILD_CONSTRAINT",
        "UV_CONSTRAINT",
        "UV_EXCLUDE",
        "UV_EXCLUDE_NEWER",
        "UV_LINK_MODE",
        "UV_NO_BINARY",
        "UV_NO_BINARY_PACKAGE",
        "UV_NO_VERIFY_HASHES",
        "UV_OVERRIDE",
        "UV_PRERELEASE",
        "UV_PYTHON",
        "UV_RESOLUTION",
        "UV_SYSTEM_PYTHON",
        "UV_TORCH_BACKEND",
        "VIRTUAL_ENV",
    }
)
# uv does not read pip's settings; where the user has none for uv, pip's index is meant.
FROM_PIP = {
    "PIP_CERT": "SSL_CERT_FILE",
    "PIP_EXTRA_INDEX_URL": "UV_EXTRA_INDEX_URL",
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
}


class Cause(NamedTuple):
    """A cause of failure, by what uv prints when it happens."""

    pattern: str
    what: str
    why: str
    fix: str


class Runner(Protocol):
    """Starts a tool: `orchestrator.process.run_tool`, or a fake."""

    def __call__(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        """Run to the end and return stdout; ToolError for anything but success."""


def variables(user: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that uv gets."""
    kept = {name: value for name, value in user.items() if name not in DROPPED}
    if "UV_INDEX_URL" not in kept:
        for theirs, ours in FROM_PIP.items():
            if theirs in kept:
                kept.setdefault(ours, kept[theirs])
    return kept


def binary() -> str:
    """Where the uv is that was installed with stackrace.

    It is looked for with sysconfig, which fills its table without a lock: of two threads that ask
    it first, one finds half a table.
    """
    with _looking:
        return find_uv_bin()


def uv(
    arguments: Sequence[str | Path],
    *,
    log: Path,
    cwd: Path,
    run: Runner = run_tool,
) -> str:
    """Run uv and return its stdout.

    `cwd` is a folder of ours: in the user's, uv would obey a pyproject.toml that it finds there.
    Raises EnvironmentFailedError with the cause that uv's output shows.
    """
    try:
        return run(
            [binary(), *arguments],
            env=variables(os.environ),
            log=log,
            timeout_s=TIMEOUT_S,
            cwd=cwd,
        )
    except ToolError as error:
        raise diagnose(error, log) from error


def diagnose(error: ToolError, log: Path) -> EnvironmentFailedError:
    """What a failed uv means. The order counts: a failed build may be due to a full disk."""
    said = error.tail  # too short where a build printed pages
    with suppress(OSError):
        said = log.read_text(encoding="utf-8", errors="replace")
    for cause in _CAUSES:
        found = re.search(cause.pattern, said, re.IGNORECASE | re.DOTALL)
        if found:
            named = f" ({found['name']})" if found.groupdict().get("name") else ""
            return EnvironmentFailedError(
                f"{cause.what}{named}.", why=cause.why, fix=f"{cause.fix}\nLog: {log}"
            )
    return EnvironmentFailedError(
        f"uv {error.problem}.", why=_last_lines(error.tail), fix=f"Log: {log}"
    )


def conflict(log: Path) -> str:
    """Why no versions fit together, in uv's own words; empty when that is not what it said."""
    said = ""
    with suppress(OSError):
        said = log.read_text(encoding="utf-8", errors="replace")
    if re.search(_OFFLINE, said, re.IGNORECASE):  # then what it does not have says nothing
        return ""
    found = re.search(r"no solution found[^:]*:(.*?)(?:\n\s*\n|$)", said, re.IGNORECASE | re.DOTALL)
    words = " ".join(re.findall(r"[\x21-\x7e]+", found[1])) if found else ""  # no line drawing
    if len(words) <= _MOST_LETTERS:
        return words
    return f"{words[:_MOST_LETTERS].rpartition(' ')[0]} ..."


def _last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-5:])


_CAUSES = (
    Cause(
        r"no space left on device|os error 28\b|disk quota exceeded",
        "The disk is full",
        "An environment takes 0.5 to 2 GB, and as much again in uv's cache.",
        "Free some space, or name another disk with STACKRACE_CACHE and UV_CACHE_DIR.",
    ),
    Cause(
        r"hash mismatch for `(?P<name>[^`]+)`|hash mismatch",
        "A package is not the one that the lock was made with",
        "The index or a mirror serves another file under this name, or a download broke off.",
        "Run `uv cache clean` and try again. If it stays, use another index: what fails its hash\n"
        "is not what others measured.",
    ),
    Cause(
        rf"failed to fetch: `?(?P<name>[^`\s]+)|{_OFFLINE}|"
        r"error sending request|dns error|connection refused|request failed after|"
        r"operation timed out|failed to download(?! and build)",
        "The package index could not be reached",
        "There is no network, a proxy or mirror is needed, or the index refused the request.",
        "Check the network, UV_DEFAULT_INDEX, HTTPS_PROXY and SSL_CERT_FILE. What was prepared\n"
        "once needs no network.",
    ),
    Cause(
        r"failed to build(?: and install)? `(?P<name>[^`]+)`|failed to build|build backend",
        "A package that has no wheel could not be built",
        "Its build needs setuptools from the index, and sometimes a C compiler.",
        "The log holds the build's own output. On Debian: apt install build-essential.",
    ),
    Cause(
        r"no solution found.*?because\s+(?P<name>\S+)\s+depends\s+on",
        "The versions that were asked for do not fit together",
        "One of these packages excludes another: the log says which.",
        "Leave +keras== out, and the Keras that belongs to the release is taken; for a row of\n"
        "your own, correct its packages and constraints.",
    ),
    Cause(
        r"no solution found.*?(?:you\s+require|no\s+version\s+of)\s+(?P<name>[^\s,]+)|"
        r"no solution found|"
        r"not found in the (?:package )?registry",
        "The index does not have a package that the lock names",
        "A mirror that is not complete, or a package for another machine or Python.",
        "Use an index that carries the release.",
    ),
)
