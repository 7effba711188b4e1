"""The run folder: the one place that knows its file names. Records are written once."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.errors import InputError, UsageError
from orchestrator.model import codec, sound
from orchestrator.model.plan import PLAN_SCHEMA, ROUNDS_SCHEMA, AddedRounds, Plan
from orchestrator.model.record import RECORD_SCHEMA, Record
from orchestrator.store.files import listed, read, storage_errors, write_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from orchestrator.model.plan import Job
    from orchestrator.model.workload import Workload


PLAN = "plan.json"
SUMMARY = "summary.json"
ADDED = "plan.d"  # rounds added while it is measured
KEPT = ".cache"  # may be deleted at any time
REPORTS = {  # format -> file, in a run folder or wherever a report goes
    "md": "report.md",
    "csv": "timings.csv",
    "json": "timings.json",
    "parquet": "timings.parquet",
}


class State(NamedTuple):
    """Two of one digest have the same plan and records, `changed_s`: when, since 1970.

    The digest is over the bytes of the plan, and over names, sizes and times of all files: records
    are never rewritten, and nobody rewrites a file without changing the time of its change.
    """

    digest: str
    changed_s: float


_ABANDONED_S = 3600.0  # whoever writes a report has ended by then


@dataclass(frozen=True)
class RunFolder:
    """`results/<run-id>`, with plan, records, logs and reports."""

    path: Path

    @property
    def plan_path(self) -> Path:
        """Where the plan stands."""
        return self.path / PLAN

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

    def kept_path(self, digest: str) -> Path:
        """Where the table stands that was made of files and code of this digest."""
        return self.path / KEPT / digest

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

    def plan(self, *, checked: bool = False) -> Plan:
        """The plan with all rounds that were added to it, validated.

        InputError names the field that contradicts another. `checked`: the same bytes were
        validated before.
        """
        raw = read(self.plan_path)
        plan = codec.decode(raw, Plan, source=self.plan_path, schema=PLAN_SCHEMA)
        plan = plan.grown(self._added(plan.run_id))
        problem = None if checked else sound.plan_problem(plan)
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
        return len(listed(self.path / ADDED))

    def _added(self, run_id: str) -> list[AddedRounds]:
        """What was added, in order; InputError for a gap in it, or for what is another run's."""
        found = []
        names = listed(self.path / ADDED)
        for number, name in enumerate(names, start=1):
            path = self.path / ADDED / name
            added = codec.decode(read(path), AddedRounds, source=path, schema=ROUNDS_SCHEMA)
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
        for name in listed(folder):
            yield self._record(f"{folder}/{name}", plan.run_id, jobs)

    def state(self) -> State:
        """What stands in it now; InputError or OSError for what cannot be looked at."""
        digest = hashlib.sha256()
        added, records = self.path / ADDED, self.path / "records"
        plans = [self.plan_path, *(added / name for name in listed(added))]
        for path in plans:
            raw = read(path)
            digest.update(f"{path.name} {len(raw)}\n".encode() + raw)
        facts = [_facts(str(path)) for path in plans]
        with _opened(records) as folder:
            facts += [_facts(name, folder) for name in listed(records)]
        digest.update(repr(facts).encode())
        return State(digest.hexdigest(), max(changed_ns for *_, changed_ns in facts) / 1e9)

    def _record(self, path: str, run_id: str, jobs: Mapping[str, Job]) -> Record:
        record = codec.decode(read(path), Record, source=path, schema=RECORD_SCHEMA)
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
                self._clear()
        except filelock.Timeout as error:
            raise UsageError(
                f"Another command is measuring {self.path}.",
                fix="Wait for it, or look at it with `stackrace status`.",
            ) from error
        except BaseException:
            lock.release()
            raise
        try:
            yield
        finally:
            with suppress(OSError):  # somebody put a file there, or it was never made
                (self.path / "work").rmdir()
            lock.release()

    def _clear(self) -> None:
        """Remove what killed commands left half written; reports are written by others too."""
        whose = {
            **dict.fromkeys((self.path / "records", self.path / ADDED), 0.0),
            **dict.fromkeys((self.path, self.path / KEPT), _ABANDONED_S),
        }
        for folder, least_s in whose.items():
            for left in folder.glob(".*.tmp"):
                with suppress(OSError):  # it may be gone by now, or somebody else's: no harm
                    if least_s and time.time() - left.lstat().st_mtime < least_s:
                        continue
                    if left.is_dir() and not left.is_symlink():
                        shutil.rmtree(left)
                    else:
                        left.unlink()


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """A descriptor, from which its files are found sooner than by their whole paths."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # copies may have dropped empty folders
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _facts(name: str, folder: int | None = None) -> tuple[str, int, int, int, int]:
    found = os.stat(name, dir_fd=folder)
    return (
        name.rpartition("/")[2],
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _plain(key: str) -> str:
    """The key, unless it would lead out of the run folder: plans come from other people too."""
    if "/" in key or key.startswith("."):
        raise InputError(f"{key!r} is not the key of a job: this plan was not made by stackrace.")
    return key
