"""What can run where: the right reason for every cell, and what mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator import doctor, gpus, matrix
from orchestrator.cli.doctor import render
from orchestrator.model.health import EngineFact, Facts, Health, HealthCell, PythonFact
from orchestrator.model.record import Load
from tests import factories
from tests.fakes import nvml

if TYPE_CHECKING:
    from orchestrator.model.gpu import Gpu
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Backend, Device

ROWS = matrix.load().rows
ENGINE = EngineFact(
    place="unix:///var/run/docker.sock",
    version="28.2.2",
    api="1.50",
    storage="overlay2",
    cgroup="2",
    machine="x86_64",
    nvidia=True,
)


def found(*devices: nvml.Device, driver: str = "570.86.15", cuda: int = 12080) -> tuple[Gpu, ...]:
    """What NVML shows of these GPUs."""
    return gpus.find(nvml.FakeNvml(*devices, driver=driver, cuda=cuda))


def facts(*devices: nvml.Device, **others: Any) -> Facts:  # noqa: ANN401
    """A machine with these GPUs that lacks nothing."""
    defaults: dict[str, Any] = {
        "gpus": found(*devices),
        "engine": ENGINE,
        "pythons": {
            row.python: PythonFact(path="/usr/bin/python", version=row.python)
            for row in ROWS.values()
        },
        "locks": frozenset(f"{name}-{variant}" for name in ROWS for variant in ("cpu", "gpu")),
        "free_bytes": 10**12,
        "cache": "/cache",
    }
    return Facts(**(defaults | others))


def cell(
    name: str, here: Facts, *, device: Device = "gpu", backend: Backend = "container"
) -> HealthCell:
    """The one cell."""
    (one,) = doctor.cells([ROWS[name]], [device], [backend], here)
    return one


def fits(name: str, gpu: nvml.Device, **driver: Any) -> doctor.Fit:  # noqa: ANN401
    """How a row and a GPU go together."""
    return doctor.fit(ROWS[name], found(gpu, **driver)[0])


@pytest.mark.parametrize(
    ("name", "gpu", "level"),
    [
        ("tf114", nvml.h200(), "cannot"),
        ("tf23", nvml.h200(), "cannot"),  # its PTX does not help: CUDA 10 knows no Hopper
        ("tf24", nvml.h200(), "warning"),
        ("tf210", nvml.h200(), "warning"),
        ("tf215", nvml.h200(), "warning"),
        ("tf216", nvml.h200(), "ok"),
        ("tf218", nvml.h200(), "ok"),
        ("keras3-jax", nvml.h200(), "ok"),
        ("keras3-torch", nvml.h200(), "ok"),
        ("tf20", nvml.rtx3090(), "cannot"),
        ("tf24", nvml.rtx3090(), "ok"),  # sm_80 runs on 8.6
        ("tf218", nvml.rtx3090(), "ok"),
        ("tf114", nvml.gtx1080(), "ok"),
        ("tf23", nvml.gtx1080(), "ok"),
        ("tf218", nvml.gtx1080(), "ok"),
        ("keras3-torch", nvml.gtx1080(), "cannot"),  # begins at 7.5
    ],
)
def test_machine_code_or_ptx(name: str, gpu: nvml.Device, level: str) -> None:
    """SASS runs within its major number, PTX on whatever is newer, CUDA 10 on nothing new."""
    assert level == fits(name, gpu, driver="580.95.05", cuda=13000).level


@pytest.mark.parametrize(
    ("capability", "name", "level"),
    [
        ((7, 5), "tf114", "ok"),  # Turing runs Volta's code
        ((7, 5), "tf23", "ok"),
        ((8, 9), "tf210", "ok"),
        ((5, 2), "tf218", "cannot"),  # Maxwell was dropped
        ((3, 5), "tf114", "ok"),
        ((10, 0), "tf215", "cannot"),  # CUDA 12.2 is older than Blackwell
        ((12, 0), "tf218", "warning"),
    ],
)
def test_other_generations(capability: tuple[int, int], name: str, level: str) -> None:
    """Every generation from Kepler to Blackwell."""
    device = nvml.h200()
    device.capability = capability
    assert level == fits(name, device).level


def test_h200_and_tensorflow_1() -> None:
    """Refused with the reason that is true, and a way that works."""
    answer = fits("tf114", nvml.h200())
    assert answer.reason == (
        "CUDA 10.0 has no code for NVIDIA H200 (compute capability 9.0): its libraries are older "
        "than this GPU"
    )
    assert "--device cpu" in answer.fix
    assert "REGISTRY/nvidia/tensorflow:23.03-tf1-py3" in fits("tf115", nvml.h200()).fix


def test_h200_and_tensorflow_210() -> None:
    """It runs, after a start of up to half an hour, of which the plan must know."""
    answer = fits("tf210", nvml.h200())
    assert answer.slow
    assert "may take 30 minutes" in answer.reason
    here = facts(nvml.h200())
    rows = [ROWS["tf114"], ROWS["tf210"], ROWS["tf218"]]
    assert frozenset({"tf210"}) == doctor.slow_starts(rows, here)


def test_blackwell_is_unreliable() -> None:
    """What is compiled for it often fails, and that is said."""
    device = nvml.h200()
    device.capability = (12, 0)
    assert "CUDA_ERROR_INVALID_HANDLE" in fits("tf218", device).reason


def test_driver_too_old() -> None:
    """The driver is named with the one that is needed."""
    answer = fits("tf218", nvml.h200(), driver="470.82.01", cuda=11040)
    assert answer.reason == ("the NVIDIA driver 470.82.01 is too old: CUDA 12.5 needs 525.60.13")
    assert answer.fix.startswith("Install driver 525.60.13 or newer")


def test_driver_that_cannot_compile() -> None:
    """Minor versions are compatible for machine code only, not for PTX."""
    device = nvml.h200()
    device.capability = (12, 0)
    answer = fits("tf218", device, driver="535.54.03", cuda=12020)
    assert "a driver for CUDA 12.2 cannot" in answer.reason


def test_mig_and_cuda_10() -> None:
    """CUDA 10 does not know MIG devices; later ones do."""
    here = facts(nvml.a100().mig("MIG-1"))
    assert "CUDA 10.1 does not know MIG devices" in cell("tf22", here).reason
    assert "ok" == cell("tf24", here).level


def test_pair_of_cuda_10_in_a_venv() -> None:
    """Its CUDA cannot be had as wheels: containers only, and it says so."""
    here = facts(nvml.gtx1080())
    refused = cell("tf20", here, backend="venv")
    assert ("cannot", True) == (refused.level, refused.lasting)
    assert "in containers only" in refused.reason
    assert "--backend container" in refused.fix
    assert "ok" == cell("tf20", here, backend="container").level


def test_no_advice_that_does_not_help() -> None:
    """Where no backend can help, the GPU is the reason: nobody is sent to containers in vain."""
    refused = cell("tf20", facts(nvml.rtx3090()), backend="venv")
    assert refused.reason == (
        "CUDA 10.0 has no code for NVIDIA GeForce RTX 3090 (compute capability 8.6): its "
        "libraries are older than this GPU"
    )
    assert "--backend" not in refused.fix


def test_no_gpu_at_all() -> None:
    """Without a GPU there is one reason, whatever the row."""
    refused = cell("tf114", facts())
    assert refused.reason == "this machine has no NVIDIA GPU, or no driver for it"
    assert "nvidia-smi" in refused.fix
    assert "ok" == cell("tf114", facts(), device="cpu").level


def test_driver_that_does_not_answer() -> None:
    """What NVML said stands instead of `no GPU`."""
    refused = cell("tf218", facts(gpu_problem="the driver was updated"))
    assert refused.reason == "the driver was updated"


def test_memory_held_by_somebody() -> None:
    """That passes: it is no reason for the plan, but one to wait."""
    device = nvml.h200()
    device.processes = [nvml.Process(7, nvml.GIB, "/usr/bin/python3")]
    here = facts(device)
    refused = cell("tf218", here)
    assert ("cannot", False) == (refused.level, refused.lasting)
    assert refused.reason == "GPU 0 is not free: process 7 (python3, 1024 MiB)"
    assert {} == doctor.blockers([ROWS["tf218"]], ["gpu"], "container", here)


def test_best_of_several_gpus_decides() -> None:
    """A row can run here when one of the GPUs suits it."""
    here = facts(nvml.h200(), nvml.gtx1080())
    assert "ok" == cell("tf114", here).level
    assert "ok" == cell("tf218", here).level


def test_row_without_a_gpu_build() -> None:
    """A pair that has none says so."""
    row = msgspec.structs.replace(ROWS["tf218"], cuda=None)
    (one,) = doctor.cells([row], ["gpu"], ["venv"], facts(nvml.h200()))
    assert "has no build for GPUs" in one.reason


def test_blockers_of_a_run() -> None:
    """Hopeless cells, and only they, by identifier and device, each with its own reason."""
    rows: list[Row] = [ROWS[name] for name in ("tf114", "tf210", "tf218")]
    blocked = doctor.blockers(rows, ["cpu", "gpu"], "venv", Facts(gpus=found(nvml.h200())))
    assert {("tf114", "gpu")} == blocked.keys()
    assert "CUDA 10.0 has no code for NVIDIA H200" in blocked["tf114", "gpu"]
    blocked = doctor.blockers(rows, ["gpu"], "venv", Facts(gpus=found(nvml.gtx1080())))
    assert {("tf114", "gpu")} == blocked.keys()
    assert "in containers only" in blocked["tf114", "gpu"]


def test_blockers_count_every_gpu_of_a_run() -> None:
    """A run that was given two GPUs needs both to be fit."""
    here = Facts(gpus=found(nvml.gtx1080(), nvml.h200()))
    blocked = doctor.blockers([ROWS["tf114"]], ["gpu"], "container", here)
    assert "CUDA 10.0 has no code for NVIDIA H200" in blocked["tf114", "gpu"]


def test_blockers_without_a_gpu() -> None:
    """Everything on the GPU is hopeless, nothing on the CPU."""
    rows = [ROWS["tf114"], ROWS["tf218"]]
    blocked = doctor.blockers(rows, ["cpu", "gpu"], "container", Facts())
    assert {("tf114", "gpu"), ("tf218", "gpu")} == blocked.keys()


def test_what_is_in_somebodys_interpreter_is_not_judged() -> None:
    """An existing environment may have been built for anything; only a GPU has to be there."""
    assert "ok" == cell("tf114", facts(nvml.h200()), backend="existing").level
    assert "cannot" == cell("tf114", facts(), backend="existing").level


@pytest.mark.parametrize(
    ("engine", "device", "reason"),
    [
        (EngineFact(problem="Docker Engine cannot be reached", fix="start it"), "cpu", "reached"),
        (msgspec.structs.replace(ENGINE, nvidia=False), "gpu", "cannot hand out NVIDIA GPUs"),
        (msgspec.structs.replace(ENGINE, machine="aarch64"), "cpu", "is on aarch64"),
    ],
)
def test_docker(engine: EngineFact, device: Device, reason: str) -> None:
    """What Docker lacks is named for containers, and concerns no venv."""
    here = facts(nvml.h200(), engine=engine)
    assert reason in cell("tf218", here, device=device).reason
    assert cell("tf218", here, device=device).fix
    assert "ok" == cell("tf218", here, device=device, backend="venv").level


def test_cdi_is_a_way_too() -> None:
    """A CDI specification serves where the toolkit's runtime is not configured."""
    engine = msgspec.structs.replace(ENGINE, nvidia=False, cdi=True)
    assert "ok" == cell("tf218", facts(nvml.h200(), engine=engine)).level


