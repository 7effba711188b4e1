"""The matrix: which environments exist, and which of them a command line names."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from packaging.version import InvalidVersion, Version

from orchestrator.errors import InputError, UsageError, nearest
from orchestrator.model.matrix import Cuda, Impossible, Matrix, Row
from orchestrator.model.names import Framework, Variant, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MATRIX = Path(__file__).parent / "resources" / "matrix.toml"
# Never written in a file: the table's name, the row whose lock a copy uses, who asked for it and
# for what else.
NOT_KEYS = frozenset({"identifier", "lock", "spec", "extra"})


def load(path: Path = MATRIX) -> Matrix:
    """All rows of the matrix, validated; InputError names the file, the row and the key."""
    return _read(path.read_text(encoding="utf-8"), str(path))


@lru_cache(maxsize=1)  # a command asks for the shipped one several times, and it takes 15 ms
def _read(text: str, path: str) -> Matrix:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.", fix="Mend the line it names.") from error
    except (RecursionError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {str(error) or 'it is nested too deeply'}.",
            why="It holds numbers of thousands of digits, or thousands of brackets.",
            fix="Compare it with the file that stackrace came with.",
        ) from error
    return Matrix(rows={name: _row(path, name, table) for name, table in tables.items()})


def load_user(
    tables: Mapping[str, Any],
    source: Path,
    *,
    matrix: Matrix,
    complete: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> dict[str, Row]:
    """The rows of `[environments.NAME]` in stackrace.toml, by name; keys as in the matrix.

    `complete` gives the values of the keys that a valid table leaves out.
    Raises InputError or UsageError naming the file, the row and the key.
    """
    return {name: _user_row(source, name, tables[name], matrix, complete) for name in tables}


def select(matrix: Matrix, names: Iterable[str]) -> tuple[Row, ...]:
    """The rows that identifiers and globs name, in the order given, each once.

    An identifier given again makes a copy of its row, `tf114-2`, with the same lock: an environment
    raced against itself. What several globs match counts once.
    """
    return choose(matrix, names, extra_rows={})


def choose(
    matrix: Matrix, names: Iterable[str], *, extra_rows: Mapping[str, Row]
) -> tuple[Row, ...]:
    """As `select`, where a name may also be one of `extra_rows`, by what the user wrote for it."""
    chosen: dict[str, Row] = {}
    named: dict[str, int] = {}
    for name in names:
        row = extra_rows.get(name) or matrix.rows.get(name)
        if row is None:
            for found in _matching(matrix, name):
                chosen.setdefault(found.identifier, found)
            continue
        named[row.identifier] = named.get(row.identifier, 0) + 1
        copy = _copy(row, named[row.identifier])
        if chosen.setdefault(copy.identifier, copy) != copy:
            raise UsageError(
                f"Two environments would be called {copy.identifier}.",
                why=f"{row.identifier} named again is called {copy.identifier} in reports.",
                fix="Give the one of your own another name.",
            )
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
    raise UsageError(
        f"There is no environment {pattern!r}. {hint}".rstrip(),
        fix="`stackrace list` shows all; any other pair is written like tensorflow==2.9.1.",
    )


def _user_row(
    source: Path,
    name: str,
    table: Any,  # noqa: ANN401 - what TOML holds
    matrix: Matrix,
    complete: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Row:
    where = f"{source}: [environments.{name}]"
    if name in matrix.rows:
        raise UsageError(
            f"{where} has the name of an environment that stackrace comes with.",
            fix=f"Give it another, such as {name}-mine.",
        )
    _check_table(where, name, table)
    for key in (*get_args(Framework), "keras"):
        _check_version(where, key, table.get(key, ""))
    if "python" not in table:
        raise UsageError(f"{where} has no python.", fix='Add a line such as python = "3.11".')
    if re.fullmatch(r"3\.\d{1,2}", str(table["python"])) is None:
        raise UsageError(
            f"{where}: python = {table['python']!r} is no Python.",
            fix="Write it as 3.N, such as 3.11; the newest patch release is taken.",
        )
    _check_framework(where, table)
    try:
        rest = complete(table)
    except UsageError as error:
        raise UsageError(f"{where}: {error.what}", why=error.why, fix=error.fix) from error
    row = _convert(where, {**rest, **table, "identifier": name, "spec": name})
    for key in ("apis", "modes"):
        if not getattr(row, key):
            raise UsageError(f"{where} has no {key}, and could run nothing.")
    return row


def _check_version(where: str, key: str, value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{where}: {key} is not text.", fix=f'Write {key} = "VERSION".')
    try:
        Version(value or "0")  # empty: there is none
    except InvalidVersion as error:
        raise UsageError(f"{where}: {key} = {value!r} is no version.") from error


def _row(source: str, name: str, table: Any) -> Row:  # noqa: ANN401 - what TOML holds
    where = f"{source}: row {name!r}"
    _check_table(where, name, table)
    _check_framework(where, table)
    return _convert(where, {**table, "identifier": name})


def _check_table(where: str, name: str, table: object) -> None:
    """Refuse names that are not safe, and keys that nothing reads."""
    check_name(name, what="Environment")
    if not isinstance(table, dict):
        raise InputError(f"{where} is not a table.", fix=f"Write [{name}] and its keys below it.")
    _check_keys(where, table, Row)
    _check_keys(f"{where}, table cuda", table.get("cuda"), Cuda)
    rules = table.get("impossible")
    for rule in rules if isinstance(rules, list) else ():
        _check_keys(f"{where}, table impossible", rule, Impossible)


def _check_keys(where: str, table: object, kind: type[msgspec.Struct]) -> None:
    valid = set(kind.__struct_fields__) - NOT_KEYS
    for key in table if isinstance(table, dict) else ():
        if key not in valid:
            raise InputError(
                f"{where}: there is no key {key!r}. {nearest(key, valid)}".rstrip(),
                fix=f"Keys: {', '.join(sorted(valid))}.",
            )


def _check_framework(where: str, table: Mapping[str, object]) -> None:
    """One of TensorFlow, JAX and PyTorch computes."""
    known = get_args(Framework)
    given = [name for name in known if table.get(name)]
    if len(given) != 1:
        raise InputError(
            f"{where} names {' and '.join(given) if given else 'nothing'} to compute with.",
            fix=f"Give the version of exactly one of {', '.join(known)}.",
        )


def _convert(where: str, table: Mapping[str, Any]) -> Row:
    try:
        row = msgspec.convert(table, Row)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}.", fix="Compare it with the rows that load.") from error
    for variant in get_args(Variant):
        if (variant in row.packages) != (variant in row.size_mb):
            raise InputError(
                f"{where} has packages or size_mb for {variant}, but not both.",
                fix="Give both, or neither.",
            )
    if not row.packages.get("cpu"):
        raise InputError(f"{where} has no packages for the CPU.", fix="Add packages.cpu.")
    if ("gpu" in row.packages) != (row.cuda is not None):
        raise InputError(
            f"{where} has GPU packages or a table cuda, but not both.",
            fix="Give both, or neither.",
        )
    return row
