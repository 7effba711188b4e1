"""The run folder: the one place that knows its file names. Records are written once.

A record is complete or absent: it is written under a temporary name, synced, and linked to its own
name, which fails when that exists. So the first writer wins, and a crash leaves nothing half done.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import io
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from orchestrator.errors import InputError, StorageError, UsageError
from orchestrator.model import codec, sound
from orchestrator.model.plan import PLAN_SCHEMA, ROUNDS_SCHEMA, AddedRounds, Plan
from orchestrator.model.record import RECORD_SCHEMA, Record

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from orchestrator.model.plan import Job
    from orchestrator.model.workload import Workload


DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
SUMMARY = "summary.json"
ADDED = "plan.d"  # rounds added while it is measured
REPORTS = {  # format -> file, in a run folder or wherever a report goes
    "md": "report.md",
    "csv": "timings.csv",
    "json": "timings.json",
    "parquet": "timings.parquet",
}
NAME_RESULTS = "Name another folder with --results DIR or STACKRACE_RESULTS."
NAME_CACHE = "Name another folder with STACKRACE_CACHE."


def full_disk(path: Path | str) -> StorageError:
    """The message for a disk with no room for `path`."""
    return StorageError(
        f"The disk is full: {path} could not be written.",
        why="An environment takes 0.5 to 2 GB, a run a few MB.",
        fix="Free some space and go on: nothing that was measured is lost.",
    )


@contextmanager
def storage_errors(path: Path, *, fix: str = NAME_RESULTS) -> Iterator[None]:
    """Turn what a full disk or a forbidden folder raises into a message that names it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a time-out, or a library's own: no file is at fault
            raise
        if error.errno in DISK_FULL:
            raise full_disk(path) from error
        raise UsageError(f"{path} cannot be written: {error.strerror}.", fix=fix) from error


@contextmanager
def _temporary(path: Path, *, fix: str = NAME_RESULTS) -> Iterator[Path]:
    """A name beside `path` to write under first; nothing has it afterwards."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    with storage_errors(path, fix=fix):
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


def write_once(path: Path, raw: bytes, *, fix: str = NAME_RESULTS, named: bool = True) -> bool:
    """Write a file that is never rewritten; false when it already exists.

    What it holds is on the disk before it has its name. `named`: that name is there as well when
    this returns, so that a power cut does not take the file away.
    """
    with _temporary(path, fix=fix) as temporary:
        with temporary.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        written = _link(temporary, path)
        if written and named:
            _sync_folder(path.parent)
    return written


def write_report(path: Path, raw: bytes, *, fix: str = NAME_RESULTS) -> None:
    """Write a file that is made again from the records at any time."""
    with _temporary(path, fix=fix) as temporary:
        temporary.write_bytes(raw)
        temporary.replace(path)


def _link(temporary: Path, path: Path) -> bool:
    """Give the file its own name unless that exists: by a hard link, else by a rename."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}:
            raise
        return rename_new(temporary, path)
    return True


def rename_new(temporary: Path, path: Path) -> bool:
    """Rename without replacing, for file systems without hard links; false when `path` exists."""
    result = _libc.renameat2(
        _AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(path), _RENAME_NOREPLACE
    )
    if result == 0:
        return True
    if ctypes.get_errno() == errno.EEXIST:
        return False
    # The file system knows no such rename either. The run is claimed: nobody else writes here.
    if path.exists():
        return False
    temporary.rename(path)
    return True


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every file system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class State(NamedTuple):
    """Two of one digest have the same plan and records, `changed_s`: when, since 1970.

    The digest is over the bytes of the plan, and over names, sizes and times of all files: records
    are never rewritten, and nobody rewrites a file without changing the time of its change.
    """

    digest: str
    changed_s: float


