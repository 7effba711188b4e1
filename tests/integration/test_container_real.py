"""Real containers on a real Docker Engine: what they may do, how they end, and what they leave."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import orchestrator
from orchestrator import config, containers, log, matrix
from orchestrator import environments as stage
from orchestrator.environments import bases, interpreters, reaping
from orchestrator.environments.container import ContainerEnvironment
from orchestrator.environments.options import Options, Wanted
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.container import MARK
from orchestrator.model.container_options import ContainerOptions
from orchestrator.model.plan import Limits
from orchestrator.store import RunFolder
from tests.docker.daemon import Daemon
from tests.docker.guests import (
    CARRIER,
    ENDLESS,
    GREEDY,
    MIRROR,
    PACKAGES,
    STUBBORN,
    archive_of,
    left,
    name_bases,
    on,
    ours,
    run,
    running_of,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.containers import DockerEngine
    from orchestrator.environments.venv import VenvEnvironment

pytestmark = [
    pytest.mark.real_tensorflow,
    pytest.mark.docker,
    # Docker's SDK leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROOT = Path(orchestrator.__file__).parent.parent


def missing(what: str) -> None:
    """Skip, or fail where nothing may be missing."""
    if os.environ.get("STACKRACE_REQUIRE_ALL") == "1":
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """The Docker Engine of this machine."""
    try:
        found = containers.connect()
    except EnvironmentFailedError as error:
        missing(f"{error.what} {error.why}")
        raise
    yield found
    found.close()


@pytest.fixture(scope="session")
def base(engine: DockerEngine) -> str:
    """A base image with the Python of the virtual environments; made when there is none."""
    python = interpreters.find(
        "3.7", configured={}, downloads_folder=config.cache_folder() / "interpreters"
    )
    name = f"stackrace-tests/python:{python.version}"
    if engine.image(name) is None:
        if shutil.which("debootstrap") is None or os.getuid() != 0:
            return pulled(engine, f"python:{python.version}-slim")
        prefix = python.path.resolve().parent.parent
        subprocess.run([ROOT / "tests/docker/base-image", name, prefix], check=True)
    return name


def pulled(engine: DockerEngine, reference: str) -> str:
    """An official image, where it can be had."""
    try:
        bases.obtain(engine, reference, say=log.talk)
    except EnvironmentFailedError as error:
        missing(f"A base image needs debootstrap and root, or a registry. {error.what}")
    return reference


@pytest.fixture(scope="session")
def prepared(
    base: str, environments: Mapping[str, VenvEnvironment], zipapp: Path
) -> Iterator[dict[str, ContainerEnvironment]]:
    """The real tf114 and tf20 as images."""
    found = stage.prepare(
        [Wanted(row=matrix.load().rows[name], backend="container") for name in environments],
        variant="cpu",
        guest=zipapp,
        options=Options(
            cache=config.cache_folder(),
            interpreters={},
            containers=ContainerOptions(bases=dict.fromkeys(environments, base)),
        ),
        say=log.talk,
    )
    yield {name: made for name, made in found.items() if isinstance(made, ContainerEnvironment)}
    for made in found.values():
        assert isinstance(made, ContainerEnvironment)
        assert isinstance(made.engine, containers.DockerEngine)
        made.engine.close()


@pytest.fixture
def plain(engine: DockerEngine, base: str, tmp_path: Path) -> ContainerEnvironment:
    """The base image alone: what runs in it is up to the test."""
    return on(engine, base, tmp_path)


@pytest.fixture
def daemon(base: str, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon of this test's own, with the base image in it."""
    if os.getuid() != 0 or shutil.which("dockerd") is None:
        missing("A daemon of its own needs dockerd, and root.")
    own = Daemon(Path("/tmp") / f"stackrace-{os.getpid()}-{tmp_path.name[:8]}")  # noqa: S108
    own.folder.mkdir()  # not below tmp_path: the name of a socket must be short
    try:
        own.start()
        own.load(base)
        yield own
    finally:
        own.close()
        shutil.rmtree(own.folder, ignore_errors=True)
        gc.collect()  # sockets that the SDK dropped while there was no daemon: here, not later


def test_workloads_go_in_and_traces_come_out(plain: ContainerEnvironment, tmp_path: Path) -> None:
    """The user's whole folder is there to read, and a profiler's trace is on this machine after."""
    own, trace = tmp_path / "mine", tmp_path / "trace"
    (own / "parts").mkdir(parents=True)
    trace.mkdir()
    (own / "workload.py").write_text("the model")
    (own / "parts" / "a.txt").write_text("a part")
    ended = run(
        plain,
        tmp_path,
        CARRIER,
        workload=str(own / "workload.py"),
        trace_folder=str(trace),
    )
    assert ended.result is not None, ended.log_tail
    assert {"workload": "the model", "part": "a part", "writable": False} == json.loads(
        ended.result
    )
    assert "a trace" == (trace / "plugins" / "trace.pb").read_text()


