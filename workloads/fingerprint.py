"""Facts about the interpreter and the machine's settings: what a number is only true for."""

import os
import platform
import sys

# Variables that can change what is measured. Of others only the names are kept: results are shared,
# and a value may be a secret.
_TELLING = (
    "CUDA_",
    "GOTO_",
    "KERAS_",
    "KMP_",
    "LD_",
    "MALLOC_",
    "MKL_",
    "NVIDIA_",
    "OMP_",
    "OPENBLAS_",
    "PYTHON",
    "TF_",
    "XLA_",
)


def describe() -> dict:
    """Python, packages, threads and variables, before anything is known of TensorFlow."""
    return {
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "build": " ".join(platform.python_build()),
            "compiler": platform.python_compiler(),
            "executable": sys.executable,
        },
        "packages": packages(),
        "cores": len(os.sched_getaffinity(0)),
        "flags": {n: v for n, v in sorted(os.environ.items()) if n.startswith(_TELLING)},
        "variables": sorted(os.environ),
    }


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
