"""What is supported, as a table in Markdown: the matrix, as the README shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.model.matrix import framework
from orchestrator.model.names import FRAMEWORKS

if TYPE_CHECKING:
    from orchestrator.model.matrix import Cuda, Matrix, Row

# By compute capability, oldest first.
GENERATIONS = (
    ("Kepler", ("3.5", "3.7")),
    ("Maxwell", ("5.0", "5.2")),
    ("Pascal", ("6.0", "6.1")),
    ("Volta", ("7.0",)),
    ("Turing", ("7.5",)),
    ("Ampere", ("8.0", "8.6")),
    ("Ada", ("8.9",)),
    ("Hopper", ("9.0",)),
    ("Blackwell", ("10.0", "12.0")),
)
_HEAD = (
    ("name", "versions", "Python", "default", "apis", "cannot"),
    ("CUDA / cuDNN", "driver", "GPUs *", "GPU in", "GB (GPU)"),
)


def support(matrix: Matrix) -> str:
    """The table, one line a row of the matrix, and the note below it."""
    head = [cell for part in _HEAD for cell in part]
    lines = [head, ["---"] * len(head), *(_line(row) for row in matrix.rows.values())]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        f"{table}\n\n"
        "\\* GPUs that the wheel has machine code for; on newer ones it starts slowly (the driver\n"
        "compiles), or not at all: `stackrace doctor` says which.\n"
    )


def generations(architectures: tuple[str, ...]) -> str:
    """The GPUs that run these architectures' machine code: `Kepler to Turing`.

    Machine code for 7.0 runs on 7.5 too: same major, not a lower minor.
    """
    built = [_number(name) for name in architectures]
    native = [
        name
        for name, capabilities in GENERATIONS
        if any(_runs(built, capability) for capability in capabilities)
    ]
    return native[0] if len(native) == 1 else f"{native[0]} to {native[-1]}" if native else "none"


def _runs(built: list[tuple[int, int]], capability: str) -> bool:
    major, minor = (int(part) for part in capability.split("."))
    return any(each == major and lower <= minor for each, lower in built)


def _number(architecture: str) -> tuple[int, int]:
    """`sm_86` and `compute_86` (machine code and PTX) are (8, 6), `sm_120` is (12, 0)."""
    digits = architecture.partition("_")[2].rstrip("af")
    return int(digits[:-1]), int(digits[-1])


def _line(row: Row) -> list[str]:
    name, version = framework(row)
    versions = f"{FRAMEWORKS[name]} {version}" + (f", Keras {row.keras}" if row.keras else "")
    gpu = row.size_mb.get("gpu")
    size = f"{row.size_mb['cpu'] / 1000:.1f}" + (f" ({gpu / 1000:.1f})" if gpu else "")
    return [
        f"`{row.identifier}`",
        versions,
        row.python,
        row.native_mode,
        ", ".join(row.apis),
        _cannot(row),
        *_cuda(row.cuda),
        size,
    ]


def _cannot(row: Row) -> str:
    """Combinations that the row refuses: `keras/eager`, `dataset`."""
    return ", ".join(rule.what for rule in row.impossible) or "-"


def _cuda(cuda: Cuda | None) -> list[str]:
    if cuda is None:
        return ["-", "-", "-", "-"]
    return [
        f"{cuda.version} / {cuda.cudnn}",
        cuda.minimum_driver,
        generations(cuda.architectures),
        "venv, container" if cuda.from_wheels else "container",
    ]