@pytest.mark.parametrize(
    ("python", "level", "word"),
    [
        (PythonFact(download=True), "warning", "will be downloaded"),
        (PythonFact(), "cannot", "there is no Python 3.7"),
        (PythonFact(problem="/x/python is Python 2.7"), "cannot", "is Python 2.7"),
    ],
)
def test_python(python: PythonFact, level: str, word: str) -> None:
    """An interpreter that is missing, to be downloaded, or configured wrongly."""
    one = cell("tf114", facts(pythons={"3.7": python}), device="cpu", backend="venv")
    assert level == one.level
    assert word in one.reason


def test_environment_that_is_made_needs_nothing() -> None:
    """Neither its Python's download, nor room."""
    here = facts(pythons={"3.7": PythonFact()}, made=frozenset({"tf114-cpu"}), free_bytes=0)
    assert "ok" == cell("tf114", here, device="cpu", backend="venv").level


def test_lock_and_room() -> None:
    """A missing lock and a full disk are named with the line that mends them."""
    one = cell("tf114", facts(locks=frozenset()), device="cpu", backend="venv")
    assert ("it has no lock for cpu", "Run: nox -s lock") == (one.reason, one.fix)
    one = cell("tf114", facts(free_bytes=10**9), device="cpu", backend="venv")
    assert one.reason == "it needs 1960 MB to be made, and /cache has 1000 MB free"


