"""The merged table as arrays: one line a cell, one column a round of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

NO_HOST = -1
# What tells which way through its framework a process took: columns, and what people call them.
PATHS: Final[Mapping[str, str]] = {
    "executed_as": "ran as",
    "training_loop": "training loop",
    "data_adapter": "data adapter",
    "kernel": "kernel",
    "retraces": "retraces",
}


class Key(NamedTuple):
    """What tells one cell from another: its arm's parts, then its case's."""

    environment: str
    api: str
    mode: str
    workload: str | None
    model: str
    data: str
    input: str
    method: str
    device: str
    knobs: str


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Every planned cell, in the table's order. Arrays are (cells,) or (cells, rounds).

    A cell has one counting job a round, so that a place in an array is one process; `host` numbers
    the machine of one run that it ran on, by its name, `machine` the key that machines of one kind
    share: another one for the processes that use its GPUs.
    `log_s` is NaN where there is no number.
    """

    keys: tuple[Key, ...]
    arms: tuple[str, ...]
    cases: tuple[str, ...]
    native: NDArray[np.bool_]
    python: tuple[str, ...]
    version: tuple[tuple[str, str], ...]  # TensorFlow (empty where there is none), Keras
    backend: tuple[str, ...]  # `venv`, or a container with the image that the user named
    planned: NDArray[np.bool_]
    log_s: NDArray[np.float64]
    host: NDArray[np.int64]
    machine: NDArray[np.int64]
    started_s: NDArray[np.float64]
    started_wall_s: NDArray[np.float64]
    iterations: NDArray[np.float64]
    batch: NDArray[np.float64]  # calls that a value covers
    unsettled: NDArray[np.bool_]  # looked at, and without a steady state
    outcome: NDArray[np.object_]
    paths: dict[str, NDArray[np.object_]]  # as PATHS: None where nothing was observed
    outputs: NDArray[np.object_]  # before training, empty lists where they were not stored
    half: NDArray[np.bool_]  # whether these were computed in half precision

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Where there is a number."""
        return np.isfinite(self.log_s)


def read(frame: pd.DataFrame) -> Cells:
    """Arrays of the counting rows of a merged table."""
    counting = frame[frame["counts"].to_numpy(dtype=bool)].reset_index(drop=True)
    cell = _codes(counting, ["arm", "case"])
    column = _codes(counting, ["run_id", "round"])
    first = counting.drop_duplicates(["arm", "case"])
    shape = (len(first), int(column.max(initial=-1)) + 1)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        array = np.full(shape, np.nan)
        array[cell, column] = values
        return array

    def words(name: str) -> NDArray[np.object_]:
        array = np.full(shape, None, dtype=object)
        found = counting[name].astype(object)
        array[cell, column] = found.where(found.notna(), None).to_numpy()
        return array

    outcome = words("outcome")

    def places(names: list[str]) -> NDArray[np.int64]:
        array = np.full(shape, NO_HOST, dtype=np.int64)
        array[cell, column] = np.where(counting["machine"].isna(), NO_HOST, _codes(counting, names))
        return array

    rows = first[list(Key._fields)].to_numpy(dtype=object)
    return Cells(
        keys=tuple(Key(*row) for row in rows),
        arms=tuple(first["arm"]),
        cases=tuple(first["case"]),
        native=first["native"].to_numpy(dtype=bool),
        python=tuple(first["python"]),
        version=tuple(zip(first["tensorflow"], first["keras"], strict=True)),
        backend=tuple(
            f"{backend} {image}".rstrip()
            for backend, image in zip(first["backend"], first["image"], strict=True)
        ),
        planned=outcome != None,  # noqa: E711  elementwise
        log_s=spread(np.log(counting["median_s"].to_numpy(dtype=float, na_value=np.nan))),
        host=places(["run_id", "node"]),
        machine=places(["machine"]),
        started_s=spread(counting["started_s"].to_numpy(dtype=float)),
        started_wall_s=spread(counting["started_wall_s"].to_numpy(dtype=float)),
        iterations=spread(counting["iterations_done"].to_numpy(dtype=float, na_value=np.nan)),
        batch=spread(counting["timing_batch"].to_numpy(dtype=float, na_value=np.nan)),
        unsettled=words("steady_state") == "no steady state",
        outcome=outcome,
        paths={name: words(name) for name in PATHS},
        outputs=words("outputs_before"),
        half=words("outputs_half") == True,  # noqa: E712  elementwise
    )


def _codes(frame: pd.DataFrame, columns: list[str]) -> NDArray[np.int64]:
    """A number for each distinct combination, by first appearance."""
    groups = frame.groupby(columns, sort=False, dropna=False)
    return np.asarray(groups.ngroup(), dtype=np.int64)
