"""What the watcher sees of GPUs while a job runs."""

from __future__ import annotations

import time

import pynvml
import pytest

from orchestrator import gpus
from orchestrator.errors import EnvironmentFailedError
from tests.fakes import nvml

GIB = nvml.GIB


def until(condition: object) -> None:
    """Wait until a callable turns true; the watcher has a thread of its own."""
    assert callable(condition)
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it never happened")


def test_watcher_sees_new_processes_only() -> None:
    """The most memory of each process that was not there before, and the GPU's throttling."""
    device = nvml.h200()
    device.processes = [nvml.Process(1, GIB)]
    with gpus.Watcher([device.uuid], nvml=nvml.FakeNvml(device), every_s=0.001) as watcher:
        device.processes.append(nvml.Process(2, 3 * GIB))
        device.throttle = pynvml.nvmlClocksEventReasonSwThermalSlowdown
        until(lambda: watcher.peak_bytes.get(2) == 3 * GIB)
        device.processes[1] = nvml.Process(2, GIB)
        device.throttle = 0
        until(lambda: watcher.after[device.uuid].throttle == ())
        device.processes.pop()
    assert ({2: 3 * GIB}, 3 * GIB) == (watcher.peak_bytes, watcher.gpu_bytes)
    assert {device.uuid: ("thermal slowdown",)} == watcher.throttle
    assert watcher.lost is None


def test_watcher_adds_up_over_gpus() -> None:
    """A process on two GPUs holds the memory of both."""
    first, second = nvml.h200("GPU-1"), nvml.h200("GPU-2")
    fake = nvml.FakeNvml(first, second)
    with gpus.Watcher(["GPU-1", "GPU-2"], nvml=fake, every_s=0.001) as watcher:
        first.processes = [nvml.Process(2, GIB)]
        second.processes = [nvml.Process(2, 2 * GIB)]
        until(lambda: watcher.peak_bytes.get(2) == 3 * GIB)
    assert watcher.gpu_bytes == 3 * GIB


def test_watcher_that_sees_nothing() -> None:
    """No new process is zero bytes; a list or a size that is refused is not known."""
    device = nvml.h200()
    fake = nvml.FakeNvml(device)
    with gpus.Watcher([device.uuid], nvml=fake) as watcher:
        pass
    assert watcher.gpu_bytes == 0
    with gpus.Watcher([device.uuid], nvml=fake) as watcher:
        device.processes = [nvml.Process(2, None)]
    assert watcher.gpu_bytes is None
    device.refuses = {"processes"}
    with gpus.Watcher([device.uuid], nvml=fake) as watcher:
        pass
    assert watcher.gpu_bytes is None


def test_gpu_that_is_lost_while_a_job_runs() -> None:
    """The watcher ends by itself and says which."""
    device = nvml.h200()
    fake = nvml.FakeNvml(device)
    with gpus.Watcher([device.uuid], nvml=fake, every_s=0.001) as watcher:
        device.lost = True
        until(lambda: watcher.lost is not None)
    assert device.uuid == watcher.lost
    assert fake.begun == 0


def test_gpu_that_was_lost_before() -> None:
    """No job is started on it."""
    device = nvml.h200()
    device.lost = True
    fake = nvml.FakeNvml(device)
    with pytest.raises(EnvironmentFailedError, match=device.uuid):
        gpus.Watcher([device.uuid], nvml=fake).__enter__()
    assert fake.begun == 0


def test_watcher_from_which_processes_are_hidden() -> None:
    """In a container no process may be listed: memory that grew then speaks of one."""
    device = nvml.h200()
    with gpus.Watcher([device.uuid], nvml=nvml.FakeNvml(device)) as watcher:
        device.used += GIB
    assert watcher.gpu_bytes is None
    device.refuses = {"memory"}
    with gpus.Watcher([device.uuid], nvml=nvml.FakeNvml(device)) as watcher:
        pass
    assert watcher.gpu_bytes is None
