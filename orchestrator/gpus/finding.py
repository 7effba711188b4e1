"""Which GPUs there are, and what one is doing now."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pynvml

from orchestrator.gpus.nvml import LOST, THROTTLES, Nvml, ask, library, lost, processes
from orchestrator.model.gpu import Gpu, GpuProcess, GpuState

if TYPE_CHECKING:
    from collections.abc import Iterator

# Why NVML does not start, by its code. A missing library is no problem: there is no driver.
_PROBLEMS: dict[int, str] = {
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "NVIDIA's library is here, but its driver is not loaded (sudo modprobe nvidia; in a "
        "container: start it with --gpus)"
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "NVIDIA's driver was updated and the old one is still loaded (restart the machine)"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        "this user may not open /dev/nvidiactl (ask for the group that owns it: ls -l /dev/nvidia*)"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The GPUs that can be used, and why there are none or fewer; empty where nothing is wrong."""

    gpus: tuple[Gpu, ...] = ()
    problem: str = ""


def find(nvml: Nvml | None = None) -> tuple[Gpu, ...]:
    """Every GPU, each followed by its MIG devices; empty where there is no working driver."""
    return survey(nvml).gpus


def survey(nvml: Nvml | None = None) -> Survey:
    """Every GPU, and what is wrong with those, or with a driver, that do not answer."""
    nvml = nvml or library()
    try:
        with connected(nvml):
            return _survey(nvml)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return Survey()
        return Survey(problem=_PROBLEMS.get(error.value, f"NVML does not work: {error}"))


def state(uuid: str, nvml: Nvml | None = None) -> GpuState:
    """What a GPU, or a MIG device, does now; EnvironmentFailedError when it is lost."""
    nvml = nvml or library()
    try:
        with connected(nvml):
            return read_state(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid))
    except pynvml.NVMLError as error:
        raise lost(uuid) from error


@contextmanager
def connected(nvml: Nvml) -> Iterator[None]:
    """NVML between its beginning and its end; it counts how often it was begun."""
    nvml.nvmlInit()
    try:
        yield
    finally:
        ask(nvml.nvmlShutdown)


def read_state(nvml: Nvml, handle: Any) -> GpuState:  # noqa: ANN401 - opaque
    """The state behind a handle. Clocks, power and throttling of a MIG device are its GPU's."""
    whole = ask(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle) or handle
    power = ask(nvml.nvmlDeviceGetPowerUsage, whole)
    rates = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    reasons = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, whole)
    return GpuState(
        sm_mhz=ask(nvml.nvmlDeviceGetClockInfo, whole, pynvml.NVML_CLOCK_SM),
        memory_mhz=ask(nvml.nvmlDeviceGetClockInfo, whole, pynvml.NVML_CLOCK_MEM),
        temperature_c=ask(nvml.nvmlDeviceGetTemperature, whole, pynvml.NVML_TEMPERATURE_GPU),
        power_w=None if power is None else power / 1000,
        utilisation=None if rates is None else rates.gpu / 100,
        throttle=None
        if reasons is None
        else tuple(word for bit, word in THROTTLES.items() if reasons & bit),
    )


def _survey(nvml: Nvml) -> Survey:
    gpus: list[Gpu] = []
    problems: list[str] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            gpus += _gpu(nvml, index)
        except pynvml.NVMLError as error:
            said = "it is lost (restart the machine)" if error.value in LOST else str(error)
            problems.append(f"GPU {index} does not answer: {said}")
    return Survey(gpus=tuple(gpus), problem="; ".join(problems))


def _gpu(nvml: Nvml, index: int) -> list[Gpu]:
    """The GPU, and its MIG devices behind it."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    mode = ask(nvml.nvmlDeviceGetMigMode, handle)
    divided = mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    limit = ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    facts: dict[str, Any] = {
        "index": index,
        "capability": f"{major}.{minor}",
        "driver": nvml.nvmlSystemGetDriverVersion(),
        "cuda": _cuda(nvml.nvmlSystemGetCudaDriverVersion()),
        # That of a MIG device is its GPU's.
        "power_limit_w": None if limit is None else limit / 1000,
    }
    whole = _device(nvml, handle, **facts, divided=divided)
    parts = _parts(nvml, handle) if divided else []
    return [whole, *(_device(nvml, part, **facts, parent=whole.uuid) for part in parts)]


def _parts(nvml: Nvml, handle: Any) -> list[Any]:  # noqa: ANN401 - opaque
    places = range(ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0)
    found = (ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place) for place in places)
    return [part for part in found if part is not None]


def _device(nvml: Nvml, handle: Any, **facts: Any) -> Gpu:  # noqa: ANN401 - opaque
    # Containers are often refused the memory and the processes of a GPU that is divided.
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    return Gpu(
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        memory_bytes=memory.total if memory else 0,
        free_bytes=memory.free if memory else 0,
        processes=tuple(
            GpuProcess(
                pid=process.pid,
                name=ask(nvml.nvmlSystemGetProcessName, process.pid) or "unknown",
                bytes_used=process.usedGpuMemory,
            )
            for process in processes(nvml, handle) or ()
        ),
        state=read_state(nvml, handle),
        **facts,
    )


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
