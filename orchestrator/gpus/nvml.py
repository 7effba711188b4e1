"""What stackrace asks of NVML, in NVML's own names: the library is a module, tests have a fake.

Handles are opaque. Any question may raise NVMLError: NotSupported where this GPU, or a MIG device,
does not tell; NoPermission in containers and for other people's processes; GpuIsLost when it fell
off the bus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pynvml

from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
# NVML's reasons in words. Idle, and clocks that somebody set, slow nothing down by themselves.
THROTTLES: dict[int, str] = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "thermal slowdown",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hardware thermal slowdown",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power brake",
}


class Memory(Protocol):
    """Bytes of a GPU's memory."""

    total: int
    free: int
    used: int


class Process(Protocol):
    """One process on a GPU; `usedGpuMemory` is None where the driver does not tell."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815 - NVML's own name


class Rates(Protocol):
    """Utilisation in percent."""

    gpu: int


class Nvml(Protocol):
    """The functions of pynvml that are used here."""

    def nvmlInit(self) -> None:
        """Connect to the driver."""

    def nvmlShutdown(self) -> None:
        """Let go of it."""

    def nvmlSystemGetDriverVersion(self) -> str:
        """`570.86.15`."""

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        """12080 for CUDA 12.8."""

    def nvmlSystemGetProcessName(self, pid: int) -> str:
        """The path of a process, or what the driver knows of it."""

    def nvmlDeviceGetCount(self) -> int:
        """How many GPUs this process may see."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: ANN401 - opaque
        """A GPU."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: ANN401 - opaque
        """A GPU or a MIG device."""

    def nvmlDeviceGetUUID(self, handle: Any) -> str:  # noqa: ANN401 - opaque
        """`GPU-...` or `MIG-...`."""

    def nvmlDeviceGetName(self, handle: Any) -> str:  # noqa: ANN401 - opaque
        """`NVIDIA H200`."""

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Memory:  # noqa: ANN401 - opaque
        """Its memory."""

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> tuple[int, int]:  # noqa: ANN401
        """(9, 0)."""

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> int:  # noqa: ANN401 - opaque
        """Milliwatts."""

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:  # noqa: ANN401 - opaque
        """Milliwatts."""

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:  # noqa: ANN401 - opaque
        """Degrees Celsius."""

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int) -> int:  # noqa: ANN401 - opaque
        """MHz."""

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Rates:  # noqa: ANN401 - opaque
        """Of the last sampling period."""

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:  # noqa: ANN401
        """A bit mask; the name is the one that old drivers know."""

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> Sequence[Process]:  # noqa: ANN401
        """Processes with a CUDA context."""

    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Any) -> Sequence[Process]:  # noqa: ANN401
        """The same of drivers before 510, which do not have the function above."""

    def nvmlDeviceGetMigMode(self, handle: Any) -> tuple[int, int]:  # noqa: ANN401 - opaque
        """Whether MIG is on now, and after the next reset."""

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:  # noqa: ANN401 - opaque
        """How many MIG devices there can be."""

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:  # noqa: ANN401
        """One MIG device; NotFound where that place is empty."""

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Any) -> Any:  # noqa: ANN401
        """The GPU that a MIG device is part of."""


def library() -> Nvml:
    """NVML itself."""
    found: Nvml = pynvml
    return found


def ask(question: Callable[..., T], *arguments: Any) -> T | None:  # noqa: ANN401 - as NVML takes them
    """The answer, or None where this GPU does not give it. A lost GPU still raises NVMLError."""
    try:
        return question(*arguments)
    except pynvml.NVMLError as error:
        if error.value in LOST:
            raise
        return None


def processes(nvml: Nvml, handle: Any) -> Sequence[Process] | None:  # noqa: ANN401 - opaque
    """Who has a CUDA context on a GPU; None where that is not told."""
    try:
        return ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    except pynvml.NVMLLibraryMismatchError:
        return ask(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)


def lost(name: str) -> EnvironmentFailedError:
    """The message for a GPU that no longer answers."""
    return EnvironmentFailedError(
        f"The GPU {name} does not answer any more.",
        why="It fell off the bus or needs a reset: overheating, power, or a crashed driver. The\n"
        "kernel's log names the cause (Xid): dmesg | grep -i xid",
        fix="Restart the machine, or reset the GPU as root: nvidia-smi --gpu-reset -i "
        f"{name}\nThen go on with --resume: nothing that was measured is lost.",
    )
