"""One job's process: what it is told, where it works, and a disk without room for its result."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from orchestrator.engines import local
from orchestrator.errors import StorageError
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.model.record import Instant
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from orchestrator.model.names import Backend
    from orchestrator.model.plan import Job, Limits, Plan
    from orchestrator.model.request import Request

PLAN = factories.plan(forms=[("tf.keras", "graph")], rounds=1)
JOB = next(job for job in PLAN.jobs if job.arm.environment == "tf20")
AT = Instant(wall=0.0, monotonic=0.0)


@dataclass
class Fake:
    """An environment that keeps what it was told, and ends as it is told to."""

    result: bytes | None = b"{}"
    error: OSError | None = None
    told: list[Request] = field(default_factory=list)
    worked_in: list[Path] = field(default_factory=list)
    leaves: str = ""  # a file of a profiler's trace
    identifier: str = "tf20"
    lock_digest: str = "lock-tf20"
    python: str = "3.7.16"
    backend: Backend = "venv"
    image_digest: str | None = None

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """Note the request and the folder; leave the result."""
        assert log.is_absolute()
        assert beat is silent
        assert limits == PLAN.limits_of("tf20", "cpu", profile=request.action == "profile")
        assert ["trace"] * bool(request.trace_folder) == [path.name for path in work.iterdir()]
        if self.leaves:
            Path(request.trace_folder, self.leaves).write_text("trace")
        self.told.append(request)
        self.worked_in.append(work)
        if self.error:
            raise self.error
        return Execution(start=AT, end=AT, result=self.result, exit_code=0)


def execute(
    folder: Path, fake: Fake, *, free: int = 10**9, plan: Plan = PLAN, job: Job = JOB
) -> Execution:
    """Run the job in this environment, on a disk with so many bytes free."""
    return local.execute(
        job,
        plan.case(job.case),
        plan=plan,
        attempt=1,
        folder=RunFolder.create(folder, plan),
        environments={"tf20": fake},
        free_bytes=lambda _path: free,
    )


def test_guest_is_told_the_cell(tmp_path: Path) -> None:
    """The request holds the arm, the case, its numbers, and the versions that must be there."""
    fake = Fake()
    execute(tmp_path, fake)
    (told,) = fake.told
    assert ("tf20", "tf.keras", "graph") == (told.environment, told.api, told.mode)
    assert ("2.0.0", "2.3.1") == (told.expected.tensorflow, told.expected.keras)
    assert (200, 60.0, (32, 140, 30)) == (told.iterations, told.budget_s, told.batch_shape)


def test_guest_is_told_the_knobs(tmp_path: Path) -> None:
    """They cross as they stand in the case's name."""
    case = factories.case(knobs={"batch_size": "64"})
    plan = factories.plan(cases=[case], forms=[("tf.keras", "graph")], rounds=1)
    fake = Fake()
    execute(tmp_path, fake, plan=plan, job=plan.jobs[1])
    assert {"batch_size": "64"} == fake.told[0].knobs
    assert ("measure", "", "") == (
        fake.told[0].action,
        fake.told[0].workload,
        fake.told[0].trace_folder,
    )


def test_guest_is_told_where_the_users_own_model_is(tmp_path: Path) -> None:
    """The copy in the run folder: the arm's own, or the run's only one."""
    plan = factories.plan(forms=[("tf.keras", "graph")], rounds=1, workloads=["one", "two"])
    job = next(job for job in plan.jobs if job.arm.name == "tf20/tf.keras/graph/two")
    alone = msgspec.structs.replace(PLAN, workloads=(factories.workload("mine"),))
    fake = Fake()
    execute(tmp_path / "several", fake, plan=plan, job=job)
    execute(tmp_path / "alone", fake, plan=alone)
    assert [
        str(tmp_path / "several" / "run0" / "workloads" / "two" / "two.py"),
        str(tmp_path / "alone" / "run0" / "workloads" / "mine" / "mine.py"),
    ] == [told.workload for told in fake.told]


def test_a_profiles_trace_is_kept(tmp_path: Path) -> None:
    """What the framework's profiler left stands in the run folder; nothing of it is no folder."""
    plan = factories.with_profiles(PLAN)
    job = next(job for job in plan.profiles if job.arm.environment == "tf20")
    execute(tmp_path / "a", Fake(leaves="host.xplane.pb"), plan=plan, job=job)
    kept = RunFolder(tmp_path / "a" / "run0").trace_path(job.key, 1)
    assert ["host.xplane.pb"] == [path.name for path in kept.iterdir()]
    fake = Fake()
    execute(tmp_path / "b", fake, plan=plan, job=job)
    assert ("profile", 60.0) == (fake.told[0].action, fake.told[0].budget_s)
    assert 120.0 == plan.limits_of("tf20", "cpu", profile=True).job_s
    assert not RunFolder(tmp_path / "b" / "run0").trace_path(job.key, 1).exists()


def test_work_folder_is_removed(tmp_path: Path) -> None:
    """Nothing of a job's work is left in the run folder."""
    fake = Fake()
    execute(tmp_path, fake)
    assert not fake.worked_in[0].exists()


def test_no_room_for_the_result_is_no_crash(tmp_path: Path) -> None:
    """A worker that leaves nothing on a full disk stops the run: its block is measured again."""
    with pytest.raises(StorageError, match="disk is full"):
        execute(tmp_path, Fake(result=None), free=1000)


def test_no_result_on_a_disk_with_room_is_an_execution(tmp_path: Path) -> None:
    """With room on the disk, a missing result is what the process did."""
    assert execute(tmp_path, Fake(result=None)).result is None


def test_disk_that_fills_while_starting(tmp_path: Path) -> None:
    """A full disk is named, whichever file met it first."""
    with pytest.raises(StorageError, match="disk is full"):
        execute(tmp_path, Fake(error=OSError(errno.ENOSPC, "No space left on device")))


class Volume(NamedTuple):
    """What statvfs says of a disk."""

    f_files: int
    f_favail: int
    f_bavail: int = 1000
    f_frsize: int = 4096


@pytest.mark.parametrize(
    ("volume", "room"),
    [
        (Volume(f_files=10**6, f_favail=10**5), 4_096_000),
        (Volume(f_files=10**6, f_favail=0), 0),
        (Volume(f_files=0, f_favail=0), 4_096_000),  # btrfs has no fixed number
    ],
)
def test_disk_without_inodes_has_no_room(tmp_path: Path, volume: Volume, room: int) -> None:
    """Bytes are of no use where no file can be made."""
    assert room == local.room(tmp_path, statvfs=lambda _: volume)


def test_room_on_a_real_disk(tmp_path: Path) -> None:
    """The disk of this test has room for it."""
    assert local.room(tmp_path) > local.ROOM_BYTES
