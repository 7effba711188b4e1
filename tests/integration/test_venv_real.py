"""Environments with the real TensorFlow: what is in them, and what no interruption can break."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from orchestrator import environments as stage
from orchestrator import matrix
from orchestrator.environments import locks
from orchestrator.environments.options import Options, Wanted
from orchestrator.environments.probe import probe
from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.environments.venv import VenvEnvironment
    from orchestrator.model.matrix import Row

    Environments = dict[str, VenvEnvironment]

pytestmark = pytest.mark.real_tensorflow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0
# Prepares tf114: argv is the cache and the guest. What is said goes to stdout.
PREPARE = """
import sys
from pathlib import Path
from orchestrator import environments, matrix
from orchestrator.environments.options import Options, Wanted
environments.prepare(
    [Wanted(row=row) for row in matrix.select(matrix.load(), ["tf114"])],
    variant="cpu",
    guest=Path(sys.argv[2]),
    options=Options(cache=Path(sys.argv[1]), interpreters={}),
    say=lambda text: print(text, flush=True),
)
"""
# Measures for minutes: argv is the environment, the guest and a work folder.
MEASURE = """
import sys
from pathlib import Path
from orchestrator.environments.venv import VenvEnvironment
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request
folder, guest, work = map(Path, sys.argv[1:])
VenvEnvironment(
    identifier="tf114", lock_digest="0", python="3.7", folder=folder, guest=guest
).run(
    Request(
        action="measure",
        environment="tf114",
        expected=Expected(tensorflow="1.14.0", keras="2.2.5"),
        iterations=10**6,
        budget_s=600.0,
        phase_path=str(work / "phases"),
    ),
    work=work,
    log=work.with_suffix(".log"),
    limits=Limits(first_call_s=600.0, job_s=600.0),
)
"""


def python(code: str, *arguments: Path) -> subprocess.Popen[str]:
    """Run code that uses this program in a process of its own."""
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def wait_for(what: Callable[[], bool]) -> None:
    """Wait until it holds, and fail when it never does."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def site_packages(folder: Path) -> Path:
    """Where the packages of an environment are."""
    return folder / "lib" / "python3.7" / "site-packages"


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache for one test, removed at once: pytest keeps its folders, and this is 0.7 GB."""
    folder = tmp_path / "cache"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tf114() -> Row:
    """The row of the oldest pair."""
    return matrix.load().rows["tf114"]


@pytest.mark.parametrize("identifier", ["tf114", "tf20"])
def test_packages_are_the_locks(environments: Environments, identifier: str) -> None:
    """What is installed is what the lock pins: all of it, and nothing else."""
    found = {
        re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower(): package.version
        for package in metadata.distributions(
            path=[str(site_packages(environments[identifier].folder))]
        )
    }
    assert locks.read(matrix.load().rows[identifier], "cpu").pins == found


@pytest.mark.parametrize("identifier", ["tf114", "tf20"])
def test_everything_is_byte_compiled(environments: Environments, identifier: str) -> None:
    """No job pays for compiling TensorFlow and Keras."""
    folder = site_packages(environments[identifier].folder)
    sources = [path for name in ("keras", "tensorflow") for path in folder.glob(f"{name}*/**/*.py")]
    assert 1000 < len(sources)
    assert [] == [
        path
        for path in sources
        if not (path.parent / "__pycache__" / f"{path.stem}.cpython-37.pyc").exists()
    ]


def test_probe_names_both_versions(environments: Environments, tf114: Row, tmp_path: Path) -> None:
    """An environment that holds another TensorFlow than its row is refused, with both named."""
    other = msgspec.structs.replace(tf114, tensorflow="1.15.5")
    with pytest.raises(EnvironmentFailedError, match=r"1\.14\.0.*1\.15\.5|1\.15\.5.*1\.14\.0"):
        probe(environments["tf114"], other, log=tmp_path / "log")


def test_another_file_under_a_pinned_name_is_refused(
    environments: Environments, tf114: Row, zipapp: Path, tmp_path: Path
) -> None:
    """A lock whose hash does not match says so, and leaves no environment."""
    assert "tf114" in environments  # this machine has a Python and an index
    lock = locks.read(tf114, "cpu")
    text = re.sub(r"(six==\S+ \\\n)(    --hash=\S+( \\)?\n)+", rf"\1{wrong_hash()}", lock.text)
    (tmp_path / lock.path.name).write_text(text, encoding="utf-8")
    with pytest.raises(EnvironmentFailedError, match="the lock was made with") as caught:
        stage.prepare(
            [Wanted(row=tf114)],
            variant="cpu",
            guest=zipapp,
            options=Options(cache=tmp_path / "cache", interpreters={}, locks=tmp_path),
            say=lambda _: None,
        )
    assert "six" in caught.value.what
    assert [] == list((tmp_path / "cache" / "environments").glob("tf114*"))


def wrong_hash() -> str:
    """A line of a lock that no file fits."""
    return f"    --hash=sha256:{'0' * 64}\n"


def test_killed_build_is_not_taken_for_a_finished_one(
    environments: Environments, zipapp: Path, cache: Path
) -> None:
    """After SIGKILL in the middle of a build, the next command builds anew and clears the rest."""
    host = python(PREPARE, cache, zipapp)
    wait_for(lambda: any(cache.glob("environments/.tf114-cpu-*.tmp/lib/*/site-packages/*")))
    tools = psutil.Process(host.pid).children(recursive=True)
    host.kill()
    host.communicate()
    for tool in tools:  # as when the machine goes down
        tool.kill()
    psutil.wait_procs(tools)
    assert [] == list(cache.glob("environments/tf114*"))

    again = python(PREPARE, cache, zipapp)
    out, _ = again.communicate(timeout=PATIENCE_S)
    assert 0 == again.returncode
    assert "tf114-cpu: preparing" in out
    assert [environments["tf114"].folder.name] == kept(cache)


def test_two_commands_make_one_environment(
    environments: Environments, zipapp: Path, cache: Path
) -> None:
    """Two commands that prepare the same environment at once build it once, and both go on."""
    hosts = [python(PREPARE, cache, zipapp) for _ in range(2)]
    told = "".join(host.communicate(timeout=PATIENCE_S)[0] for host in hosts)
    assert [0, 0] == [host.returncode for host in hosts]
    assert 1 == told.count("tf114-cpu: preparing")
    assert 1 == told.count("tf114-cpu: another command is preparing it")
    assert [environments["tf114"].folder.name] == kept(cache)


def kept(cache: Path) -> list[str]:
    """What stands in a cache besides lock files."""
    names = (path.name for path in (cache / "environments").iterdir())
    return [name for name in names if not name.endswith((".lock", ".use"))]


def test_worker_dies_with_its_parent(
    environments: Environments, zipapp: Path, tmp_path: Path
) -> None:
    """A host that is killed leaves no worker behind, even in the middle of a measurement."""
    work = tmp_path / "work"
    work.mkdir()
    host = python(MEASURE, environments["tf114"].folder, zipapp, work)
    phases = work / "phases"
    wait_for(lambda: phases.exists() and "warmup" in phases.read_text(encoding="utf-8"))
    workers = psutil.Process(host.pid).children(recursive=True)
    assert workers
    host.kill()
    host.communicate()
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE_S)
    assert [] == alive
