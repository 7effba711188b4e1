"""A job in a container: what it is given, how its end is told, and that nothing of it is left."""

from __future__ import annotations

import dataclasses
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from orchestrator.environments import context, reaping
from orchestrator.environments.container import ContainerEnvironment, worker_variables
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.container import Container, Gpus, Image, State
from orchestrator.model.container_options import ContainerOptions
from orchestrator.model.plan import Limits
from orchestrator.model.request import Request
from tests.engines import FakeEngine, Running, ends, never

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.model.execution import Execution
    from orchestrator.model.names import Device

LIMITS = Limits(first_call_s=30.0, job_s=30.0)
IMAGE = Image(id="sha256:1")
UUID = "GPU-00000000-0000-0000-0000-000000000000"
NO_DRIVER = 'could not select device driver "" with capabilities: [[gpu]]'


def environment(engine: FakeEngine, folder: Path) -> ContainerEnvironment:
    """An environment on this engine, with its image there."""
    engine.kept_images["sha256:1"] = IMAGE
    guest = folder / "guest.pyz"
    guest.write_bytes(b"guest")
    return ContainerEnvironment(
        identifier="tf114",
        lock_digest="0",
        python="3.7.16",
        image="sha256:1",
        image_digest="sha256:1",
        interpreter="/opt/stackrace/env/bin/python",
        guest=guest,
        engine=engine,
        variables={"KERAS_BACKEND": "jax"},
        gpus=(UUID,),
        settings=ContainerOptions(memory_bytes=2**30, cpus="0-1", shm_bytes=2**20),
        patience_s=0.01,
    )


def run(
    engine: FakeEngine,
    folder: Path,
    *,
    device: Device = "cpu",
    limits: Limits = LIMITS,
    workload: str = "",
    trace_folder: str = "",
) -> Execution:
    """Run one job."""
    work = folder / "work"
    work.mkdir()
    request = Request(
        action="measure",
        environment="tf114",
        phase_path=str(work / "phases"),
        device=device,
        workload=workload,
        trace_folder=trace_folder,
    )
    made = environment(engine, folder)
    return made.run(request, work=work, log=folder / "log", limits=limits)


def left(engine: FakeEngine) -> list[str]:
    """Containers, and volumes that are not meant to stay."""
    volumes = [name for name, labels in engine.kept_volumes.items() if reaping.KEEP not in labels]
    return [*engine.running, *volumes]


def test_result_and_log_come_back(tmp_path: Path) -> None:
    """What the worker left on its volume is the result, and what it printed is the log."""

    def program(container: Running) -> None:
        container.files["/job/out/result.json"] = b"{}"
        container.output = b"talk\n"
        container.state = State(running=False)

    execution = run(FakeEngine(program=program), tmp_path)
    assert (b"{}", 0, "talk") == (execution.result, execution.exit_code, execution.log_tail)