def test_platform_that_cannot() -> None:
    """Without AVX nothing runs anywhere."""
    here = facts(problem="This CPU has no AVX instructions", fix="another machine")
    assert "AVX" in cell("tf218", here, device="cpu").reason
    assert {("tf218", "cpu")} == doctor.blockers([ROWS["tf218"]], ["cpu"], "venv", here).keys()


@pytest.mark.parametrize(
    ("devices", "failed"),
    [(None, ()), (("cpu",), ()), (("gpu",), ("tf20",)), (("cpu", "gpu"), ("tf20",))],
)
def test_what_was_asked_for(devices: tuple[Device, ...] | None, failed: tuple[str, ...]) -> None:
    """Without --device any device will do; with it, every one that was named must."""
    cells = doctor.cells([ROWS["tf20"]], ["cpu", "gpu"], ["venv"], facts(nvml.rtx3090()))
    assert failed == doctor.failing(cells, ["tf20"], devices=devices, backend="venv")
    assert () == doctor.failing(cells, [], devices=devices, backend="venv")


def texts(here: Facts) -> dict[str, tuple[str, str, str]]:
    """Level, text and fix of every check, by subject."""
    rows = [ROWS["tf114"], ROWS["tf218"]]
    return {
        check.subject: (check.level, check.text, check.fix)
        for check in doctor.checks(rows, ["cpu", "gpu"], here)
    }


