"""Environments are made once, whole or not at all, and what fails is said in one message.

uv is the real one, with wheels of two files that this test makes, and without a network.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import msgspec
import psutil
import pytest

from orchestrator import environments, matrix
from orchestrator.environments import cache, venvs
from orchestrator.environments.options import Options, Wanted
from orchestrator.environments.venv import VenvEnvironment
from orchestrator.errors import EnvironmentFailedError, StackraceError, StorageError, UsageError

if TYPE_CHECKING:
    from orchestrator.model.execution import Environment
    from orchestrator.model.matrix import Row

ROOT = Path(__file__).parents[2]
PYTHON = ".".join(platform.python_version_tuple()[:2])
# Passes the probe, and counts how often it was asked.
GUEST = """
import json, os, sys
import example
if "interrupted" in open(sys.argv[0]).read().splitlines()[-1]:
    os._exit(9)
open(os.path.join(os.path.dirname(sys.argv[0]), "probes"), "a").write("x")
result = {"schema": "stackrace.result/1", "outcome": "ok"}
json.dump(result, open(sys.argv[2], "w"))
"""
# Says that it runs, and never ends.
ENDLESS = """
import os, sys, time
open(os.path.join(os.path.dirname(sys.argv[0]), "probes"), "a").write("x")
time.sleep(600)
"""
# Prepares tf114 on this Python: argv is the folder of a bench.
PREPARE = """
import sys
from pathlib import Path
import msgspec
from orchestrator import environments, matrix
from orchestrator.environments.options import Options, Wanted
folder = Path(sys.argv[1])
version = "%d.%d" % sys.version_info[:2]
row = msgspec.structs.replace(matrix.load().rows["tf114"], python=version)
environments.prepare(
    [Wanted(row=row)],
    variant="cpu",
    guest=folder / "guest.py",
    options=Options(
        cache=folder / "cache",
        interpreters={version: Path(sys.executable)},
        locks=folder / "locks",
        free_bytes=lambda _: 10**12,
    ),
    say=print,
)
"""
MISMATCH = """
import json, sys
failure = {"kind": "version", "message": "TensorFlow 1.15.0 is installed where 1.14.0 is expected."}
result = {"schema": "stackrace.result/1", "outcome": "invalid", "failure": failure}
json.dump(result, open(sys.argv[2], "w"))
"""


def wheel(folder: Path) -> str:
    """Make the package `example` in `folder`, and return the lock that pins it."""
    files = {
        "example.py": "",
        "example-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n",
        "example-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [
        f"{name},sha256={_record_hash(text)},{len(text.encode())}" for name, text in files.items()
    ]
    files["example-1.0.dist-info/RECORD"] = "\n".join(
        [*lines, "example-1.0.dist-info/RECORD,,", ""]
    )
    path = folder / "example-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"example==1.0 \\\n    --hash=sha256:{digest}\n"


def _record_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class Bench:
    """A cache, a folder of locks and a guest of this test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.interpreter = Path(sys.executable)
        self.cache = folder / "cache"
        self.guest = folder / "guest.py"
        self.guest.write_text(GUEST, encoding="utf-8")
        (folder / "locks").mkdir()
        self.pins = wheel(folder)
        for name in ("tf114", "tf20"):
            self.lock(self.pins, name=name)

    def lock(self, text: str, *, name: str = "tf114") -> None:
        """Write the lock of a row."""
        path = self.folder / "locks" / f"{name}-cpu.txt"
        path.write_text(f"# {name}\n{text}", encoding="utf-8")

    def prepare(
        self, *names: str, free_bytes: int = 10**12, python: str = PYTHON
    ) -> dict[str, Environment]:
        """Prepare rows on this test's own Python."""
        rows = matrix.select(matrix.load(), names)
        return environments.prepare(
            [Wanted(row=_on(row, python)) for row in rows],
            variant="cpu",
            guest=self.guest,
            options=Options(
                cache=self.cache,
                interpreters={PYTHON: self.interpreter},
                locks=self.folder / "locks",
                free_bytes=lambda _: free_bytes,
            ),
            say=self.said.append,
        )

    @property
    def probes(self) -> int:
        """How many environments were probed."""
        path = self.folder / "probes"
        return len(path.read_text()) if path.exists() else 0

    @property
    def kept(self) -> list[str]:
        """What stands in the cache, without the locks of the slots."""
        names = [path.name for path in (self.folder / "cache" / "environments").iterdir()]
        return sorted(name for name in names if not name.endswith((".lock", ".use")))


def _on(row: Row, python: str) -> Row:
    return msgspec.structs.replace(row, python=python)


