"""GPUs as NVML shows them: what they are, and what they are doing."""

from __future__ import annotations

from typing import Any

import msgspec


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody on a GPU. `bytes_used` is None where the driver does not tell."""

    pid: int
    name: str
    bytes_used: int | None


class GpuState(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of a GPU; None where this GPU does not tell."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    utilisation: float | None = None  # 0 to 1; not reported on MIG devices
    throttle: tuple[str, ...] | None = None  # NVML's reasons in words; idle is none


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, or a MIG device, that a process can be given."""

    index: int  # of the GPU, or of the GPU that a MIG device is part of
    uuid: str  # GPU-... or MIG-...
    name: str
    memory_bytes: int
    free_bytes: int
    capability: str  # compute capability: 9.0
    driver: str  # 570.86.15
    cuda: str  # the newest CUDA that the driver works with: 12.8
    power_limit_w: float | None = None
    parent: str | None = None  # UUID of the GPU that a MIG device is part of
    divided: bool = False  # MIG is on: its MIG devices can be used, itself it cannot
    processes: tuple[GpuProcess, ...] = ()
    state: GpuState = GpuState()

    def lasting(self) -> dict[str, Any]:
        """What it is, without what it does at the moment: for records."""
        momentary = {"free_bytes", "processes", "state"}
        facts: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in facts.items() if name not in momentary}
