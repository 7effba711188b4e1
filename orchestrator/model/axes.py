"""The axes of a grid: what cells differ in, and the value that one has of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.model.cell import split_knobs
from orchestrator.model.knobs import OF_WORK

if TYPE_CHECKING:
    from orchestrator.model.comparison import Contrast

WORK_AXES: Final = OF_WORK | {"size"}  # with another value there is something else to do


class Placed(Protocol):
    """A cell, by the parts of its arm and its case."""

    @property
    def environment(self) -> str:
        """Which one: `tf20`."""

    @property
    def api(self) -> str:
        """`tf.keras`."""

    @property
    def mode(self) -> str:
        """`eager`."""

    @property
    def workload(self) -> str | None:
        """The user's file, where several are arms."""

    @property
    def model(self) -> str:
        """`small`, or the name of a file."""

    @property
    def data(self) -> str:
        """`small`, or a shape."""

    @property
    def input(self) -> str:
        """`numpy`."""

    @property
    def method(self) -> str:
        """`fit`."""

    @property
    def device(self) -> str:
        """`cpu`."""

    @property
    def knobs(self) -> str:
        """Those that are turned: `batch_size=64+threads=1`."""


def values(cell: Placed) -> dict[str, str]:
    """The value of every axis in a cell, by the names of contrasts; turned knobs are axes too.

    Empty for the workload where there is only one. A knob that is not turned is no axis.
    """
    return {
        "version": cell.environment,
        "api": cell.api,
        "mode": cell.mode,
        "workload": cell.workload or "",
        "size": f"{cell.model}-{cell.data}",
        "input": cell.input,
        "method": cell.method,
        "device": cell.device,
        **split_knobs(cell.knobs),
    }


def of_contrast(contrast: Contrast) -> str:
    """The axis that a contrast goes along; of environments as installed, several at once."""
    if contrast.kind == "as_installed":
        return "version"
    return contrast.knob or contrast.kind
