"""The run folder: written once, whole or not at all."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError, StorageError, UsageError
from orchestrator.model import codec
from orchestrator.model.workload import Workload
from orchestrator.store import RunFolder, rename_new, storage_errors, write_once, write_report
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(params=["plain", "with space", "quo\"te's", "new\nline", "ünï"])
def weird_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A results folder whose name breaks careless code."""
    return tmp_path / str(request.param)


def test_plan_and_records_come_back(weird_path: Path) -> None:
    """What was written is read back equal, wherever the folder lies."""
    plan = factories.plan(rounds=2)
    folder = RunFolder.create(weird_path, plan)
    records = [factories.record(plan, job) for job in plan.jobs]
    assert all(folder.write(record) for record in records)
    opened = RunFolder.open(weird_path / plan.run_id)
    assert plan == opened.plan()
    assert sorted(records, key=lambda item: item.key) == sorted(
        opened.records(), key=lambda item: item.key
    )


def test_workloads_are_copied(weird_path: Path) -> None:
    """The run keeps the user's own models, folders and all, under their names."""
    plan = factories.plan(rounds=1, workloads=["one", "two"])
    files = {"workload.py": b"1", "package/part.py": b"2"}
    workloads = [
        Workload(name="one", entry="workload.py", digest="d", files=files),
        Workload(name="two", entry="two.py", digest="e", files={"two.py": b"3"}),
    ]
    folder = RunFolder.create(weird_path, plan, workloads)
    assert b"2" == (folder.workload_path("one") / "package" / "part.py").read_bytes()
    assert b"3" == (folder.workload_path("two") / "two.py").read_bytes()


def test_records_of_profiles_are_records(tmp_path: Path) -> None:
    """They stand beside those of the timings, and are known by the plan."""
    plan = factories.with_profiles(factories.plan(rounds=1))
    folder = RunFolder.create(tmp_path, plan)
    record = factories.record(plan, plan.profiles[0])
    assert folder.write(record)
    assert [record] == folder.records()


def test_first_writer_wins(tmp_path: Path) -> None:
    """A record is never rewritten."""
    plan = factories.plan(rounds=1)
    folder = RunFolder.create(tmp_path, plan)
    job = plan.jobs[0]
    assert folder.write(factories.record(plan, job, values=[1.0, 1.0]))
    assert not folder.write(factories.record(plan, job, values=[2.0, 2.0]))
    (kept,) = folder.records()
    assert kept.result is not None
    assert kept.result.values_s == (1.0, 1.0)


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    """Writing leaves only what was written."""
    write_once(tmp_path / "a", b"1")
    write_once(tmp_path / "a", b"2")
    write_report(tmp_path / "b", b"3")
    assert ["a", "b"] == sorted(path.name for path in tmp_path.iterdir())


def test_reports_are_rewritten(tmp_path: Path) -> None:
    """A report is made again at any time."""
    write_report(tmp_path / "r", b"1")
    write_report(tmp_path / "r", b"2")
    assert (tmp_path / "r").read_bytes() == b"2"


def test_temporary_files_are_no_records(tmp_path: Path) -> None:
    """What a killed writer left behind is not taken for a record."""
    folder = RunFolder.create(tmp_path, factories.plan(rounds=1))
    (folder.path / "records" / ".k.1.json.0.tmp").write_bytes(b"{")
    assert [] == folder.records()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is not JSON"),
        (b'{"schema": "stackrace.record/1"', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'{"schema": "stackrace.record/9"}', "has schema 'stackrace.record/9'"),
        (b"{}", "has no schema at all"),
        (b"[]", "has no JSON object in it"),
        (b"[[[[", "is not JSON"),
        (b'{"schema": 9}', "has schema 9"),
        (b'{"schema": "stackrace.record/1"}', "is not a valid stackrace.record/1"),
    ],
)
def test_bad_records_name_the_file(tmp_path: Path, raw: bytes, message: str) -> None:
    """A record that cannot be read is an error that names the file, exit code 2."""
    folder = RunFolder.create(tmp_path, factories.plan(rounds=1))
    (folder.path / "records" / "bad.1.json").write_bytes(raw)
    with pytest.raises(InputError) as caught:
        folder.records()
    assert message in caught.value.what
    assert "bad.1.json" in caught.value.what
    assert caught.value.exit_code == 2


