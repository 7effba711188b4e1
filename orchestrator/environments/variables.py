"""The environment variables of a worker: few, and the same for all arms."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from orchestrator.model.names import Device

CUDA_CACHE = "CUDA_CACHE_PATH"
# The most that the driver takes; a large TensorFlow compiled for one GPU is more than its default.
CUDA_CACHE_BYTES = 4 * 2**30

# Threads, devices and their like are left as the user has them; the record says what they were.
ALLOWED = (
    "PATH",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "OMP_*",
    "KMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "GOTO_*",
    "XLA_*",
    "CUDA_*",
    "SSL_CERT_*",
    # Not TF_*: Terraform and OpenTofu share the prefix, and keep secrets in it, which must not
    # reach a record.
    "TF_AUTOTUNE*",
    "TF_CPP_*",
    "TF_CUDA_*",
    "TF_CUDNN_*",
    "TF_DETERMINISTIC*",
    "TF_DISABLE_*",
    "TF_ENABLE_*",
    "TF_FORCE_*",
    "TF_GPU_*",
    "TF_INTER*",
    "TF_INTRA*",
    "TF_LAYOUT*",
    "TF_NUM_*",
    "TF_ONEDNN_*",
    "TF_USE_*",
    "TF_XLA_*",
)


def matching(patterns: Iterable[str]) -> re.Pattern[str]:
    """What matches any of these globs: a hundred names by fifty globs take 3 ms otherwise."""
    return re.compile("|".join(map(translate, patterns)))


_ALLOWED = matching(ALLOWED)


def allowed(user: Mapping[str, str]) -> dict[str, str]:
    """Those of the user's variables that every worker gets."""
    return {name: value for name, value in user.items() if _ALLOWED.match(name)}


def worker_variables(user: Mapping[str, str], *, home: Path, device: Device) -> dict[str, str]:
    """What a worker gets of the user's variables, and what it gets instead of them.

    `home` is the job's own folder: a keras.json in the user's would change backend and float type.
    """
    kept = allowed(user) | {
        "HOME": str(home),
        "KERAS_HOME": str(home / ".keras"),
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
    }
    if device == "cpu":
        kept["CUDA_VISIBLE_DEVICES"] = "-1"
    return kept


def gpu_variables(
    user: Mapping[str, str],
    *,
    gpus: Sequence[str],
    libraries: Iterable[Path] = (),
    cache: Path | None = None,
) -> dict[str, str]:
    """What a worker on GPUs gets besides, the same for all arms: memory is taken as it is needed.

    `gpus`: UUIDs; without any, the user's choice stands. `libraries`: folders of CUDA's libraries,
    which old wheels find only when they are named before Python starts. `cache`: where code that
    the driver compiles for these GPUs is kept from job to job.
    """
    told = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if gpus:
        told["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    folders = [str(folder) for folder in libraries]
    if folders:
        theirs = user.get("LD_LIBRARY_PATH", "")
        told["LD_LIBRARY_PATH"] = ":".join([*folders, theirs] if theirs else folders)
    if cache is not None:
        # Drivers before 470 name MIG devices MIG-GPU-.../1/0.
        told[CUDA_CACHE] = str(cache / ("+".join(gpus).replace("/", "_") or "any"))
        told["CUDA_CACHE_MAXSIZE"] = str(CUDA_CACHE_BYTES)
    return told
