"""Reads a user's own model without running it: what it is called, defines and consists of."""

from __future__ import annotations

import ast
import difflib
import hashlib
import importlib.util
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.errors import UsageError
from orchestrator.model.phrases import count
from orchestrator.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ENTRY: Final = "workload.py"  # of a folder
NOT_COPIED: Final = frozenset({"__pycache__", ".git"})
MOST_MB: Final = 50
MOST_FILES: Final = 2000
LARGEST: Final = 999_999_999  # of a shape's numbers, as of those of the knobs
REQUIRED: Final = {
    "build_model": """\
    def build_model(keras, batch_shape):
        model = keras.models.Sequential([keras.layers.Dense(1, batch_input_shape=batch_shape)])
        model.compile("adam", "mse")
        return model""",
    "make_data": """\
    def make_data(batch_shape, rng):
        return rng.normal(size=batch_shape), rng.normal(size=batch_shape[:-1] + (1,))""",
}
_MB = 1_000_000
_ARGUMENTS = 2  # of each function that is called


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """What a file's own text says."""

    names: frozenset[str]
    functions: Mapping[str, ast.FunctionDef]
    modules: frozenset[str]
    shapes: tuple[tuple[int, ...], ...]
    complete: bool  # no `from x import *` may bring more names


def read(paths: Sequence[Path], *, without: Path | None = None) -> tuple[Workload, ...]:
    """The workloads at these paths, in order, each with a name of its own.

    `without`: a folder that is never part of one, such as that of the results.
    Raises UsageError for what cannot be raced: with the line of a syntax error, and with what to
    write where a function is missing.
    """
    places = [_place(path) for path in paths]
    for place, number in Counter(places).items():
        if number > 1:
            raise UsageError(f"{place} is given twice.", fix="Leave one out, or race a copy of it.")
    skipped = None if without is None else without.absolute().resolve()
    return tuple(
        _workload(shown, place, name, skipped)
        for shown, place, name in zip(paths, places, _names(places), strict=True)
    )


def digest(files: Mapping[str, bytes]) -> str:
    """Sha256 over names and bytes, in order."""
    total = hashlib.sha256()
    for name, raw in sorted(files.items()):
        total.update(f"{name}\0{len(raw)}\0".encode(errors="surrogateescape"))
        total.update(raw)
    return total.hexdigest()


def files_below(folder: Path, *, without: Path | None = None) -> dict[str, bytes]:
    """Every file below a folder by its path there; UsageError for more than a run may carry."""
    found: dict[str, bytes] = {}
    size = 0
    try:
        for path in _below(folder, without):
            size += path.stat().st_size
            if size > MOST_MB * _MB or len(found) == MOST_FILES:
                raise _too_large(folder)
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.") from error
    return found


def _too_large(path: Path) -> UsageError:
    return UsageError(
        f"{path} is too large for a workload: it may hold {MOST_MB} MB in "
        f"{count(MOST_FILES, 'file')}.",
        why="Every run keeps a copy of it, so that it can be repeated.",
        fix="Keep data elsewhere, and let make_data read them from there.",
    )


def _place(path: Path) -> Path:
    try:
        place = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"There is no workload {path}. {_beside(path)}".rstrip(),
            fix="`stackrace init` writes a commented one to begin with.",
        ) from error
    if place.is_dir():
        if not (place / ENTRY).is_file():
            raise UsageError(
                f"{path} has no {ENTRY}.",
                fix=f"In a folder, build_model and make_data stand in {ENTRY}; what it imports "
                "stands beside it.",
            )
    elif place.suffix != ".py" or not place.is_file():
        raise UsageError(
            f"{path} is no Python file.", fix=f"Name a .py file, or a folder with {ENTRY} in it."
        )
    return place


def _beside(path: Path) -> str:
    """What may have been meant: the nearest of the workloads in that folder; often empty."""
    try:
        there = sorted(path.parent.iterdir())
    except OSError:
        return ""
    names = [item.name for item in there if item.suffix == ".py" or (item / ENTRY).is_file()]
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f"Did you mean {path.with_name(close[0])}?" if close else ""


def _names(places: Sequence[Path]) -> list[str]:
    """Valid names from the files' own, with as many folders in front as tell them apart."""
    depths = dict.fromkeys(places, 0)
    while True:
        names = {place: _name(place, depths[place]) for place in places}
        number = Counter(names.values())
        alike = [place for place in places if number[names[place]] > 1]
        if not alike:
            return [names[place] for place in places]
        if all(depths[place] >= len(place.parts) for place in alike):
            raise UsageError(
                f"{alike[0]} and {alike[1]} would both be called {names[alike[0]]}.",
                fix="Rename one: letters, digits and '_' make the name.",
            )
        for place in alike:
            depths[place] += 1


def _name(place: Path, depth: int) -> str:
    own = place.name if place.suffix != ".py" else place.stem
    folders = place.parent.parts[-depth:] if depth else ()
    text = "_".join([*folders, own]).lower()
    return re.sub(r"[^a-z0-9]+", "_", text).strip("_") or "workload"


