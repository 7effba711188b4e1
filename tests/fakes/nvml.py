"""An NVML with GPUs of its own, which answers and refuses as the real one does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pynvml

GIB = 2**30


@dataclass
class Process:
    """One process on a GPU."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815 - NVML's own name
    name: str = "/usr/bin/python3"


@dataclass
class Memory:
    """Bytes of a GPU's memory."""

    total: int
    free: int
    used: int


@dataclass
class Rates:
    """Utilisation in percent."""

    gpu: int = 3


@dataclass
class Device:
    """A GPU, or with a `parent` a MIG device."""

    name: str
    uuid: str
    capability: tuple[int, int]
    total: int
    used: int = 600 * 2**20  # what the driver keeps
    processes: list[Process] = field(default_factory=list)
    divided: bool = False
    parts: list[Device | None] = field(default_factory=list)  # None: an empty place
    parent: Device | None = None
    throttle: int = 0
    sm_mhz: int = 1980
    power_limit: int = 700_000  # mW
    lost: bool = False
    refuses: set[str] = field(default_factory=set)  # questions for which there is no permission
    has_mig: bool = True

    def mig(self, *uuids: str) -> Device:
        """Divide it into MIG devices, with an empty place before the last."""
        self.divided = True
        self.parts = [
            Device(
                name=f"{self.name} MIG 3g.20gb",
                uuid=uuid,
                capability=self.capability,
                total=20 * GIB,
                used=2**24,
                parent=self,
            )
            for uuid in uuids
        ]
        self.parts.insert(len(self.parts) - 1, None)
        return self


def h200(uuid: str = "GPU-00000000-aaaa-4000-8000-000000000200") -> Device:
    """A Hopper GPU with 141 GB."""
    return Device(name="NVIDIA H200", uuid=uuid, capability=(9, 0), total=143_771 * 2**20)


def rtx3090(uuid: str = "GPU-11111111-bbbb-4000-8000-000000003090") -> Device:
    """An Ampere GPU of a workstation."""
    return Device(
        name="NVIDIA GeForce RTX 3090",
        uuid=uuid,
        capability=(8, 6),
        total=24 * GIB,
        has_mig=False,
    )


def a100(uuid: str = "GPU-22222222-cccc-4000-8000-000000000100") -> Device:
    """An Ampere GPU that can be divided."""
    return Device(name="NVIDIA A100-SXM4-40GB", uuid=uuid, capability=(8, 0), total=40 * GIB)


def gtx1080(uuid: str = "GPU-33333333-dddd-4000-8000-000000001080") -> Device:
    """A Pascal GPU, which knows neither MIG nor its own throttling by name."""
    return Device(
        name="NVIDIA GeForce GTX 1080",
        uuid=uuid,
        capability=(6, 1),
        total=8 * GIB,
        used=300 * 2**20,
        has_mig=False,
    )


def error(code: int) -> pynvml.NVMLError:
    """What NVML raises for a code."""
    return pynvml.NVMLError(code)


class FakeNvml:
    """NVML over these devices; `fails`: the code with which it does not even start."""

    def __init__(
        self,
        *devices: Device,
        driver: str = "570.86.15",
        cuda: int = 12080,
        fails: int | None = None,
        old: bool = False,  # a driver before 510
    ) -> None:
        self.devices = devices
        self.driver = driver
        self.cuda = cuda
        self.fails = fails
        self.old = old
        self.begun = 0

    def nvmlInit(self) -> None:
        if self.fails is not None:
            raise error(self.fails)
        self.begun += 1

    def nvmlShutdown(self) -> None:
        self.begun -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return self.driver

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return self.cuda

    def nvmlSystemGetProcessName(self, pid: int) -> str:
        for device in self._every():
            for process in device.processes:
                if process.pid == pid:
                    return process.name
        raise error(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetCount(self) -> int:
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Device:
        return self._answers(self.devices[index], "handle")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Device:
        for device in self._every():
            if device.uuid == uuid:
                return self._answers(device, "handle")
        raise error(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetUUID(self, handle: Any) -> str:  # noqa: ANN401 - opaque
        return self._answers(handle, "uuid").uuid

    def nvmlDeviceGetName(self, handle: Any) -> str:  # noqa: ANN401 - opaque
        return self._answers(handle, "name").name

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Memory:  # noqa: ANN401 - opaque
        device = self._answers(handle, "memory")
        return Memory(device.total, device.total - device.used, device.used)

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> tuple[int, int]:  # noqa: ANN401
        return self._answers(handle, "capability").capability

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Any) -> int:  # noqa: ANN401 - opaque
        return self._whole(handle, "power").power_limit

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:  # noqa: ANN401 - opaque
        self._whole(handle, "power")
        return 75_250

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:  # noqa: ANN401 - opaque
        assert pynvml.NVML_TEMPERATURE_GPU == sensor
        self._whole(handle, "temperature")
        return 31

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int) -> int:  # noqa: ANN401 - opaque
        device = self._whole(handle, "clocks")
        return {pynvml.NVML_CLOCK_SM: device.sm_mhz, pynvml.NVML_CLOCK_MEM: 3201}[kind]

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Rates:  # noqa: ANN401 - opaque
        if self._whole(handle, "utilisation").divided:
            raise error(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return Rates()

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:  # noqa: ANN401
        return self._whole(handle, "throttle").throttle

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Process]:  # noqa: ANN401
        if self.old:
            raise pynvml.NVMLLibraryMismatchError("Unversioned function called")
        return list(self._answers(handle, "processes").processes)

    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: Any) -> list[Process]:  # noqa: ANN401
        return list(self._answers(handle, "processes").processes)

    def nvmlDeviceGetMigMode(self, handle: Any) -> tuple[int, int]:  # noqa: ANN401 - opaque
        device = self._whole(handle, "mig")
        if not device.has_mig:
            raise error(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return (int(device.divided), int(device.divided))

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:  # noqa: ANN401 - opaque
        return 7 if self._whole(handle, "mig").divided else 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Device:  # noqa: ANN401
        parts = self._whole(handle, "mig").parts
        found = parts[index] if index < len(parts) else None
        if found is None:
            raise error(pynvml.NVML_ERROR_NOT_FOUND)
        return found

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: Any) -> Device:  # noqa: ANN401
        device = self._answers(handle, "mig")
        if device.parent is None:
            raise error(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return device.parent

    def _every(self) -> list[Device]:
        parts = [part for device in self.devices for part in device.parts if part is not None]
        return [*self.devices, *parts]

    def _answers(self, device: Any, question: str) -> Device:  # noqa: ANN401 - opaque
        assert isinstance(device, Device)
        if device.lost or (device.parent is not None and device.parent.lost):
            raise error(pynvml.NVML_ERROR_GPU_IS_LOST)
        if question in device.refuses:
            raise error(pynvml.NVML_ERROR_NO_PERMISSION)
        return device

    def _whole(self, device: Any, question: str) -> Device:  # noqa: ANN401 - opaque
        """What only a whole GPU tells."""
        found = self._answers(device, question)
        if found.parent is not None:
            raise error(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return found