def test_record_without_its_label_is_not_a_record(tmp_path: Path) -> None:
    """A file that has every field but no schema is refused: nobody knows what it is."""
    plan = factories.plan(rounds=1)
    folder = RunFolder.create(tmp_path, plan)
    folder.write(factories.record(plan, plan.jobs[0]))
    (path,) = (folder.path / "records").glob("*.json")
    text = path.read_text().replace('"schema": "stackrace.record/1",', "")
    path.write_text(text)
    with pytest.raises(InputError, match="has no schema at all"):
        folder.records()


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder of somebody who is not root, as whom the test runs: root may read everything."""
    before = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        if before == 0:
            os.chown(name, 65534, -1)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(before)


def one_record(results: Path) -> tuple[RunFolder, Path]:
    """A run with one record, and its file."""
    plan = factories.plan(rounds=1)
    folder = RunFolder.create(results, plan)
    folder.write(factories.record(plan, plan.jobs[0]))
    return folder, next((folder.path / "records").glob("*.json"))


def as_folder(path: Path) -> None:
    """A folder in the place of a file."""
    path.mkdir()


def as_pipe(path: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def as_loop(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path)


def as_device(path: Path) -> None:
    """A device that never ends."""
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [as_folder, as_pipe, as_loop, as_device])
@pytest.mark.parametrize("name", ["records/x.1.json", "plan.json"])
def test_what_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None], name: str) -> None:
    """Odd things with a file's name are refused, and never waited for."""
    folder, _ = one_record(tmp_path)
    (folder.path / name).unlink(missing_ok=True)
    make(folder.path / name)
    with pytest.raises(InputError) as caught:
        folder.records()
    assert str(folder.path / name) in caught.value.what


def test_what_a_killed_command_left_is_cleared_away(tmp_path: Path) -> None:
    """Work folders and half-written records of a killed command are gone when a run goes on."""
    folder, path = one_record(tmp_path)
    (folder.path / "work" / "k.1" / "home").mkdir(parents=True)
    (folder.path / "records" / ".k.1.json.0.tmp").write_bytes(b"{")
    with folder.claimed():
        assert not (folder.path / "work").exists()
        assert [path] == list((folder.path / "records").iterdir())


@pytest.mark.parametrize("where", ["plan.d/.0001.json.0.tmp", ".report.md.0.tmp", ".cache/.0.tmp"])
def test_half_written_files_are_cleared_away_wherever_they_stand(
    tmp_path: Path, where: str
) -> None:
    """A report that somebody is writing at this moment stays; nobody takes an hour for one."""
    folder, _ = one_record(tmp_path)
    left = folder.path / where
    left.parent.mkdir(exist_ok=True)

    def leave() -> None:
        if where.startswith(".cache"):  # a table that is kept is a folder
            left.mkdir(exist_ok=True)
            (left / "table.parquet").write_bytes(b"{")
        else:
            left.write_bytes(b"{")

    leave()
    with folder.claimed():
        assert left.exists() is not where.startswith("plan.d")
    leave()
    hours_ago = time.time() - 7200
    os.utime(left, (hours_ago, hours_ago))
    with folder.claimed():
        assert not left.exists()


def test_what_cannot_be_cleared_away_is_left(tmp_path: Path) -> None:
    """Tidying up never keeps a run from going on; a link is removed, never what it leads to."""
    folder, _ = one_record(tmp_path)
    (folder.path / "records" / ".folder.tmp" / "sub").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    (folder.path / "records" / ".link.tmp").symlink_to(elsewhere)
    (folder.path / "records" / ".nowhere.tmp").symlink_to(tmp_path / "nowhere")
    with folder.claimed():
        assert not list((folder.path / "records").glob(".*.tmp"))
        assert (elsewhere / "precious").exists()


