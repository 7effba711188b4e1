"""Facts about the interpreter and the machine's settings: what a number is only true for."""

import os
import platform
import sys

# Variables that change what TensorFlow does. Of others only the names are kept: results are shared,
# and a value may be a secret or somebody's name. The host's list of what a worker gets has the same
# prefixes; a contract test holds the two together.
TELLING = (
    "CUDA_",
    "GOTO_",
    "KERAS_BACKEND",
    "KMP_",
    "MKL_",
    "OMP_",
    "OPENBLAS_",
    "TF_AUTOTUNE",
    "TF_CPP_",
    "TF_CUDA_",
    "TF_CUDNN_",
    "TF_DETERMINISTIC",
    "TF_DISABLE_",
    "TF_ENABLE_",
    "TF_FORCE_",
    "TF_GPU_",
    "TF_INTER",
    "TF_INTRA",
    "TF_LAYOUT",
    "TF_NUM_",
    "TF_ONEDNN_",
    "TF_USE_",
    "TF_XLA_",
    "XLA_",
)
# The host's mark on all processes of a job: it says nothing about the measurement.
_MARK = "STACKRACE_JOB"


def describe() -> dict:
    """Python, packages, threads and variables, before anything is known of TensorFlow."""
    return {
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "build": " ".join(platform.python_build()),
            "compiler": platform.python_compiler(),
        },
        "packages": packages(),
        "cores": len(os.sched_getaffinity(0)),
        "flags": {n: v for n, v in sorted(os.environ.items()) if n.startswith(TELLING)},
        "variables": sorted(n for n in os.environ if n != _MARK),
    }


def portable(path) -> str:
    """`path` without what is only true for this machine: below the environment, or a module path.

    It still tells which of several installed files this is.
    """
    for folder in [sys.prefix, *sys.path]:
        if folder and path.startswith(os.path.join(folder, "")):
            return os.path.relpath(path, folder)
    return os.path.basename(path)


def packages() -> dict:
    """Version of every installed package, by name, read off the folders that installers leave.

    `importlib.metadata` came with Python 3.8, and 3.6 and 3.7 may have nothing in its place.
    """
    found = {}
    for folder in sys.path:
        if os.path.isdir(folder):
            for entry in os.listdir(folder):
                stem, kind = os.path.splitext(entry)
                name, _, version = stem.partition("-")
                if kind in (".dist-info", ".egg-info") and version:
                    found[name.replace("_", "-").lower()] = version.partition("-py")[0]
    return dict(sorted(found.items()))
