"""The matrix: which environments exist, and which of them a command line names."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.errors import InputError, UsageError, nearest
from orchestrator.model.matrix import Cuda, Impossible, Matrix, Row
from orchestrator.model.names import check_name

if TYPE_CHECKING:
    from collections.abc import Iterable

MATRIX = Path(__file__).parent / "resources" / "matrix.toml"


def load(path: Path = MATRIX) -> Matrix:
    """All rows of the matrix, validated; InputError names the file, the row and the key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.", fix="Mend the line it names.") from error
    return Matrix(rows={name: _row(path, name, table) for name, table in tables.items()})


def select(matrix: Matrix, names: Iterable[str]) -> tuple[Row, ...]:
    """The rows that identifiers and globs name, in the order given, each once.

    An identifier given again makes a copy of its row, `tf114-2`, with the same lock: an environment
    raced against itself. What several globs match counts once.
    """
    chosen: dict[str, Row] = {}
    named: dict[str, int] = {}
    for name in names:
        if name in matrix.rows:
            named[name] = named.get(name, 0) + 1
            row = _copy(matrix.rows[name], named[name])
            chosen.setdefault(row.identifier, row)
        else:
            for row in _matching(matrix, name):
                chosen.setdefault(row.identifier, row)
    return tuple(chosen.values())


def pythons(matrix: Matrix) -> set[str]:
    """The versions of Python that rows use, such as `3.7`."""
    return {row.python for row in matrix.rows.values()}


def _copy(row: Row, number: int) -> Row:
    if number == 1:
        return row
    return msgspec.structs.replace(
        row, identifier=f"{row.identifier}-{number}", lock=row.identifier
    )


def _matching(matrix: Matrix, pattern: str) -> list[Row]:
    rows = [row for name, row in matrix.rows.items() if fnmatchcase(name, pattern)]
    if rows:
        return rows
    hint = nearest(pattern, matrix.rows)
    if any(sign in pattern for sign in "*?["):
        raise UsageError(
            f"No environment matches {pattern!r}.", fix=f"Valid: {', '.join(matrix.rows)}."
        )
    raise UsageError(f"There is no environment {pattern!r}. {hint}")


def _row(path: Path, name: str, table: Any) -> Row:  # noqa: ANN401 - what TOML holds
    where = f"{path}: row {name!r}"
    check_name(name, what="Environment")
    if not isinstance(table, dict):
        raise InputError(f"{where} is not a table.", fix=f"Write [{name}] and its keys below it.")
    _check_keys(where, table, Row)
    _check_keys(f"{where}, table cuda", table.get("cuda"), Cuda)
    rules = table.get("impossible")
    for rule in rules if isinstance(rules, list) else ():
        _check_keys(f"{where}, table impossible", rule, Impossible)
    try:
        return msgspec.convert({**table, "identifier": name}, Row)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}.", fix="Compare it with the rows that load.") from error


def _check_keys(where: str, table: object, kind: type[msgspec.Struct]) -> None:
    # `identifier` is the table's name and `lock` belongs to copies: neither is written in the file.
    valid = set(kind.__struct_fields__) - {"identifier", "lock"}
    for key in table if isinstance(table, dict) else ():
        if key not in valid:
            raise InputError(f"{where}: there is no key {key!r}. {nearest(key, valid)}")