def test_links_to_files_are_files(tmp_path: Path) -> None:
    """Some tools keep large folders as links."""
    folder, path = one_record(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert 1 == len(folder.records())


def test_a_closed_records_folder_is_not_an_empty_one(open_path: Path) -> None:
    """Without the right to look, nothing is known; that is not the same as no records."""
    folder = RunFolder(open_path)
    (open_path / "plan.json").write_bytes(codec.encode(factories.plan(rounds=1)))
    (open_path / "records").mkdir(mode=0)
    with pytest.raises(InputError, match="records cannot be read: Permission denied"):
        folder.records()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a\udcffb"])
def test_impossible_paths_are_no_runs(tmp_path: Path, name: str) -> None:
    """Names that no file system takes are refused like any folder that is no run."""
    with pytest.raises(InputError, match="is not a run folder"):
        RunFolder.open(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"run_id": "run1"}, "run_id is 'run1', and this run is 'run0'"),
        ({"key": "other"}, "key 'other' is that of no job of this run"),
        ({"round": 9}, "round is not that of the job"),
        ({"slot": 9}, "slot is not that of the job"),
        ({"attempt": 2}, "it is attempt 2 of the job"),
        ({"case": factories.case("fit")}, "case is not that of the job"),
    ],
)
def test_records_that_are_not_the_plans_are_named(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    """A record that was edited, renamed or copied from another run counts nowhere."""
    folder, path = one_record(tmp_path)
    record = msgspec.structs.replace(folder.records()[0], **changes)
    path.write_bytes(codec.encode(record))
    with pytest.raises(InputError) as caught:
        folder.records()
    assert f"{path} does not belong to run run0: {problem}" in caught.value.what


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(raw=st.binary(max_size=200))
def test_rubbish_is_never_a_traceback(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    """Whatever stands in a record file, the answer is an InputError."""
    folder = RunFolder.create(tmp_path_factory.mktemp("r"), factories.plan(rounds=1))
    (folder.path / "records" / "x.1.json").write_bytes(raw)
    with pytest.raises(InputError):
        folder.records()


def test_folder_without_a_plan_is_no_run(tmp_path: Path) -> None:
    """Any other folder is refused by name."""
    with pytest.raises(InputError, match="is not a run folder"):
        RunFolder.open(tmp_path)


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    """A file in the place of the results folder is a usage error."""
    (tmp_path / "results").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        RunFolder.create(tmp_path / "results", factories.plan(rounds=1))


def test_folder_that_may_not_be_written(tmp_path: Path) -> None:
    """A forbidden folder is a usage error that names the ways out."""
    with pytest.raises(UsageError) as caught, storage_errors(tmp_path):
        raise PermissionError(13, "Permission denied")
    assert "--results DIR" in caught.value.fix


def test_full_disk_is_told_apart() -> None:
    """No space left is an error of its own, and says that nothing is lost."""
    device = Path("/dev/full")
    assert device.is_char_device()
    with (
        pytest.raises(StorageError, match="disk is full") as caught,
        storage_errors(device),
        device.open("wb", buffering=0) as file,
    ):
        file.write(b"x")
    assert "nothing that was measured is lost" in caught.value.fix


def test_two_commands_never_measure_one_run(tmp_path: Path) -> None:
    """A run that is being measured is refused to a second command."""
    folder = RunFolder.create(tmp_path, factories.plan(rounds=1))
    with (
        folder.claimed(),
        pytest.raises(UsageError, match="Another command is measuring"),
        RunFolder.open(folder.path).claimed(),
    ):
        pytest.fail("the second claim must not succeed")
    with folder.claimed():
        assert folder.plan_path.exists()


def test_without_hard_links_the_first_writer_wins_too(tmp_path: Path) -> None:
    """Where links do not exist, a rename that replaces nothing does the same."""
    (tmp_path / "1.tmp").write_bytes(b"1")
    (tmp_path / "2.tmp").write_bytes(b"2")
    assert rename_new(tmp_path / "1.tmp", tmp_path / "record")
    assert not rename_new(tmp_path / "2.tmp", tmp_path / "record")
    assert (tmp_path / "record").read_bytes() == b"1"


@pytest.mark.parametrize("key", ["../../../escape", "/srv/escape", ".hidden", "a/b"])
def test_keys_never_lead_out_of_the_folder(tmp_path: Path, key: str) -> None:
    """A plan from somebody else cannot make stackrace write elsewhere."""
    folder = RunFolder(tmp_path)
    for place in (folder.record_path, folder.log_path, folder.work_path):
        with pytest.raises(InputError, match="is not the key of a job"):
            place(key, 1)


def test_copies_without_empty_folders_can_be_claimed(tmp_path: Path) -> None:
    """A copied run whose empty folders were dropped gets them again."""
    folder = RunFolder.create(tmp_path, factories.plan(rounds=1))
    (folder.path / "logs").rmdir()
    with folder.claimed():
        assert (folder.path / "logs").is_dir()


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    """Behind `plan.d` were rounds: without them the run would look complete."""
    folder = RunFolder.create(tmp_path, factories.plan(rounds=1))
    (folder.path / "plan.d").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"plan\.d cannot be read"):
        folder.plan()
