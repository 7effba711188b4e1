"""The table as it was merged, kept as Parquet: read back, it is the same table.

Texts are a number a row and each text once, lists one flat buffer: most of a table of thousands of
rows is then read without making an object of anything.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from orchestrator.merge.columns import COLUMNS, COUNT, FLAG, LISTS, SERIES, TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_AT_ONCE: Final = 10_000  # rows
_SCHEMA: Final = pa.schema([(name, column.kind) for name, column in COLUMNS.items()])
_TEXTS: Final = [name for name, column in COLUMNS.items() if column.kind == TEXT]


def save(frame: pd.DataFrame, path: Path) -> None:
    """Write the table, with checksums; so many rows at a time that no second copy of it is made."""
    options = {
        "compression": "none",  # times are noise, which does not get smaller
        "use_dictionary": _TEXTS,
        "write_statistics": False,
        "write_page_checksum": True,
    }
    with parquet.ParquetWriter(path, _SCHEMA, **options) as writer:
        for first in range(0, len(frame), _AT_ONCE):
            rows = frame.iloc[first : first + _AT_ONCE]
            columns = [_arrow(rows[name], column.kind) for name, column in COLUMNS.items()]
            writer.write_table(pa.table(columns, schema=_SCHEMA))


def load(path: Path) -> pd.DataFrame | None:
    """The table that was written; None where it is damaged, or not there."""
    try:
        with parquet.ParquetFile(
            path, read_dictionary=_TEXTS, page_checksum_verification=True
        ) as file:
            groups = range(file.num_row_groups)
            parts = [_frame(file.read_row_group(group, use_threads=False)) for group in groups]
    except (OSError, pa.ArrowException, AttributeError, KeyError, TypeError, ValueError):
        return None  # whatever it is, it is not what was written
    return pd.concat(parts, ignore_index=True) if parts else None


def _frame(table: Any) -> pd.DataFrame:  # noqa: ANN401  pyarrow has no types
    return pd.DataFrame(
        {
            name: _pandas(name, table.column(name).combine_chunks(), column.kind)
            for name, column in COLUMNS.items()
        }
    )


def _arrow(column: pd.Series, kind: pa.DataType) -> Any:  # noqa: ANN401  pyarrow has no types
    if kind != SERIES:
        return pa.array(column, type=kind, from_pandas=True)
    every = [np.asarray(values, dtype=np.float64) for values in column]
    ends = np.cumsum([len(values) for values in every], dtype=np.int32)
    flat = np.concatenate(every) if every else np.empty(0)
    return pa.ListArray.from_arrays(np.concatenate([np.zeros(1, np.int32), ends]), flat)


def _pandas(name: str, column: Any, kind: pa.DataType) -> pd.Series:  # noqa: ANN401
    if kind == TEXT:
        return pd.Series(_texts(column), dtype="object")
    if kind == SERIES:
        return pd.Series(_series(column, as_lists=name in LISTS), dtype="object")
    values = column.to_numpy(zero_copy_only=False)
    if kind == COUNT:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        numbers = np.where(missing, 0, values).astype(np.int64)
        return pd.Series(pd.arrays.IntegerArray(numbers, missing))
    return pd.Series(values, dtype="bool" if kind == FLAG else "float64")


def _texts(column: Any) -> NDArray[np.object_]:  # noqa: ANN401
    each = np.array([*column.dictionary.to_pylist(), None], dtype=object)  # None: the last
    places = column.indices.fill_null(len(each) - 1).to_numpy(zero_copy_only=False)
    found: NDArray[np.object_] = each[places]
    return found


def _series(column: Any, *, as_lists: bool) -> NDArray[np.object_]:  # noqa: ANN401
    flat = column.flatten().to_numpy(zero_copy_only=False)
    each = (flat[start:end] for start, end in pairwise(column.offsets.to_pylist()))
    values = map(_nulls, each) if as_lists else each
    return np.fromiter(values, dtype=np.object_, count=len(column))


def _nulls(values: NDArray[np.float64]) -> Sequence[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
