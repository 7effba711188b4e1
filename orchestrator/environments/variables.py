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
    "TF_*",
    "XLA_*",
    "CUDA_*",
    "SSL_CERT_*",
)
# Terraform shares TensorFlow's prefix, and keeps secrets in it: they must not reach a record.
NOT_TENSORFLOW = ("TF_VAR_*", "TF_TOKEN_*", "TF_CLI_*", "TF_HTTP_*", "TF_WORKSPACE", "TF_LOG*")


def worker_variables(user: Mapping[str, str], *, home: Path, device: Device) -> dict[str, str]:
    """What a worker gets of the user's variables, and what it gets instead of them.

    `home` is the job's own folder: a keras.json in the user's would change backend and float type.
    """
    kept = {
        name: value
        for name, value in user.items()
        if _matches(name, ALLOWED) and not _matches(name, NOT_TENSORFLOW)
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


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
