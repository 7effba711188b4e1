"""The run folder: written once, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError, StorageError, UsageError
from orchestrator.store import RunFolder, rename_new, storage_errors, write_once, write_report
from tests import factories


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
        (b"[]", "has no schema at all"),
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
