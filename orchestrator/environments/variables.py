"""The environment variables of a worker: few, and the same for all arms."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.model.names import Device

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


def worker_variables(user: Mapping[str, str], *, home: Path, device: Device) -> dict[str, str]:
    """What a worker gets of the user's variables, and what it gets instead of them.

    `home` is the job's own folder: a keras.json in the user's would change backend and float type.
    """
    kept = {
        name: value
        for name, value in user.items()
        if any(fnmatchcase(name, pattern) for pattern in ALLOWED)
    }
    kept |= {
        "HOME": str(home),
        "KERAS_HOME": str(home / ".keras"),
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
    }
    if device == "cpu":
        kept["CUDA_VISIBLE_DEVICES"] = "-1"
    return kept
