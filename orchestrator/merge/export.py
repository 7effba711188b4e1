"""The table as a file: Parquet, CSV or JSON."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from orchestrator.errors import UsageError
from orchestrator.merge.columns import COLUMNS, SERIES
from orchestrator.store import NAME_RESULTS, write_report

if TYPE_CHECKING:
    from pathlib import Path


def export(frame: pd.DataFrame, path: Path, *, fix: str = NAME_RESULTS) -> None:
    """Write the table as .parquet, .csv (lists as JSON text) or .json (a list of objects)."""
    writers = {".parquet": _parquet, ".csv": _csv, ".json": _json}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise UsageError(
            f"{path} ends in {path.suffix or 'nothing'}; a table ends in {', '.join(writers)}.",
            fix="The ending says which format is written.",
        )
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "would stand in a folder that does not exist"
        raise UsageError(f"{path} {problem}.", fix="Name a file in an existing folder.")
    schema = pa.schema([(name, column.kind) for name, column in COLUMNS.items()])
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    write_report(path, writer(table), fix=fix)


def _parquet(table: Any) -> bytes:  # noqa: ANN401  pyarrow has no types
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def _csv(table: Any) -> bytes:  # noqa: ANN401
    columns = {
        name: [msgspec.json.encode(item).decode() for item in column]
        if COLUMNS[name].kind == SERIES
        else column
        for name, column in table.to_pydict().items()
    }
    return pd.DataFrame(columns, dtype="object").to_csv(index=False).encode()


def _json(table: Any) -> bytes:  # noqa: ANN401
    return msgspec.json.encode(table.to_pylist()) + b"\n"
