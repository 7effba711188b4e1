"""One job's process: what it is told, where it works, and a disk without room for its result."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pytest

from orchestrator.engines import local
from orchestrator.errors import StorageError
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.model.record import Instant
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.names import Backend
    from orchestrator.model.plan import Limits
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
        assert limits == PLAN.limits
        assert [] == list(work.iterdir())
        self.told.append(request)
        self.worked_in.append(work)
        if self.error:
            raise self.error
        return Execution(start=AT, end=AT, result=self.result, exit_code=0)


def execute(folder: Path, fake: Fake, *, free: int = 10**9) -> Execution:
    """Run the job in this environment, on a disk with so many bytes free."""
    return local.execute(
        JOB,
        PLAN.case(JOB.case),
        plan=PLAN,
        attempt=1,
        folder=RunFolder.create(folder, PLAN),
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


def test_work_folder_is_removed(tmp_path: Path) -> None:
    """Nothing of a job's work is left in the run folder."""
    fake = Fake()
    execute(tmp_path, fake)
    assert not fake.worked_in[0].parent.exists()


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