def test_checks_of_a_machine() -> None:
    """Platform, governor, turbo and load, with what mends them."""
    host = msgspec.structs.replace(factories.HOST, governor="powersave", turbo="on")
    said = texts(
        facts(system="Linux x86_64", host=host, load=Load(load_1m=3.0, available_bytes=2**30))
    )
    assert "ok" == said["platform"][0]
    assert "8 GiB of memory" in said["platform"][1]
    assert ("warning", "sudo cpupower frequency-set -g performance") == (
        said["governor"][0],
        said["governor"][2],
    )
    assert said["turbo"][1].startswith("on")
    assert "warning" == said["load"][0]


def test_checks_of_gpus() -> None:
    """Each is listed with its memory; one that is used, throttled or divided says so."""
    used = nvml.rtx3090()
    used.processes = [nvml.Process(7, nvml.GIB)]
    hot = nvml.gtx1080()
    hot.throttle = 0x40
    said = texts(facts(nvml.h200(), used, nvml.a100().mig("MIG-1"), hot))
    assert ("ok", "570.86.15, for CUDA up to 12.8", "") == said["driver"]
    assert "143171 of 143771 MiB free" in said["GPU 0"][1]
    assert ("warning", True) == (said["GPU 1"][0], "process 7" in said["GPU 1"][1])
    assert said["GPU 2"][1].endswith("divided into MIG devices")
    assert "MIG-1" in said["GPU 2 part"][1]
    assert said["GPU 3"][1].endswith("throttled: hardware thermal slowdown")


def test_checks_of_the_rest() -> None:
    """Pythons, locks, disk and Docker."""
    said = texts(
        facts(
            pythons={"3.7": PythonFact(), "3.11": PythonFact(path="/p", version="3.11.7")},
            locks=frozenset({"tf114-cpu"}),
            free_bytes=10**9,
            engine=EngineFact(problem="Docker Engine cannot be reached", fix="start it"),
        )
    )
    assert ("cannot", "not here, and needed for 1 environment", "pyenv install 3.7") == said[
        "Python 3.7"
    ]
    assert ("ok", "3.11.7 in /p", "") == said["Python 3.11"]
    assert "missing: tf114-gpu, tf218-cpu, tf218-gpu" == said["locks"][1]
    assert "warning" == said["disk"][0]
    assert ("cannot", "Docker Engine cannot be reached", "start it") == said["Docker"]
    assert "this machine has no NVIDIA GPU, or no driver for it" == said["GPU"][1]


def test_text_of_the_answer() -> None:
    """A line an environment, a column a backend and device, each reason once, no loose spaces."""
    here = facts(nvml.h200(), host=factories.HOST, system="Linux x86_64")
    rows = [ROWS["tf114"], ROWS["tf20"], ROWS["tf210"], ROWS["tf218"]]
    cells = doctor.cells(rows, ["cpu", "gpu"], ["venv", "container"], here)
    health = Health(
        exit_code=0, checks=doctor.checks(rows, ["cpu", "gpu"], here), cells=cells, facts=here
    )
    lines = render(health, width=100).splitlines()
    table = [line.split() for line in lines]
    assert ["tf210", "ok", "warning", "ok", "warning"] in table
    assert ["tf218", "ok", "ok", "ok", "ok"] in table
    assert ["tf114", "ok", "cannot", "ok", "cannot"] in table
    assert "  tf114, tf20 (venv gpu, container gpu)" in lines
    assert 100 >= max(len(line) for line in lines)
    assert [line.rstrip() for line in lines] == lines