def test_race_through_the_command_line(
    engine: DockerEngine, base: str, prepared: Mapping[str, ContainerEnvironment], tmp_path: Path
) -> None:
    """tf114 against tf20 in containers: every job ok, and each record names its image."""
    name_bases(tmp_path, dict.fromkeys(prepared, base))
    words = ("run", *prepared, "--backend", "container", "--preset", "smoke")
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *words, "--results", str(tmp_path / "results")],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "results").glob("*/plan.json")
    folder = RunFolder.open(path.parent)
    assert {"container"} == {item.backend for item in folder.plan().environments}
    records = folder.records()
    assert ["ok"] * 8 == [record.outcome for record in records]
    assert {(record.arm.environment, record.image_digest) for record in records} == {
        (name, made.image_digest) for name, made in prepared.items()
    }
    assert left(engine) == []


def test_same_packages_as_in_the_virtual_environment(
    environments: Mapping[str, VenvEnvironment],
    prepared: Mapping[str, ContainerEnvironment],
    tmp_path: Path,
) -> None:
    """An image holds what its virtual environment holds, and the same Python."""
    for name, venv in environments.items():
        folder = tmp_path / name
        folder.mkdir()
        execution = run(prepared[name], folder, PACKAGES)
        assert execution.result is not None, execution.log_tail
        here = sorted(
            path.name for path in venv.folder.glob("lib/python3*/site-packages/*.dist-info")
        )
        assert here == json.loads(execution.result)
        assert venv.python == prepared[name].python


def test_worker_may_do_little(
    plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path
) -> None:
    """It is user 1000 without rights or network, and writes in its own folder and /tmp only."""
    execution = run(plain, tmp_path, MIRROR)
    assert execution.result is not None, execution.log_tail
    seen = json.loads(execution.result)
    assert (1000, "0000000000000000", "1") == (
        seen["uid"],
        seen["capabilities"],
        seen["no_new_privileges"],
    )
    assert ["lo"] == seen["interfaces"]
    assert ("OSError", "OSError") == (seen["root"], seen["python"])
    assert (None, None) == (seen["home"], seen["tmp"])
    assert "-1" == seen["variables"]["CUDA_VISIBLE_DEVICES"]
    assert os.environ["PATH"] != seen["variables"]["PATH"]
    assert left(engine) == []


def test_killed_from_outside(
    plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path
) -> None:
    """A container that somebody kills ends with that signal, and keeps its last words."""
    thread = threading.Thread(target=lambda: engine.signal(ours(engine), signal.SIGKILL))

    thread.start()
    execution = run(plain, tmp_path, ENDLESS)
    thread.join()
    assert (signal.SIGKILL, 0, None) == (execution.signal, execution.oom_kills, execution.exceeded)
    assert left(engine) == []


def test_out_of_memory(plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path) -> None:
    """A worker over its memory limit is told apart from one that was killed."""
    limited = dataclasses.replace(plain, settings=ContainerOptions(memory_bytes=100 * 2**20))
    execution = run(limited, tmp_path, GREEDY)
    assert (signal.SIGKILL, 1, "build") == (
        execution.signal,
        execution.oom_kills,
        execution.last_phase,
    )
    assert left(engine) == []


def test_limit_of_the_job(
    plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path
) -> None:
    """One that hangs while it measures is interrupted after the job's limit."""
    execution = run(plain, tmp_path, ENDLESS, limits=Limits(first_call_s=60.0, job_s=2.0))
    assert ("job", "warmup") == (execution.exceeded, execution.last_phase)
    assert "last words" in execution.log_tail
    assert left(engine) == []


def test_limit_of_the_first_call(
    plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path
) -> None:
    """One that ignores every polite signal is killed, and how long it took was told."""
    told: list[float] = []
    limits = Limits(first_call_s=3.0, job_s=60.0)
    execution = run(plain, tmp_path, STUBBORN, limits=limits, beat=told.append)
    assert ("first_call", signal.SIGKILL) == (execution.exceeded, execution.signal)
    assert told
    assert min(told) >= limits.first_call_s
    assert sorted(told) == told
    assert left(engine) == []