@pytest.mark.parametrize("files", [{}, {"/job/out/result.json": b"{}"}])
def test_where_it_was_is_told_of_one_that_ended_badly(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    """The last phase is asked for, whether a part of the result was kept or not."""
    files |= {"/job/out/phases": b"import\nbuild\n"}
    engine = FakeEngine(program=ends(State(running=False, exit_code=139), files=files))
    execution = run(engine, tmp_path)
    assert (files.get("/job/out/result.json"), "build") == (execution.result, execution.last_phase)


def test_nobody_looks_into_one_that_ends_in_time(tmp_path: Path) -> None:
    """A look would take its cores while it measures: only its result is asked for, at its end."""

    @dataclasses.dataclass
    class Watched(FakeEngine):
        asked: list[str] = dataclasses.field(default_factory=list)

        def get(self, container: str, path: str) -> bytes | None:
            self.asked.append(path)
            return super().get(container, path)

    engine = Watched(program=ends(State(running=False), files={"/job/out/result.json": b"{}"}))
    run(engine, tmp_path)
    assert ["/job/out/result.json"] == engine.asked


def test_container_is_given_what_the_job_needs(tmp_path: Path) -> None:
    """The guest and its request stand on the volume; limits and the row's variables are set."""
    seen: dict[str, bytes] = {}

    def program(container: Running) -> None:
        assert container.stdin_open
        seen.update(container.files)
        container.state = State(running=False)

    engine = FakeEngine(program=program)
    run(engine, tmp_path)
    (asked,) = engine.made
    request = json.loads(seen["/job/request.json"])
    assert b"guest" == seen["/job/guest.pyz"]
    assert ("/job/out/phases", True, None) == (
        request["phase_path"],
        request["host_on_stdin"],
        request["parent_pid"],
    )
    assert (2**30, "0-1", 2**20) == (asked.memory_bytes, asked.cpus, asked.shm_bytes)
    assert "jax" == asked.variables["KERAS_BACKEND"]
    assert ("1000:1000", True, None) == (asked.user, asked.stdin, asked.gpus)
    assert reaping.owner() == asked.labels[reaping.OWNER]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State(running=False, exit_code=3), {"exit_code": 3}),
        (State(running=False, exit_code=139), {"signal": 11}),
        (State(running=False, exit_code=137), {"signal": 9, "oom_kills": 0}),
        (State(running=False, exit_code=137, oom_killed=True), {"signal": 9, "oom_kills": 1}),
        (
            State(running=False, exit_code=127, error="no such file"),
            {"start_error": "no such file"},
        ),
        (State(running=False, exit_code=126), {"start_error": "exit code 126"}),
        (State(running=False, exit_code=125), {"start_error": "exit code 125"}),
    ],
)
def test_how_it_ended_is_told(tmp_path: Path, state: State, expected: dict[str, object]) -> None:
    """Codes of the engine, of signals and of the worker are told apart."""
    engine = FakeEngine(program=ends(state))
    execution = run(engine, tmp_path)
    assert expected == {name: getattr(execution, name) for name in expected}
    assert left(engine) == []


@pytest.mark.parametrize(
    ("phases", "exceeded"), [(b"import\n", "first_call"), (b"import\nwarmup\n", "job")]
)
def test_limits(tmp_path: Path, phases: bytes, exceeded: str) -> None:
    """One that does not end is interrupted, terminated and killed, after the limit it is under."""
    signals: list[int] = []

    def program(container: Running) -> None:
        container.files["/job/out/phases"] = phases
        never(container)
        signals[:] = container.signals

    limits = Limits(first_call_s=0.2, job_s=0.2)
    engine = FakeEngine(program=program)
    execution = run(engine, tmp_path, limits=limits)
    assert (exceeded, 9) == (execution.exceeded, execution.signal)
    assert [2, 15, 9] == signals
    assert left(engine) == []


def test_refused_start_leaves_nothing(tmp_path: Path) -> None:
    """A container that was created but does not start is removed, with its volume."""
    engine = FakeEngine(refuses=lambda _: "OCI runtime create failed")
    execution = run(engine, tmp_path)
    assert "OCI runtime create failed" == execution.start_error
    assert left(engine) == []


def test_missing_image_stops_the_run(tmp_path: Path) -> None:
    """An image that somebody removed is no outcome of a job."""
    engine = FakeEngine()
    made = dataclasses.replace(environment(engine, tmp_path), image="sha256:2")
    with pytest.raises(EnvironmentFailedError, match="No such image"):
        made.run(
            Request(action="measure", environment="tf114", phase_path="phases"),
            work=tmp_path,
            log=tmp_path / "log",
            limits=LIMITS,
        )
    assert left(engine) == []


def test_gpus_are_asked_for_by_uuid(tmp_path: Path) -> None:
    """A GPU job gets the granted GPUs, and a CUDA cache that stays."""
    engine = FakeEngine()
    run(engine, tmp_path, device="gpu")
    (asked,) = engine.made
    assert Gpus(uuids=(UUID,)) == asked.gpus
    assert "/cache/cuda" == asked.variables["CUDA_CACHE_PATH"]
    assert ("true", "false") == (
        asked.variables["TF_FORCE_GPU_ALLOW_GROWTH"],
        asked.variables["XLA_PYTHON_CLIENT_PREALLOCATE"],
    )
    assert "CUDA_VISIBLE_DEVICES" not in asked.variables
    assert left(engine) == []
    assert 1 == len(engine.kept_volumes)