@dataclass(frozen=True)
class RunFolder:
    """`results/<run-id>`, with plan, records, logs and reports."""

    path: Path

    @property
    def plan_path(self) -> Path:
        """Where the plan stands."""
        return self.path / "plan.json"

    def record_path(self, key: str, attempt: int) -> Path:
        """Where the record of one attempt of a job stands."""
        return self.path / "records" / f"{_plain(key)}.{attempt}.json"

    def log_path(self, key: str, attempt: int) -> Path:
        """Where the output of one attempt of a job goes."""
        return self.path / "logs" / f"{_plain(key)}.{attempt}.log"

    def trace_path(self, key: str, attempt: int) -> Path:
        """Where the framework's own trace of a profile stands, when it left one."""
        return self.path / "profiles" / f"{_plain(key)}.{attempt}"

    def workload_path(self, name: str) -> Path:
        """Where the copy of a user's own model stands."""
        return self.path / "workloads" / _plain(name)

    def work_path(self, key: str, attempt: int) -> Path:
        """Where one attempt of a job may write; gone when it has ended."""
        return self.path / "work" / f"{_plain(key)}.{attempt}"

    @classmethod
    def create(cls, results: Path, plan: Plan, workloads: Iterable[Workload] = ()) -> RunFolder:
        """Make the folder of a new run, copy the user's own models, and write its plan."""
        folder = cls(results / plan.run_id)
        with storage_errors(folder.path):
            (folder.path / "records").mkdir(parents=True)
            (folder.path / "logs").mkdir()
            for workload in workloads:
                for name, raw in workload.files.items():
                    path = folder.workload_path(workload.name) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(raw)
        write_once(folder.plan_path, codec.encode(plan))
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of an existing run; InputError when it is none."""
        folder = cls(path)
        try:
            found = stat.S_ISREG(folder.plan_path.stat().st_mode)
        except (OSError, ValueError):  # too long a name, no right to look, a loop of links
            found = False
        if not found:
            raise InputError(
                f"{path} is not a run folder: it holds no plan.json.",
                fix="Name a folder that `stackrace run` has printed, such as results/<run-id>.",
            )
        return folder

    def plan(self) -> Plan:
        """The plan with all rounds that were added to it, validated.

        InputError names the field that contradicts another.
        """
        raw = _read(self.plan_path)
        plan = codec.decode(raw, Plan, source=self.plan_path, schema=PLAN_SCHEMA)
        plan = plan.grown(self._added(plan.run_id))
        problem = sound.plan_problem(plan)
        if problem is not None:
            raise InputError(
                f"{self.plan_path} is not a plan that can be run or read: {problem}.",
                why="The file was edited by hand; its parts have to agree.",
                fix="Take it from a copy of the run, or start a new run.",
            )
        return plan

    def add_rounds(self, added: AddedRounds) -> None:
        """Append rounds to the plan; never rewritten, and read with it from then on.

        UsageError where the plan on disk has one of their blocks already.
        """
        known = {(block.round, block.case) for block in self.plan().blocks}
        for block in added.blocks:
            if (block.round, block.case) in known:
                raise self._added_meanwhile(f"Round {block.round} of {block.case} is")
        path = self.path / ADDED / f"{added.number:04}.json"
        with storage_errors(path):
            path.parent.mkdir(exist_ok=True)
        if not write_once(path, codec.encode(added)):
            raise self._added_meanwhile(f"{path.relative_to(self.path)} is")

    def _added_meanwhile(self, what: str) -> UsageError:
        return UsageError(
            f"{what} in {self.path} already, and would be added again.",
            why="Another command added rounds to this run after its plan was read here.",
            fix=f"Go on with the plan as it is now: stackrace run --resume {self.path}",
        )

    def added(self) -> int:
        """How many times rounds were added to the plan."""
        return len(_listed(self.path / ADDED))

    def _added(self, run_id: str) -> list[AddedRounds]:
        """What was added, in order; InputError for a gap in it, or for what is another run's."""
        found = []
        names = _listed(self.path / ADDED)
        for number, name in enumerate(names, start=1):
            path = self.path / ADDED / name
            added = codec.decode(_read(path), AddedRounds, source=path, schema=ROUNDS_SCHEMA)
            if (added.run_id, added.number, name) != (run_id, number, f"{number:04}.json"):
                raise InputError(
                    f"{path} is not part {number} of what was added to run {run_id}.",
                    why="A file of plan.d/ was removed, renamed, or copied from another run.",
                    fix="Take the folder from a copy of the run.",
                )
            found.append(added)
        return found

    def records(self) -> list[Record]:
        """All records, of profiles and superseded ones too, in the order of their file names.

        InputError names the file that cannot be read, or that is none of this run's.
        """
        return list(self.each_record(self.plan()))

    def each_record(self, plan: Plan) -> Iterator[Record]:
        """As `records`, one by one, for a plan that was read already."""
        jobs = {job.key: job for job in (*plan.jobs, *plan.profiles)}
        folder = self.path / "records"
        for name in _listed(folder):
            yield self._record(f"{folder}/{name}", plan.run_id, jobs)

    def state(self) -> State:
        """What stands in it now; InputError or OSError for what cannot be looked at."""
        digest, changed_ns = hashlib.sha256(), 0
        added, records = self.path / ADDED, self.path / "records"
        plans = [self.plan_path, *(added / name for name in _listed(added))]
        for path in plans:
            raw = _read(path)
            digest.update(f"{path.name} {len(raw)}\n".encode() + raw)
        for name in (*map(str, plans), *(f"{records}/{name}" for name in _listed(records))):
            found = os.stat(name)  # noqa: PTH116  a Path of each takes longer than the look
            facts = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            digest.update(f"{name.rpartition('/')[2]} {facts}\n".encode(errors="surrogateescape"))
            changed_ns = max(changed_ns, found.st_ctime_ns)
        return State(digest.hexdigest(), changed_ns / 1e9)

    def _record(self, path: str, run_id: str, jobs: Mapping[str, Job]) -> Record:
        record = codec.decode(_read(path), Record, source=path, schema=RECORD_SCHEMA)
        problem = sound.record_problem(run_id, jobs, record)
        if problem is None and not path.endswith(f"/{record.key}.{record.attempt}.json"):
            # Under another name it would count twice, or hide another record.
            problem = f"it is attempt {record.attempt} of the job {record.key!r}"
        if problem is not None:
            raise InputError(
                f"{path} does not belong to run {run_id}: {problem}.",
                why="Files of another run were copied into its folder, or renamed or edited.",
                fix="Move it out of records/; `--resume` measures again what is then missing.",
            )
        return record

    def write(self, record: Record) -> bool:
        """Store a record for good; false when another writer was first.

        One that a power cut takes away is measured again: not worth a wait before every job.
        """
        path = self.record_path(record.key, record.attempt)
        return write_once(path, codec.encode(record), named=False)

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the run while measuring, so that two commands never measure it at once.

        What a killed command left half done is cleared away.
        """
        import filelock  # noqa: PLC0415 - it takes 20 ms, and most commands claim nothing

        lock = filelock.FileLock(self.path / ".lock", timeout=0)
        try:
            with storage_errors(self.path):
                lock.acquire()
                for name in ("records", "logs"):  # copies may have dropped empty folders
                    (self.path / name).mkdir(exist_ok=True)
                shutil.rmtree(self.path / "work", ignore_errors=True)
                for stale in (self.path / "records").glob(".*.tmp"):
                    stale.unlink(missing_ok=True)
        except filelock.Timeout as error:
            raise UsageError(
                f"Another command is measuring {self.path}.",
                fix="Wait for it, or look at it with `stackrace status`.",
            ) from error
        try:
            yield
        finally:
            with suppress(OSError):  # somebody put a file there, or it was never made
                (self.path / "work").rmdir()
            lock.release()


def _listed(folder: Path) -> list[str]:
    """The names of the JSON files in a folder, in order; none where it is not there."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except FileNotFoundError:  # copies may have dropped empty folders
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error
    return sorted(name for name in names if name.endswith(".json") and not name.startswith("."))


def _read(path: Path | str) -> bytes:
    """A file's bytes; InputError for what is none, without waiting for who might write to it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(
                    f"{path} is not a file.",
                    why="A folder, a pipe or a device has the name of a file of the run.",
                    fix="Move it away.",
                )
            return io.FileIO(descriptor, closefd=False).readall()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path | str, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be read: {error.strerror}.",
        fix="Mend its permissions, or move it away.",
    )


def _plain(key: str) -> str:
    """The key, unless it would lead out of the run folder: plans come from other people too."""
    if "/" in key or key.startswith("."):
        raise InputError(f"{key!r} is not the key of a job: this plan was not made by stackrace.")
    return key