def _workload(shown: Path, place: Path, name: str, without: Path | None) -> Workload:
    if place.is_dir():
        files, entry = files_below(place, without=without), ENTRY
    else:
        # A name that JSON or a shell would not take is kept out of both.
        entry = place.name if re.fullmatch(r"[\w. -]+", place.name, re.ASCII) else f"{name}.py"
        try:
            if place.stat().st_size > MOST_MB * _MB:
                raise _too_large(shown)
            files = {entry: place.read_bytes()}
        except OSError as error:
            raise UsageError(f"{shown} cannot be read: {error.strerror}.") from error
    path = shown / ENTRY if place.is_dir() else shown
    facts = _facts(files[entry], path)
    _check(facts, path)
    if not place.is_dir():
        _check_alone(facts, place, shown)
    return Workload(
        name=name,
        entry=entry,
        digest=digest(files),
        files=files,
        shapes=facts.shapes,
        has_step="step" in facts.names,
    )


def _below(folder: Path, without: Path | None) -> Iterator[Path]:
    for where, folders, names in os.walk(folder, onerror=_raise):
        for name in sorted(folders):
            path = Path(where, name)
            if name in NOT_COPIED or path == without:
                folders.remove(name)
            elif path.is_symlink():
                raise UsageError(
                    f"{path} is a link to a folder, and cannot be copied with the workload.",
                    fix="Put the folder itself there, or let make_data read it where it is.",
                )
        folders.sort()
        yield from (path for name in sorted(names) if (path := Path(where, name)).is_file())


def _raise(error: OSError) -> None:
    raise error


def _facts(source: bytes, path: Path) -> _Facts:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of "\d": the workers' Pythons say it
            tree = ast.parse(importlib.util.decode_source(source), filename=str(path))
    except SyntaxError as error:
        raise _no_python(path, error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is not Python: {str(error) or 'nested too deeply'}.") from error
    names: set[str] = set()
    functions: dict[str, ast.FunctionDef] = {}
    modules: set[str] = set()
    shapes: tuple[tuple[int, ...], ...] = ()
    complete = True
    for node in _statements(tree):
        match node:
            case ast.FunctionDef():
                names.add(node.name)
                functions[node.name] = node
            case ast.ClassDef() | ast.AsyncFunctionDef():
                names.add(node.name)
            case ast.Import():
                names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
                modules.update(alias.name.split(".")[0] for alias in node.names)
            case ast.ImportFrom():
                complete = complete and all(alias.name != "*" for alias in node.names)
                names.update(alias.asname or alias.name for alias in node.names)
                modules.update([node.module.split(".")[0]] if node.module else ())
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                named = {target.id for target in targets if isinstance(target, ast.Name)}
                names |= named
                if "BATCH_SHAPES" in named:
                    shapes = _shapes(node.value, path)
            case _:
                pass
    return _Facts(
        names=frozenset(names),
        functions=functions,
        modules=frozenset(modules),
        shapes=shapes,
        complete=complete,
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when the file is imported: not what stands inside functions and classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            yield child
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _statements(child)


def _no_python(path: Path, error: SyntaxError) -> UsageError:
    line = (error.text or "").rstrip("\n")
    caret = ""
    if line and error.offset:
        # Tabs stay tabs, so that the caret stands below what it means.
        before = line[: error.offset - 1]
        caret = "\n    " + "".join("\t" if sign == "\t" else " " for sign in before) + "^"
    where = f", line {error.lineno}" if error.lineno else ""
    return UsageError(f"{path}{where}: {error.msg}.", why=f"    {line}{caret}" if line else "")


def _shapes(node: ast.expr | None, path: Path) -> tuple[tuple[int, ...], ...]:
    """BATCH_SHAPES: a list of shapes, or one."""
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, RecursionError):
        value = None
    if _is_shape(value):
        value = [value]
    if not (isinstance(value, list | tuple) and value and all(map(_is_shape, value))):
        raise UsageError(
            f"{path}: BATCH_SHAPES is no list of shapes.",
            why="It is read without running the file, so it holds nothing but numbers from 1 to "
            f"{LARGEST:,}.",
            fix="Write it as BATCH_SHAPES = [(32, 140, 30), (64, 140, 30)].",
        )
    return tuple(dict.fromkeys(tuple(shape) for shape in value))


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(type(size) is int and 0 < size <= LARGEST for size in value)
    )


def _check(facts: _Facts, path: Path) -> None:
    for name, example in REQUIRED.items():
        if facts.complete and name not in facts.names:
            raise UsageError(
                f"{path} does not define {name}.",
                fix=f"Write it like this, or see a whole one with `stackrace init`:\n{example}",
            )
    for name in (*REQUIRED, "step"):
        function = facts.functions.get(name)
        if function is not None and not _takes(function, _ARGUMENTS):
            meant = {"build_model": "keras, batch_shape", "make_data": "batch_shape, rng"}
            raise UsageError(
                f"{path}, line {function.lineno}: {name} does not take {_ARGUMENTS} arguments.",
                fix=f"It is called as {name}({meant.get(name, 'model, batch')}).",
            )


def _takes(function: ast.FunctionDef, number: int) -> bool:
    given = function.args
    most = len(given.posonlyargs) + len(given.args)
    least = most - len(given.defaults)
    required = sum(default is None for default in given.kw_defaults)
    return not required and least <= number and (number <= most or given.vararg is not None)


def _check_alone(facts: _Facts, place: Path, shown: Path) -> None:
    """A single file is copied alone: what it imports from beside it would be missing."""
    for module in sorted(facts.modules):
        beside = [place.parent / f"{module}.py", place.parent / module / "__init__.py"]
        if any(path.is_file() and path != place for path in beside):
            raise UsageError(
                f"{shown} imports {module}, which stands beside it and would be missing.",
                why="A file is raced alone; a folder is raced as it is.",
                fix=f"Put both into a folder of their own, this one as {ENTRY}, and name that: "
                "--workload FOLDER",
            )