def test_cdi_where_there_is_no_runtime(tmp_path: Path) -> None:
    """Without NVIDIA's runtime, the GPU is asked for as a CDI device."""

    def refuses(asked: Container) -> str | None:
        return None if asked.gpus == Gpus(uuids=(UUID,), cdi=True) else NO_DRIVER

    engine = FakeEngine(refuses=refuses)
    execution = run(engine, tmp_path, device="gpu")
    assert (None, 0) == (execution.start_error, execution.exit_code)
    assert left(engine) == []


def test_no_way_to_a_gpu(tmp_path: Path) -> None:
    """Neither way: the message has Docker's words, and what to install."""
    engine = FakeEngine(refuses=lambda _: NO_DRIVER)
    with pytest.raises(EnvironmentFailedError, match="cannot hand a GPU") as caught:
        run(engine, tmp_path, device="gpu")
    assert NO_DRIVER == caught.value.why
    assert "nvidia-ctk" in caught.value.fix
    assert left(engine) == []


def losing(calls: int) -> Callable[[FakeEngine], Callable[[Running], None]]:
    """A program during which the engine goes away for so many calls."""

    def of(engine: FakeEngine) -> Callable[[Running], None]:
        def program(_: Running) -> None:
            if not lost:
                lost.append(True)
                engine.lost = calls
                engine.abilities()

        lost: list[bool] = []
        return program

    return of


def test_engine_that_comes_back(tmp_path: Path) -> None:
    """A job whose engine went away is lost, and removed when it is back."""
    engine = FakeEngine()
    engine.program = losing(2)(engine)
    execution = run(engine, tmp_path)
    assert "connection refused" in (execution.lost or "")
    assert left(engine) == []


def test_engine_that_stays_away(tmp_path: Path) -> None:
    """An engine that stays away stops the run, which can be resumed."""
    engine = FakeEngine()
    engine.program = losing(10_000)(engine)
    with pytest.raises(EnvironmentFailedError, match="did not come back") as caught:
        run(engine, tmp_path)
    assert "--resume" in caught.value.fix


def test_container_that_somebody_removed(tmp_path: Path) -> None:
    """A container that is gone in the middle is a lost job, to be done again, and no fault."""
    engine = FakeEngine()

    def program(container: Running) -> None:
        engine.running.pop(container.asked.name)

    engine.program = program
    execution = run(engine, tmp_path)
    assert "No such container" in (execution.lost or "")
    assert left(engine) == []


def test_full_disk_of_docker_stops_the_run(tmp_path: Path) -> None:
    """Every other job would fail alike: the run stops, and can go on when there is room."""
    engine = FakeEngine(full=True)
    with pytest.raises(EnvironmentFailedError, match="volumes is full") as caught:
        run(engine, tmp_path)
    assert "--resume" in caught.value.fix
    assert left(engine) == []


def test_removal_that_is_refused_keeps_the_result(tmp_path: Path) -> None:
    """A volume that Docker will not remove yet costs no measurement; the next command reaps it."""
    program = ends(State(running=False), files={"/job/out/result.json": b"{}"})
    engine = FakeEngine(program=program, keeps_volumes=True)
    assert b"{}" == run(engine, tmp_path).result


def test_variables_of_the_host_stay_there() -> None:
    """Paths and devices of the host make no sense inside; its threads do."""
    user = {
        "PATH": "/host/bin",
        "LD_LIBRARY_PATH": "/host/lib",
        "TMPDIR": "/host/tmp",
        "SSL_CERT_FILE": "/host/ca",
        "CUDA_VISIBLE_DEVICES": "3",
        "SECRET": "1",
        "OMP_NUM_THREADS": "2",
    }
    kept = worker_variables(user, device="gpu")
    assert "2" == kept["OMP_NUM_THREADS"]
    assert not set(user) - {"OMP_NUM_THREADS"} & set(kept)
    assert "-1" == worker_variables(user, device="cpu")["CUDA_VISIBLE_DEVICES"]