def test_no_interpreter(plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path) -> None:
    """An image without its interpreter could not be started: no crash of the worker."""
    broken = dataclasses.replace(plain, interpreter="/opt/stackrace/env/bin/python")
    execution = run(broken, tmp_path, MIRROR)
    assert "/opt/stackrace/env/bin/python" in (execution.start_error or "")
    assert left(engine) == []


def test_no_gpu_toolkit(plain: ContainerEnvironment, engine: DockerEngine, tmp_path: Path) -> None:
    """Docker without NVIDIA's toolkit refuses a GPU: the message says what to install."""
    if "nvidia" in engine.abilities().runtimes:
        pytest.skip("This Docker has the toolkit.")
    asking = dataclasses.replace(plain, gpus=("GPU-00000000-0000-0000-0000-000000000000",))
    with pytest.raises(EnvironmentFailedError, match="cannot hand a GPU") as caught:
        run(asking, tmp_path, MIRROR, device="gpu")
    assert "could not select device driver" in caught.value.why
    assert "nvidia-ctk runtime configure" in caught.value.fix
    assert left(engine) == []
    for volume in engine.volumes():
        if volume.labels.get(MARK) == "cuda":
            engine.remove_volume(volume.id)


def test_killed_host_leaves_nothing(
    engine: DockerEngine, base: str, prepared: Mapping[str, ContainerEnvironment], tmp_path: Path
) -> None:
    """SIGKILL of the command: its container ends by itself, the next command clears away."""
    name_bases(tmp_path, dict.fromkeys(prepared, base))
    words = ("run", "tf114", "--backend", "container", "--case", "small-small/numpy/fit")
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", *words, "--results", str(tmp_path / "results")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    label = reaping.owner(process.pid)

    wait_for(lambda: running_of(engine, label), "its container")
    process.kill()
    process.wait()
    wait_for(lambda: not running_of(engine, label), "the end of the container")
    reaping.reap(engine)
    assert left(engine) == []


def test_another_ones_container_is_left_alone(engine: DockerEngine) -> None:
    """What a living command, or another machine, owns is not removed."""
    names = {"here": reaping.owner(os.getppid()), "elsewhere": "0123456789ab.0.1.1"}
    for name, label in names.items():
        engine.make_volume(f"stackrace-test-{name}", {MARK: "job", reaping.OWNER: label})
    try:
        reaping.reap(engine)
        assert {f"stackrace-test-{name}" for name in names} <= set(left(engine))
    finally:
        for name in names:
            engine.remove_volume(f"stackrace-test-{name}")


def test_remote_engine(daemon: Daemon, base: str, tmp_path: Path) -> None:
    """An engine behind TCP, which shares no disk with the host, runs the same job."""
    remote = daemon.connect(daemon.address)
    execution = run(on(remote, base, tmp_path), tmp_path, MIRROR)
    assert execution.result is not None, execution
    assert 1000 == json.loads(execution.result)["uid"]
    assert left(remote) == []


def test_daemon_stops_and_comes_back(daemon: Daemon, base: str, tmp_path: Path) -> None:
    """A job whose daemon is restarted is lost, so that it is done again; nothing is left of it."""

    def restart() -> None:
        ours(daemon.engine())
        time.sleep(1.0)
        daemon.stop()
        daemon.start()

    thread = threading.Thread(target=restart)
    thread.start()
    execution = run(on(daemon.engine(), base, tmp_path), tmp_path, ENDLESS)
    thread.join()
    assert "went away" in (execution.lost or ""), execution
    assert execution.result is None
    assert left(daemon.engine()) == []


def test_daemon_stays_away(daemon: Daemon, base: str, tmp_path: Path) -> None:
    """A daemon that does not come back stops the run, with a way to go on."""

    def stop() -> None:
        ours(daemon.engine())
        daemon.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    environment = on(daemon.engine(), base, tmp_path, patience_s=1.0)
    with pytest.raises(EnvironmentFailedError, match="did not come back") as caught:
        run(environment, tmp_path, ENDLESS)
    thread.join()
    assert "--resume" in caught.value.fix


def test_image_that_breaks_off_leaves_nothing(engine: DockerEngine, base: str) -> None:
    """A build that fails in the middle leaves no image and no container."""
    before = [image.id for image in engine.images()]
    dockerfile = f"FROM {base}\nLABEL stackrace=image stackrace.owner=gone\nCOPY nothing /nothing\n"
    with pytest.raises(Exception, match="nothing"):
        engine.build(archive_of(dockerfile), arguments={}, say=log.talk)
    reaping.reap(engine, alive=lambda label: label != "gone")
    assert before == [image.id for image in engine.images()]