def _folder(environment: Environment) -> Path:
    assert isinstance(environment, VenvEnvironment)
    return environment.folder


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Everything in a folder with a space, and uv without a network or a shared cache."""
    folder = tmp_path / "a b"
    folder.mkdir()
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", folder.as_uri())
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    return Bench(folder)


def test_environment_is_made_and_then_found(bench: Bench) -> None:
    """The first prepare builds and probes; the second finds it, without starting anything."""
    (made,) = bench.prepare("tf114").values()
    assert ("tf114", platform.python_version()) == (made.identifier, made.python)
    assert list(_folder(made).glob("lib/*/site-packages/__pycache__/example.*.pyc"))
    bench.guest.unlink()
    assert {"tf114": made} == bench.prepare("tf114")
    assert 1 == bench.probes
    space, *rest = bench.said
    assert space.startswith("tf114-cpu: about 0.7 GB in ")
    assert 2 == len(rest)


def test_manifest_says_what_it_is(bench: Bench) -> None:
    """A finished environment says what it was made from."""
    folder = _folder(bench.prepare("tf114")["tf114"])
    slot = cache.Slot(name=folder.name, environments=folder.parent, logs=folder)
    manifest = slot.manifest()
    assert manifest is not None
    assert ("TensorFlow 1.14.0, Keras 2.2.5", {"example": "1.0"}) == (
        manifest.title,
        manifest.packages,
    )


def test_rows_get_environments_of_their_own(bench: Bench) -> None:
    """Each row has its environment; a copy of a row shares the one of its lock."""
    found = bench.prepare("tf114", "tf20", "tf114")
    assert ["tf114", "tf20", "tf114-2"] == list(found)
    assert ["tf114", "tf20", "tf114-2"] == [made.identifier for made in found.values()]
    assert _folder(found["tf114"]) == _folder(found["tf114-2"])
    assert _folder(found["tf114"]) != _folder(found["tf20"])
    assert 2 == bench.probes


def test_environment_outlives_uvs_cache(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment holds files of its own, whatever the user's uv would link them with."""
    monkeypatch.setenv("UV_LINK_MODE", "symlink")
    folder = _folder(bench.prepare("tf114")["tf114"])
    shutil.rmtree(tmp_path / "uv")
    (module,) = folder.glob("lib/*/site-packages/example.py")
    assert module.is_file()


def test_another_lock_is_another_environment(bench: Bench) -> None:
    """A changed lock never uses what was made from the old one."""
    before = _folder(bench.prepare("tf114")["tf114"])
    bench.lock("# changed\n" + bench.pins)
    assert before != _folder(bench.prepare("tf114")["tf114"])


def test_missing_interpreter_makes_it_again(bench: Bench) -> None:
    """An environment whose interpreter has moved away is made again."""
    folder = _folder(bench.prepare("tf114")["tf114"])
    (folder / "bin" / "python").unlink()
    bench.prepare("tf114")
    assert 2 == bench.probes
    assert (folder / "bin" / "python").exists()


def test_unfinished_is_not_taken_for_finished(bench: Bench) -> None:
    """A folder without a manifest, or with a broken one, is made again."""
    folder = _folder(bench.prepare("tf114")["tf114"])
    (folder / "stackrace.json").write_text('{"schema": "stackrace.environment/1"')
    bench.prepare("tf114")
    (folder / "stackrace.json").unlink()
    bench.prepare("tf114")
    assert 3 == bench.probes


def test_rests_of_dead_builds_are_removed(bench: Bench) -> None:
    """What a killed build left behind goes when its environment is made."""
    folder = _folder(bench.prepare("tf114")["tf114"])
    (folder / "stackrace.json").unlink()
    (folder.parent / f".{folder.name}.0123.tmp" / "bin").mkdir(parents=True)
    bench.prepare("tf114")
    assert [folder.name] == bench.kept


def test_rests_of_other_dead_builds_are_removed_too(bench: Bench) -> None:
    """A lock that changed leaves nothing behind; what a living command builds is left alone."""
    folder = _folder(bench.prepare("tf114")["tf114"])
    (folder.parent / ".tf20-cpu-0123.4567.tmp" / "bin").mkdir(parents=True)
    (folder.parent / ".tf21-cpu-0123.4567.tmp" / "bin").mkdir(parents=True)
    with filelock.FileLock(folder.parent / ".tf21-cpu-0123.lock"):
        bench.prepare("tf114")
    left = [path.name for path in folder.parent.glob(".*.tmp")]
    assert [".tf21-cpu-0123.4567.tmp"] == left


def test_two_at_once_make_one(bench: Bench) -> None:
    """Two commands that prepare the same environment build it once; the second waits."""
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(_folder(bench.prepare("tf114")["tf114"])))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[0]] * 3 == found
    assert 1 == bench.probes