def test_only_dead_owners_lose_what_they_left() -> None:
    """Of a dead command: containers, volumes, unnamed images; never a named or foreign one."""
    dead, living = {reaping.OWNER: "dead", "stackrace": "job"}, {reaping.OWNER: "living"}
    engine = FakeEngine(
        kept_images={
            "named": Image(id="named", tags=("stackrace/tf114:0",), labels={**dead}),
            "half": Image(id="half", labels=dead),
        },
        kept_volumes={"a": dead, "b": living, "cache": {**dead, reaping.KEEP: "1"}, "c": {}},
    )
    engine.kept_images["base"] = Image(id="base")
    for name, labels in {"one": dead, "two": living}.items():
        engine.create(Container(name=name, image="base", command=("x",), labels=labels))
    assert 3 == reaping.reap(engine, alive=lambda label: label == "living")
    assert ["two"] == list(engine.running)
    assert ["b", "cache", "c"] == list(engine.kept_volumes)
    assert ["named", "base"] == list(engine.kept_images)


@pytest.mark.parametrize("other", ["0123456789ab.0.1.1", "nonsense"])
def test_owners_elsewhere_count_as_alive(other: str) -> None:
    """What runs on another machine cannot be seen, so it is left alone."""
    assert reaping.alive(other)


def test_own_process_is_alive_and_another_start_is_not() -> None:
    """A process number that was used again is somebody else."""
    own = reaping.owner()
    assert reaping.alive(own)
    assert not reaping.alive(f"{own}0")


def test_the_users_own_model_is_copied_in(tmp_path: Path) -> None:
    """Its whole folder, readable by the worker's user, and the request names it there."""
    own = tmp_path / "workloads" / "mine"
    (own / "package").mkdir(parents=True)
    (own / "workload.py").write_text("import package.part")
    (own / "package" / "part.py").write_text("1")
    seen: dict[str, bytes] = {}

    def program(container: Running) -> None:
        seen.update(container.files)
        container.state = State(running=False)

    run(FakeEngine(program), tmp_path, workload=str(own / "workload.py"))
    assert b"import package.part" == seen["/job/workload/workload.py"]
    assert b"1" == seen["/job/workload/package/part.py"]
    assert "/job/workload/package" in seen
    asked = json.loads(seen["/job/request.json"])
    assert "/job/workload/workload.py" == asked["workload"]
    assert "" == asked["trace_folder"]


def test_a_profiles_trace_comes_back(tmp_path: Path) -> None:
    """What the framework's profiler left in the container lies where the host looks for it."""
    trace = tmp_path / "trace"
    trace.mkdir()
    asked: dict[str, object] = {}

    def program(container: Running) -> None:
        asked.update(json.loads(container.files["/job/request.json"]))
        container.files["/job/out/trace/plugins/host.xplane.pb"] = b"trace"
        container.state = State(running=False)

    run(FakeEngine(program), tmp_path, trace_folder=str(trace))
    assert "/job/out/trace" == asked["trace_folder"]
    assert b"trace" == (trace / "plugins" / "host.xplane.pb").read_bytes()


def test_a_trace_leads_out_of_no_folder(tmp_path: Path) -> None:
    """A container of somebody's image may send anything: only files below the folder are kept."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as opened:
        link = tarfile.TarInfo("trace/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        opened.addfile(link)
        for name in ("trace/../../out", "trace/good"):
            info = tarfile.TarInfo(name)
            info.size = 1
            opened.addfile(info, io.BytesIO(b"x"))
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    context.unpack(archive.getvalue(), folder)
    context.unpack(b"no archive at all", folder)
    kept = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert {"a", "a/b"} | {name for name in kept if name.endswith("good")} == set(kept)


def test_a_trace_that_cannot_be_had_costs_nothing(tmp_path: Path) -> None:
    """Without one, the profile is as good."""
    trace = tmp_path / "trace"
    trace.mkdir()
    engine = FakeEngine(ends(State(running=False), files={"/job/out/result.json": b"{}"}))
    assert b"{}" == run(engine, tmp_path, trace_folder=str(trace)).result
    assert [] == list(trace.iterdir())
