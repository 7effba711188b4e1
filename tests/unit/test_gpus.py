"""GPUs are found, chosen and held as NVML really answers, and without NVML too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from orchestrator import gpus
from orchestrator.errors import EnvironmentFailedError, UsageError
from tests.fakes import nvml

GIB = nvml.GIB
HOLD = """
import sys, time
from pathlib import Path
from orchestrator import gpus
with gpus.lock(["GPU-1"], folder=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_without_a_driver_there_are_no_gpus() -> None:
    """The library itself is asked: where it is absent, that is no error."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            pytest.skip(f"NVML is on this machine, and does not start: {error}")
    else:
        pynvml.nvmlShutdown()
        pytest.skip("this machine has a GPU")
    assert () == gpus.find()
    assert gpus.Survey() == gpus.survey()


def test_facts_of_a_gpu() -> None:
    """What it is, and what it does."""
    (gpu,) = gpus.find(nvml.FakeNvml(nvml.h200()))
    assert ("NVIDIA H200", "9.0", "570.86.15", "12.8") == (
        gpu.name,
        gpu.capability,
        gpu.driver,
        gpu.cuda,
    )
    assert (143_771 * 2**20, 143_171 * 2**20) == (gpu.memory_bytes, gpu.free_bytes)
    assert (700.0, 75.25, 1980, 31, 0.03, ()) == (
        gpu.power_limit_w,
        gpu.state.power_w,
        gpu.state.sm_mhz,
        gpu.state.temperature_c,
        gpu.state.utilisation,
        gpu.state.throttle,
    )


def test_records_keep_what_lasts() -> None:
    """Free memory, processes and clocks belong to a moment, and not to the GPU."""
    (gpu,) = gpus.find(nvml.FakeNvml(nvml.h200()))
    assert {
        "index": 0,
        "uuid": gpu.uuid,
        "name": "NVIDIA H200",
        "memory_bytes": gpu.memory_bytes,
        "capability": "9.0",
        "driver": "570.86.15",
        "cuda": "12.8",
        "power_limit_w": 700.0,
        "parent": None,
        "divided": False,
    } == gpu.lasting()


def test_nvml_is_let_go_of() -> None:
    """Every connection is closed again, also when a question fails."""
    fake = nvml.FakeNvml(nvml.h200())
    gpus.find(fake)
    fake.devices[0].lost = True
    gpus.find(fake)
    assert fake.begun == 0


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "driver is not loaded"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "restart the machine"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "nvidiactl"),
        (pynvml.NVML_ERROR_UNKNOWN, "NVML does not work"),
    ],
)
def test_nvml_that_does_not_start_is_a_finding(code: int, word: str) -> None:
    """A driver that was updated, or is not loaded, is said; it ends nothing."""
    found = gpus.survey(nvml.FakeNvml(fails=code))
    assert found.gpus == ()
    assert word in found.problem


def test_a_lost_gpu_hides_no_other() -> None:
    """One that fell off the bus is named, and the rest can be used."""
    broken = nvml.rtx3090()
    broken.lost = True
    found = gpus.survey(nvml.FakeNvml(broken, nvml.h200()))
    assert ["NVIDIA H200"] == [gpu.name for gpu in found.gpus]
    assert found.problem == "GPU 0 does not answer: it is lost (restart the machine)"


def test_mig_devices_stand_behind_their_gpu() -> None:
    """Each is an entry of its own, with its parent's clocks and limit, and no utilisation."""
    whole, first, second = gpus.find(nvml.FakeNvml(nvml.a100().mig("MIG-1", "MIG-2")))
    assert (True, None) == (whole.divided, whole.parent)
    assert ("MIG-1", "MIG-2") == (first.uuid, second.uuid)
    assert (whole.uuid, False, 0, "8.0") == (
        first.parent,
        first.divided,
        first.index,
        first.capability,
    )
    assert (1980, None, 700.0) == (
        first.state.sm_mhz,
        first.state.utilisation,
        first.power_limit_w,
    )


def test_memory_that_may_not_be_seen() -> None:
    """In a container the memory and the processes of a divided GPU are refused; it is listed."""
    device = nvml.a100().mig("MIG-1")
    device.refuses = {"memory", "processes"}
    whole, part = gpus.find(nvml.FakeNvml(device))
    assert (0, ()) == (whole.memory_bytes, whole.processes)
    assert 20 * GIB == part.memory_bytes


def test_throttling_is_put_in_words() -> None:
    """Idle is no reason; heat and power are."""
    device = nvml.h200()
    device.throttle = (
        pynvml.nvmlClocksEventReasonGpuIdle
        | pynvml.nvmlClocksEventReasonSwPowerCap
        | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    )
    assert ("power cap", "hardware thermal slowdown") == gpus.state(
        device.uuid, nvml.FakeNvml(device)
    ).throttle


def test_state_of_a_lost_gpu_stops_the_run() -> None:
    """Nothing can be measured on it; the run can go on after a restart."""
    device = nvml.h200()
    device.lost = True
    with pytest.raises(EnvironmentFailedError, match="does not answer any more") as caught:
        gpus.state(device.uuid, nvml.FakeNvml(device))
    assert "--resume" in caught.value.fix


MACHINE = gpus.find(
    nvml.FakeNvml(nvml.gtx1080(), nvml.a100().mig("MIG-1", "MIG-2"), nvml.h200("GPU-ABC"))
)


@pytest.mark.parametrize(
    ("wanted", "uuids"),
    [
        ("auto", ["GPU-33333333-dddd-4000-8000-000000001080"]),
        ("0", ["GPU-33333333-dddd-4000-8000-000000001080"]),
        ("2", ["GPU-ABC"]),
        ("2,0", ["GPU-ABC", "GPU-33333333-dddd-4000-8000-000000001080"]),
        ("2,2", ["GPU-ABC"]),
        ("1", ["MIG-1", "MIG-2"]),
        ("MIG-2", ["MIG-2"]),
        ("gpu-abc", ["GPU-ABC"]),
        ("GPU-3333", ["GPU-33333333-dddd-4000-8000-000000001080"]),
        ("GPU-2222", ["MIG-1", "MIG-2"]),
        ("all", ["GPU-33333333-dddd-4000-8000-000000001080", "MIG-1", "MIG-2", "GPU-ABC"]),
    ],
)
def test_choice(wanted: str, uuids: list[str]) -> None:
    """Indices, UUIDs and their beginnings; a divided GPU stands for its parts."""
    assert uuids == [gpu.uuid for gpu in gpus.choose(MACHINE, wanted)]


@pytest.mark.parametrize("wanted", ["7", "GPU-9", "GPU-", "", "0,", "first"])
def test_choice_of_what_is_not_there(wanted: str) -> None:
    """What names none, or several, is refused with what there is."""
    with pytest.raises(UsageError) as caught:
        gpus.choose(MACHINE, wanted)
    assert "2: NVIDIA H200 GPU-ABC" in caught.value.why


def test_a_whole_uuid_is_no_beginning() -> None:
    """A UUID that another one begins with still names its own GPU."""
    both = gpus.find(nvml.FakeNvml(nvml.h200("GPU-1"), nvml.h200("GPU-12")))
    assert ["GPU-1"] == [gpu.uuid for gpu in gpus.choose(both, "GPU-1")]


def test_auto_takes_what_is_free_and_fits() -> None:
    """A GPU that somebody uses, and one that something speaks against, are passed over."""
    used = nvml.rtx3090()
    used.processes = [nvml.Process(7, GIB)]
    found = gpus.find(nvml.FakeNvml(used, nvml.gtx1080(), nvml.h200("GPU-ABC")))
    (chosen,) = gpus.choose(
        found, against=lambda gpu: "too old" if gpu.capability == "6.1" else None
    )
    assert chosen.uuid == "GPU-ABC"


def test_auto_without_a_free_gpu_says_why() -> None:
    """Each GPU is named with what speaks against it."""
    used = nvml.rtx3090()
    used.processes = [nvml.Process(7, GIB, "/opt/python3")]
    found = gpus.find(nvml.FakeNvml(used, nvml.gtx1080()))
    with pytest.raises(EnvironmentFailedError) as caught:
        gpus.choose(found, against=lambda _: "too old")
    first, second = caught.value.why.splitlines()
    assert first.endswith("process 7 (python3, 1024 MiB)")
    assert second.endswith("too old")


def test_choice_without_gpus() -> None:
    """There is none to choose, or none that can be used: code 5, with the way round."""
    with pytest.raises(EnvironmentFailedError, match="no GPU to choose") as caught:
        gpus.choose((), "auto")
    assert "--device cpu" in caught.value.fix
    with pytest.raises(EnvironmentFailedError, match="can be used as it is"):
        gpus.choose(gpus.find(nvml.FakeNvml(_empty())), "auto")


def _empty() -> nvml.Device:
    device = nvml.a100()
    device.divided = True
    return device


def test_divided_gpu_without_parts() -> None:
    """Named itself, it is refused with the command that makes parts."""
    found = gpus.find(nvml.FakeNvml(_empty(), nvml.h200()))
    with pytest.raises(EnvironmentFailedError, match="has no MIG device") as caught:
        gpus.choose(found, "0")
    assert "nvidia-smi mig -cgi" in caught.value.fix


def test_busy_gpu_is_refused() -> None:
    """Somebody else's process is named with its memory and what to do."""
    used = nvml.h200()
    used.processes = [nvml.Process(4711, 3 * GIB, "/home/x/python")]
    with pytest.raises(EnvironmentFailedError) as caught:
        gpus.refuse_busy(gpus.find(nvml.FakeNvml(used)))
    assert caught.value.what == (
        "GPU 0 (NVIDIA H200) is not free: process 4711 (python, 3072 MiB)."
    )
    assert "--wait-lock" in caught.value.fix


def test_held_memory_is_refused() -> None:
    """Memory that no visible process holds is somebody's: of another container, or a dead one."""
    used = nvml.h200()
    used.used = 40 * GIB
    with pytest.raises(EnvironmentFailedError, match="40960 MiB of its memory are held"):
        gpus.refuse_busy(gpus.find(nvml.FakeNvml(used)))


def test_process_of_unknown_size() -> None:
    """Where the driver does not tell how much, or who, the process is named all the same."""
    used = nvml.h200()
    used.processes = [nvml.Process(8, None, "")]
    (gpu,) = gpus.find(nvml.FakeNvml(used))
    assert "process 8 (unknown)" == gpus.busy(gpu)


def test_driver_that_lacks_new_functions() -> None:
    """Processes are listed by drivers before 510 too, which pynvml calls by another name."""
    used = nvml.gtx1080()
    used.processes = [nvml.Process(8, nvml.GIB)]
    fake = nvml.FakeNvml(used, driver="470.82.01", cuda=11040, old=True)
    (gpu,) = gpus.find(fake)
    assert [8] == [process.pid for process in gpu.processes]
    with gpus.Watcher([used.uuid], nvml=fake) as watcher:
        used.processes.append(nvml.Process(9, 2 * nvml.GIB))
    assert 2 * nvml.GIB == watcher.gpu_bytes


def test_idle_gpu_is_free() -> None:
    """What the driver keeps for itself is nobody's."""
    found = gpus.find(nvml.FakeNvml(nvml.h200(), nvml.gtx1080()))
    gpus.refuse_busy(found)
    assert [None, None] == [gpus.busy(gpu) for gpu in found]


def test_lock_keeps_another_run_out(tmp_path: Path) -> None:
    """A run in another process is named by its number; after it the GPU can be had."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "locks"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        said: list[str] = []
        with (
            pytest.raises(EnvironmentFailedError) as caught,
            gpus.lock(["GPU-2", "GPU-1"], wait_s=0.1, say=said.append, folder=tmp_path / "locks"),
        ):
            pytest.fail("it is held")
        assert "Another run holds the GPU GPU-1" in caught.value.what
        assert f"process {other.pid}" in caught.value.what
        assert ["GPU GPU-1 is held"] == [line[:17] for line in said]
        other.kill()
    with gpus.lock(["GPU-1", "GPU-2"], folder=tmp_path / "locks"):
        assert {"GPU-1.lock", "GPU-2.lock"} == {
            path.name for path in (tmp_path / "locks").iterdir()
        }


def test_locks_are_for_every_user(tmp_path: Path) -> None:
    """Whatever the umask: another user may open the lock, and may not remove it."""
    old = os.umask(0o077)
    try:
        with gpus.lock(["MIG-GPU-1/2/0"], folder=tmp_path / "locks"):
            pass
    finally:
        os.umask(old)
    assert 0o1777 == (tmp_path / "locks").stat().st_mode & 0o7777
    assert 0o666 == (tmp_path / "locks" / "MIG-GPU-1_2_0.lock").stat().st_mode & 0o777
