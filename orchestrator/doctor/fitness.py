"""Whether the GPU build of a row runs on a GPU: driver, CUDA, and the code in its wheel.

A wheel holds machine code (SASS, sm_XY), which runs on GPUs of the same major number and at least
that minor one, and perhaps PTX (compute_XY), which the driver compiles for any newer GPU: that is a
start of many minutes. https://docs.nvidia.com/cuda/ampere-compatibility-guide/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from orchestrator.model.matrix import framework

if TYPE_CHECKING:
    from orchestrator.model.gpu import Gpu
    from orchestrator.model.health import Level
    from orchestrator.model.matrix import Cuda, Row

Capability = tuple[int, int]

# From this compute capability on, the libraries of a CUDA release have no kernels, whatever PTX the
# wheel has: TensorFlow 2.3 on an RTX 3090 ends with "device kernel image is invalid".
# https://github.com/tensorflow/tensorflow/issues/43718
_TOO_NEW: tuple[tuple[Version, Capability], ...] = (
    (Version("11.0"), (8, 0)),  # before CUDA 11.0: no Ampere
    (Version("12.3"), (10, 0)),  # before CUDA 12.3: no Blackwell
)
# Compiled for Blackwell, it starts and then often fails (CUDA_ERROR_INVALID_HANDLE).
# https://github.com/tensorflow/tensorflow/issues/97387
_UNRELIABLE: Capability = (10, 0)
_MIG_SINCE = Version("11.0")
OTHER_GPU = "Choose another GPU with --gpus, a newer release, or --device cpu."


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How a row and a GPU go together. `slow`: its code is compiled in the first call."""

    level: Level = "ok"
    reason: str = ""
    fix: str = ""
    slow: bool = False


def fit(row: Row, gpu: Gpu) -> Fit:
    """Whether this row's GPU build runs on this GPU, and why not."""
    cuda = row.cuda
    if cuda is None:
        return Fit(
            level="cannot", reason=f"{row.title} has no build for GPUs", fix="Use --device cpu."
        )
    refused = _refused(row, cuda, gpu)
    if refused is not None:
        return refused
    # XLA makes JAX's code for the GPU that is there, and PyTorch's wheels cover every generation:
    # what such a row names is the oldest.
    oldest_only = framework(row)[0] != "tensorflow"
    if oldest_only or _native(cuda, _capability(gpu)):
        return Fit()
    return _compiled(row, cuda, gpu)


def _refused(row: Row, cuda: Cuda, gpu: Gpu) -> Fit | None:
    have = _capability(gpu)
    if Version(gpu.driver) < Version(cuda.minimum_driver):
        return Fit(
            level="cannot",
            reason=f"the NVIDIA driver {gpu.driver} is too old: CUDA {cuda.version} needs "
            f"{cuda.minimum_driver}",
            fix=f"Install driver {cuda.minimum_driver} or newer: "
            "https://www.nvidia.com/drivers (as root; Ubuntu: ubuntu-drivers install)",
        )
    if gpu.parent is not None and Version(cuda.version) < _MIG_SINCE:
        return Fit(
            level="cannot",
            reason=f"CUDA {cuda.version} does not know MIG devices, such as this part of GPU "
            f"{gpu.index}",
            fix=f"Use an undivided GPU, end MIG as root (nvidia-smi -i {gpu.index} -mig 0), or "
            "--device cpu.",
        )
    for before, too_new in _TOO_NEW:
        if Version(cuda.version) < before and have >= too_new:
            return Fit(
                level="cannot",
                reason=f"CUDA {cuda.version} has no code for {gpu.name} (compute capability "
                f"{gpu.capability}): its libraries are older than this GPU",
                fix=OTHER_GPU + _nvidias_own(row, have),
            )
    oldest = min(_number(name) for name in cuda.architectures)
    if have < oldest:
        return Fit(
            level="cannot",
            reason=f"{row.title} no longer supports {gpu.name} (compute capability "
            f"{gpu.capability}; it begins at {oldest[0]}.{oldest[1]})",
            fix="Choose an older release, another GPU with --gpus, or --device cpu.",
        )
    return None


def _nvidias_own(row: Row, have: Capability) -> str:
    if row.tensorflow.startswith("1.15.") and have < _UNRELIABLE:
        return (
            " NVIDIA's own build of 1.15 runs there: --image "
            f"{row.identifier}=REGISTRY/nvidia/tensorflow:23.03-tf1-py3"
        )
    return ""


def _compiled(row: Row, cuda: Cuda, gpu: Gpu) -> Fit:
    """What PTX makes of it, where there is no machine code."""
    have = _capability(gpu)
    if not any(
        name.startswith("compute_") and _number(name) <= have for name in cuda.architectures
    ):
        return Fit(
            level="cannot",
            reason=f"the wheel of {row.title} has no code for {gpu.name} (compute capability "
            f"{gpu.capability}), and none that could be compiled for it",
            fix=OTHER_GPU,
        )
    if Version(gpu.cuda) < Version(cuda.version):
        return Fit(
            level="cannot",
            reason=f"its code has to be compiled for {gpu.name}, which a driver for CUDA "
            f"{gpu.cuda} cannot do with that of CUDA {cuda.version}",
            fix="Install a newer driver: https://www.nvidia.com/drivers",
        )
    unreliable = (
        ", and it is reported to fail afterwards (CUDA_ERROR_INVALID_HANDLE)"
        if have >= _UNRELIABLE
        else ""
    )
    return Fit(
        level="warning",
        reason=f"slow start: the driver compiles {row.title} for {gpu.name} (compute capability "
        f"{gpu.capability}) in the first call, which may take 30 minutes{unreliable}",
        fix="It is kept for the next job; nothing to do but wait once.",
        slow=True,
    )


def _native(cuda: Cuda, have: Capability) -> bool:
    return any(
        major == have[0] and minor <= have[1]
        for major, minor in (_number(name) for name in cuda.architectures)
    )


def _capability(gpu: Gpu) -> Capability:
    major, minor = gpu.capability.split(".")
    return int(major), int(minor)


def _number(name: str) -> Capability:
    """`sm_86` and `compute_86` as (8, 6), `sm_120` as (12, 0)."""
    digits = name.rpartition("_")[2].rstrip("af")
    return int(digits[:-1]), int(digits[-1])