def test_interrupted_build_leaves_nothing(bench: Bench) -> None:
    """Ctrl-C in the middle of a build ends its processes, and leaves neither folder nor rest."""
    bench.guest.write_text(ENDLESS, encoding="utf-8")
    host = subprocess.Popen(
        [sys.executable, "-c", PREPARE, str(bench.folder)], cwd=ROOT, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not bench.probes:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = psutil.Process(host.pid).children(recursive=True)
    assert children
    host.send_signal(signal.SIGINT)
    _, told = host.communicate(timeout=60)
    assert -signal.SIGINT == host.returncode, told
    assert not any(child.is_running() for child in children)
    assert [] == bench.kept


def failure(bench: Bench, *names: str, python: str = PYTHON) -> StackraceError:
    """The error that preparing these rows ends with."""
    with pytest.raises(StackraceError) as caught:
        bench.prepare(*names, python=python)
    return caught.value


def test_wrong_hash(bench: Bench) -> None:
    """A package that is not what the lock says is refused, and nothing is kept."""
    bench.lock(f"example==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    error = failure(bench, "tf114")
    expected = "tf114: A package is not the one that the lock was made with (example==1.0)."
    assert expected == error.what
    assert [] == bench.kept


def test_missing_package(bench: Bench) -> None:
    """A version that the index does not have is named."""
    bench.lock(bench.pins.replace("1.0", "9.0"))
    assert failure(bench, "tf114").what.endswith("that the lock names (example==9.0).")


def test_probe_that_finds_another_version(bench: Bench) -> None:
    """An environment that is not its row's pair is refused, and both versions are named."""
    bench.guest.write_text(MISMATCH, encoding="utf-8")
    error = failure(bench, "tf114")
    assert "TensorFlow 1.15.0 is installed where 1.14.0 is expected" in error.what
    assert error.what.startswith("tf114: The new environment is not TensorFlow 1.14.0, Keras 2.2.5")
    assert [] == bench.kept


def test_probe_that_dies(bench: Bench) -> None:
    """An environment whose interpreter crashes says how, and shows the log."""
    bench.guest.write_text(GUEST + "# interrupted", encoding="utf-8")
    error = failure(bench, "tf114")
    assert (
        "tf114: The new environment does not work: the probe ended with exit code 9" in error.what
    )
    (log,) = (bench.folder / "cache" / "logs").iterdir()
    assert str(log) in error.fix


def test_all_failures_are_named(bench: Bench) -> None:
    """Rows that fail for different reasons are all in one message, each with its cause."""
    bench.lock(bench.pins.replace("1.0", "9.0"))
    bench.lock(f"example==1.0 \\\n    --hash=sha256:{'0' * 64}\n", name="tf20")
    error = failure(bench, "tf114", "tf20")
    assert EnvironmentFailedError is type(error)
    assert "2 environments could not be prepared: tf114, tf20." == error.what
    assert "tf114: The index does not have a package" in error.why
    assert "tf20: A package is not the one" in error.why
    assert 2 == error.fix.count("Log: ")


def test_common_cause_is_said_once(bench: Bench) -> None:
    """Rows that fail for the same reason are named together, with one reason."""
    bench.lock("", name="other")
    error = failure(bench, "tf114", "tf20", python="3.99")
    assert error.what.startswith("tf114, tf20: There is no Python 3.99")
    assert 1 == error.fix.count("pyenv install")


def test_bad_configured_interpreter_is_the_users_to_mend(bench: Bench) -> None:
    """A configured path that does not fit is a usage error."""
    bench.interpreter = bench.folder / "none"
    error = failure(bench, "tf114", "tf20")
    assert (UsageError, 2) == (type(error), error.exit_code)
    assert error.what.startswith(f"tf114, tf20: The Python {PYTHON} that is configured cannot")
    assert "[interpreters]" in error.fix


def test_worst_kind_of_several_causes_wins() -> None:
    """Causes of several kinds end with the exit code that outranks the others."""
    error = venvs._together(
        {"tf114": EnvironmentFailedError("no lock"), "tf20": UsageError("bad path")}
    )
    assert (UsageError, "2 environments could not be prepared: tf114, tf20.") == (
        type(error),
        error.what,
    )


def test_missing_lock_stops_before_building(bench: Bench) -> None:
    """A row without a lock is found before anything is built."""
    (bench.folder / "locks" / "tf20-cpu.txt").unlink()
    assert "tf20 has no lock for cpu" in failure(bench, "tf114", "tf20").what
    assert 0 == bench.probes


def test_too_little_space_is_said_before_building(bench: Bench) -> None:
    """A disk that may not be enough is an error at once, with both figures."""
    rows = matrix.load().rows
    needed = sum(2 * rows[name].size_mb["cpu"] + 500 for name in ("tf114", "tf20"))
    with pytest.raises(StorageError, match=f"has 900 MB free; .* may take {needed} MB"):
        bench.prepare("tf114", "tf20", "tf114", free_bytes=900_000_000)
    assert [] == bench.said


def test_cache_where_nothing_can_be_made(bench: Bench) -> None:
    """A cache folder that cannot be written is the user's to mend, and names its variable."""
    bench.cache = Path("/proc/nope")
    error = failure(bench, "tf114")
    assert (UsageError, "Name another folder with STACKRACE_CACHE.") == (type(error), error.fix)
    assert "/proc/nope cannot be written: No such file or directory." == error.what


def test_cache_with_a_file_in_the_way(bench: Bench) -> None:
    """What fails while a slot is claimed says the same."""
    bench.cache.mkdir()
    (bench.cache / "environments").write_text("in the way", encoding="utf-8")
    error = failure(bench, "tf114")
    assert (UsageError, "Name another folder with STACKRACE_CACHE.") == (type(error), error.fix)


def test_cached_environments_need_no_space(bench: Bench) -> None:
    """A full disk does not keep anybody from using what is there."""
    made = bench.prepare("tf114")
    assert made == bench.prepare("tf114", free_bytes=0)
