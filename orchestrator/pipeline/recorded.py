"""Recorded runs, read; what was read before, and is unchanged, is kept in the run's own folder.

Nothing that could be wrong is kept: its name is a digest of the run's files, with their times, and
of the code that made it. Verdicts are never kept.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import time
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec
import pandas as pd

import orchestrator
from orchestrator.errors import InputError
from orchestrator.merge import check_together, join, load, save, take_apart
from orchestrator.model import attempts
from orchestrator.model.record import Record
from orchestrator.store import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from orchestrator.merge import Run
    from orchestrator.model.plan import Plan

ENOUGH: Final = 500  # records: fewer are read as fast as what was kept of them
_TABLE: Final = "table.parquet"
_RECORDS: Final = "records.msgpack"
# A file that was changed twice within one tick of its clock looks as if it had been once.
_SETTLED_S: Final = 2.0
_CODE: Final = ("merge", "model", "series")  # what a table is made by
_LIBRARIES: Final = ("msgspec", "numpy", "pandas", "pyarrow", "scipy")
_CHECKSUM: Final = 4  # bytes
_AT_ONCE: Final = 1_000  # records

Runs = list[tuple["Plan", list[Record]]]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Runs in one table. `plans`: one a folder.

    Records have of their results the outcome and the profile; all else of these is in the table.
    """

    plans: tuple[Plan, ...]
    frame: pd.DataFrame
    open_runs: Callable[[], Runs]

    def runs(self) -> Runs:
        """Every run once, with all records that any copy of it has."""
        return self.open_runs()


def read(paths: Sequence[Path], *, enough: int = ENOUGH) -> Recorded:
    """The runs in these folders; `enough`: records from which on a table is kept.

    Raises InputError and UsageError as the folders and their merging do.
    """
    folders = [RunFolder.open(path) for path in paths]
    # Before anything is read: what changes while it is read then has another name.
    kept = [_place(folder) for folder in folders]
    plans = tuple(
        folder.plan(checked=_exists(place)) for folder, place in zip(folders, kept, strict=True)
    )
    places = [str(path) for path in paths]
    if len({plan.run_id for plan in plans}) < len(plans):  # copies: all of them is compared
        with without_collection():
            runs = [_measured(folder, plan) for folder, plan in zip(folders, plans, strict=True)]
        united = attempts.united((run.plan, run.records) for run in runs)
        frame = join(runs, places=places)
        told = [(plan, [_for_reports(record) for record in records]) for plan, records in united]
        return Recorded(plans=plans, frame=frame, open_runs=lambda: told)
    parts = [
        _one(folder, plan, place if len(plan.jobs) >= enough else None)
        for folder, plan, place in zip(folders, plans, kept, strict=True)
    ]
    if len(parts) == 1:
        return parts[0]
    together = [run for part in parts for run in part.runs()]
    check_together(together, places)
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    return Recorded(plans=plans, frame=frame, open_runs=lambda: together)


def _one(folder: RunFolder, plan: Plan, place: Path | None) -> Recorded:
    found = _kept(place, plan) if place else None
    if found is not None:
        return found
    with without_collection():
        run = _measured(folder, plan)
        frame = join([run], places=[str(folder.path)])
        # The series are in the table now, and nothing else of a result is asked for but there.
        records = [_for_reports(record) for record in run.records]
        del run
        if place is not None:
            _keep(place, frame, records)
    return Recorded(plans=(plan,), frame=frame, open_runs=lambda: [(plan, records)])


def _measured(folder: RunFolder, plan: Plan) -> Run:
    return take_apart(plan, folder.each_record(plan))


@contextmanager
def without_collection() -> Iterator[None]:
    """Without looking for circles among a million objects again and again: reports hold none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _place(folder: RunFolder) -> Path | None:
    """Where the table of what is in the folder now is kept; None while that may still change."""
    try:
        state = folder.state()
        if abs(time.time() - state.changed_s) < _SETTLED_S:
            return None
        return folder.kept_path(hashlib.sha256(f"{state.digest} {_code()}".encode()).hexdigest())
    except (OSError, InputError):  # whoever reads it says what is wrong
        return None


def _exists(place: Path | None) -> bool:
    try:
        return place is not None and place.is_dir()
    except OSError:  # no right to look
        return False


@cache
def _code() -> str:
    """A digest of what makes a table: its sources, and the libraries below them."""
    digest = hashlib.sha256()
    root = Path(orchestrator.__file__).parent
    for path in sorted(path for name in _CODE for path in (root / name).rglob("*.py")):
        raw = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(raw)}\n".encode() + raw)
    digest.update(" ".join(version(name) for name in _LIBRARIES).encode())
    return digest.hexdigest()


def _kept(place: Path, plan: Plan) -> Recorded | None:
    """What was kept; None where there is nothing, or nothing that can be used."""
    try:
        raw = (place / _RECORDS).read_bytes()
    except OSError:
        return None
    frame = load(place / _TABLE)
    checksum, rest = raw[:_CHECKSUM], raw[_CHECKSUM:]
    if frame is None or checksum != _checksum(rest):
        return None

    @cache
    def runs() -> Runs:
        with without_collection():
            return [(plan, take_apart(plan, _decoded(rest)).records)]

    return Recorded(plans=(plan,), frame=frame, open_runs=runs)


def _keep(place: Path, frame: pd.DataFrame, records: Sequence[Record]) -> None:
    """Put it in its place as a whole, and what was kept before away; a full disk keeps nothing."""
    temporary = place.with_name(f".{uuid4().hex}.tmp")
    shutil.rmtree(place, ignore_errors=True)  # it is damaged, or it would have been read
    with suppress(OSError):
        try:
            temporary.mkdir(parents=True)
            save(frame, temporary / _TABLE)
            raw = _encoded(records)
            (temporary / _RECORDS).write_bytes(_checksum(raw) + raw)
            os.rename(temporary, place)  # noqa: PTH104  fails where another process was first
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        for other in place.parent.iterdir():
            if other != place:
                shutil.rmtree(other, ignore_errors=True)


def _encoded(records: Sequence[Record]) -> bytes:
    """Some at a time, so that not all of them ever stand in memory with all that they repeat."""
    return msgspec.msgpack.encode(
        [
            msgspec.msgpack.encode(records[first : first + _AT_ONCE])
            for first in range(0, len(records), _AT_ONCE)
        ]
    )


def _decoded(raw: bytes) -> Iterator[Record]:
    for some in msgspec.msgpack.decode(raw, type=list[bytes]):
        yield from msgspec.msgpack.decode(some, type=list[Record])


def _for_reports(record: Record) -> Record:
    """What a table does not have: of a result only the profile."""
    result = record.result
    if result is not None:
        result = type(result)(schema=result.schema, outcome=result.outcome, profile=result.profile)
    return msgspec.structs.replace(record, result=result)


def _checksum(raw: bytes) -> bytes:
    return zlib.crc32(raw).to_bytes(_CHECKSUM, "big")
