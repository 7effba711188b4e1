"""JSON in and out: decoding is validating, and an error names the file and the field."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING, TypeVar, get_args, get_type_hints

import msgspec

from orchestrator.errors import InputError, UsageError, nearest

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

_DECODERS: dict[type, msgspec.json.Decoder[object]] = {}


def encode(value: object) -> bytes:
    """Indented JSON that ends with a newline: people read these files too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def decode(raw: bytes, kind: type[T], *, source: Path | str, schema: str) -> T:
    """The struct in `raw`, or InputError saying what is wrong with `source`.

    `schema` is the label that `kind` is written with, such as `stackrace.record/1`.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    try:
        return decoder.decode(raw)  # type: ignore[return-value]
    except msgspec.ValidationError as error:
        raise _unreadable(raw, str(error), source=source, schema=schema) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _no_json(error, source) from error


def _no_json(error: Exception, source: Path | str) -> InputError:
    problem = "it is nested too deeply" if isinstance(error, RecursionError) else error
    return InputError(
        f"{source} is not JSON: {problem}.",
        why="The file was cut short, edited by hand, or is something else.",
        fix="A record can be moved out of its folder: `--resume` measures it again. A plan can "
        "not be made again; take it from a copy of the run.",
    )


def _unreadable(raw: bytes, problem: str, *, source: Path | str, schema: str) -> InputError:
    try:
        whole = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _no_json(error, source)  # what was wrong first was its kind, not its end
    found = whole.get("schema") if isinstance(whole, dict) else None
    if found != schema:
        label = "no schema at all" if found is None else f"schema {found!r}"
        if not isinstance(whole, dict):
            label = "no JSON object in it"
        return InputError(
            f"{source} has {label}; this stackrace reads {schema!r}.",
            why="It was written by a newer stackrace, or by another program.",
            fix="Update stackrace, or leave this file out.",
        )
    return InputError(
        f"{source} is not a valid {schema}: {problem}.",
        why="The file was edited by hand, or written by a program that does not keep the schema.",
        fix="The schema is published under docs/schema/.",
    )


def decode_toml(text: str, kind: type[T], *, source: Path | str) -> T:
    """The struct in a TOML file, or UsageError: an unknown key is named with the nearest valid."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML: {error}.") from error
    except (RecursionError, ValueError) as error:
        raise InputError(
            f"{source} cannot be read: {str(error) or 'it is nested too deeply'}.",
            why="It holds thousands of brackets, or numbers of thousands of digits.",
        ) from error
    _check_keys(table, kind, where=(), source=source)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{source}: {error}.") from error


@cache
def _keys(kind: type[msgspec.Struct]) -> dict[str, object]:
    """What a table of this kind may have, with the type of each."""
    hints = get_type_hints(kind)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}


def _check_keys(value: object, kind: object, *, where: tuple[str, ...], source: Path | str) -> None:
    """Walk tables and structs side by side; msgspec names the key but not what was meant."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        valid = _keys(kind)
        for key, inner in value.items():
            if key not in valid:
                table = f"[{'.'.join(where)}] " if where else ""
                raise UsageError(f"{source}: {table}has no key {key!r}. {nearest(key, valid)}")
            _check_keys(inner, valid[key], where=(*where, key), source=source)
        return
    for argument in get_args(kind):
        if isinstance(value, dict):
            for key, inner in value.items():
                _check_keys(inner, argument, where=(*where, key), source=source)
        elif isinstance(value, list):
            for inner in value:
                _check_keys(inner, argument, where=where, source=source)
