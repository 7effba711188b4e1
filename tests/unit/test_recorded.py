"""What is kept of a run that was read: never another answer than reading it again, and no error."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pandas as pd
import pytest

from orchestrator.errors import InputError
from orchestrator.merge import merge, save
from orchestrator.model import codec
from orchestrator.model.plan import ROUNDS_SCHEMA, AddedRounds
from orchestrator.model.result import Profile
from orchestrator.pipeline import recorded
from orchestrator.store import KEPT, RunFolder
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.record import Record


PROFILE = Profile(
    run_s=1.0, iterations=10, build=50.0, data=20.0, training=70.0, other=5.0, unattributed=5.0
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run of 24 jobs, whose files nobody has touched for a while."""
    monkeypatch.setattr(recorded, "_SETTLED_S", 0.0)
    plan = factories.plan()
    run = RunFolder.create(tmp_path, plan)
    for record in factories.measured(plan, lambda job: 0.01 + job.slot / 1000):
        run.write(record)
    return run


def kept(folder: RunFolder) -> list[str]:
    """The names of what is kept in the folder."""
    place = folder.path / KEPT
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


def read(folder: RunFolder) -> pd.DataFrame:
    """The table, kept from the first record on."""
    return recorded.read([folder.path], enough=1).frame


def merged(folder: RunFolder) -> pd.DataFrame:
    """The same without anything that was kept."""
    return merge([(folder.plan(), folder.records())])


def edit(folder: RunFolder, place: int = 0, **facts: object) -> None:
    """Change one record as an editor does."""
    record: Record = folder.records()[place]
    path = folder.record_path(record.key, record.attempt)
    path.write_bytes(codec.encode(msgspec.structs.replace(record, **facts)))


def test_what_was_kept_is_the_same_table_and_the_same_account(folder: RunFolder) -> None:
    """Every column, every type and every missing value; and what else a report needs of records."""
    edit(folder, outcome="failed", result=None)
    result = folder.records()[1].result
    assert result is not None
    edit(folder, 1, result=msgspec.structs.replace(result, profile=PROFILE))
    first = recorded.read([folder.path], enough=1)
    (name,) = kept(folder)
    again = recorded.read([folder.path], enough=1)
    pd.testing.assert_frame_equal(merged(folder), again.frame)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert [name] == kept(folder)
    ((_, one),), ((_, other),) = first.runs(), again.runs()
    assert one == other
    assert [(r.key, r.failure) for r in folder.records()] == [(r.key, r.failure) for r in one]
    (profile,) = [
        record.result.profile for record in one if record.result and record.result.profile
    ]
    assert PROFILE == profile


def test_it_is_read_again_from_what_was_kept(folder: RunFolder) -> None:
    """Not from the records: what stands in the cache is what is shown."""
    frame = read(folder)
    (name,) = kept(folder)
    frame.loc[0, "reason"] = "kept"
    save(frame, folder.path / KEPT / name / "table.parquet")
    assert "kept" == read(folder)["reason"][0]


def test_an_edited_record_is_seen(folder: RunFolder) -> None:
    """Also where neither its size nor its time of writing says so."""
    read(folder)
    record = folder.records()[0]
    path = folder.record_path(record.key, record.attempt)
    before = path.stat()
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"0.01", b"0.09"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert before.st_size == path.stat().st_size
    pd.testing.assert_frame_equal(merged(folder), read(folder))
    assert 1 == len(kept(folder))  # the older one is gone


def test_a_new_attempt_is_seen(folder: RunFolder) -> None:
    """A block that was redone has further records."""
    read(folder)
    record = folder.records()[0]
    folder.write(msgspec.structs.replace(record, attempt=2))
    assert 25 == len(read(folder))
    pd.testing.assert_frame_equal(merged(folder), read(folder))


def test_a_record_that_went_is_seen(folder: RunFolder) -> None:
    """Its job has none."""
    read(folder)
    record = folder.records()[0]
    folder.record_path(record.key, record.attempt).unlink()
    assert "missing" in set(read(folder)["outcome"])


def test_added_rounds_are_seen(folder: RunFolder) -> None:
    """A plan grows while it is measured."""
    read(folder)
    plan = folder.plan()
    block = plan.blocks[0]
    jobs = tuple(msgspec.structs.replace(job, key=f"{job.key}-7", round=7) for job in block.jobs)
    folder.add_rounds(
        AddedRounds(
            schema=ROUNDS_SCHEMA,
            run_id=plan.run_id,
            number=1,
            created=plan.created,
            blocks=(msgspec.structs.replace(block, round=7, jobs=jobs),),
            reason="a wide interval",
        )
    )
    assert 7 == read(folder)["round"].max()


def test_a_record_that_cannot_be_read_is_an_error_whatever_was_kept(folder: RunFolder) -> None:
    """The file is named."""
    read(folder)
    path = folder.record_path(folder.records()[0].key, 1)
    path.write_bytes(b"{")
    with pytest.raises(InputError, match=path.name):
        read(folder)


@pytest.mark.parametrize("name", ["table.parquet", "records.msgpack"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "gone"])
def test_a_damaged_file_is_not_read(folder: RunFolder, name: str, damage: str) -> None:
    """The records are, and what is kept is made again."""
    whole = read(folder)
    (place,) = kept(folder)
    path = folder.path / KEPT / place / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"flipped": bytes(raw), "cut": bytes(raw[:-100]), "empty": b""}[damage])
    pd.testing.assert_frame_equal(whole, read(folder))
    pd.testing.assert_frame_equal(whole, read(folder))
    assert [place] == kept(folder)


@pytest.mark.parametrize("column", ["run_id", "round"])
def test_a_table_of_other_types_is_not_read(folder: RunFolder, column: str) -> None:
    """Somebody else's Parquet in its place is no table of this run."""
    whole = read(folder)
    (place,) = kept(folder)
    other = whole[[column]].astype("string" if column == "round" else "category")
    other.to_parquet(folder.path / KEPT / place / "table.parquet")
    pd.testing.assert_frame_equal(whole, read(folder))


def test_a_folder_that_cannot_be_written_is_read(folder: RunFolder) -> None:
    """Without a word, and nothing is kept."""
    (folder.path / KEPT).write_bytes(b"")  # a file has the name: no right stops root
    pd.testing.assert_frame_equal(merged(folder), read(folder))
    assert b"" == (folder.path / KEPT).read_bytes()


def test_a_copied_folder_does_not_trust_what_was_copied_with_it(
    folder: RunFolder, tmp_path: Path
) -> None:
    """Its records may be other ones."""
    read(folder)
    copy = RunFolder(tmp_path / "copy")
    shutil.copytree(folder.path, copy.path)
    frame = read(copy)
    assert kept(folder) != kept(copy)
    pd.testing.assert_frame_equal(merged(copy), frame)


def test_readers_at_once_all_have_the_same(folder: RunFolder) -> None:
    """Whoever is first keeps it."""
    whole = merged(folder)
    with ThreadPoolExecutor(4) as pool:
        for frame in pool.map(lambda _: read(folder), range(8)):
            pd.testing.assert_frame_equal(whole, frame)
    assert 1 == len(kept(folder))


def test_files_of_this_moment_are_not_kept(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes within one tick of the clock of files look like one."""
    monkeypatch.setattr(recorded, "_SETTLED_S", 1e9)
    read(folder)
    assert [] == kept(folder)


def test_a_plan_that_cannot_be_read_is_an_error_whatever_was_kept(folder: RunFolder) -> None:
    """The plan of a kept table is not looked through again: another plan has another table."""
    recorded.read((folder.path,), enough=1)
    plan = folder.plan_path.read_text(encoding="utf-8")
    threshold = f'"threshold": {folder.plan().threshold}'
    assert threshold in plan
    folder.plan_path.write_text(plan.replace(threshold, '"threshold": 7'), encoding="utf-8")
    with pytest.raises(InputError, match="threshold is 7"):
        recorded.read((folder.path,), enough=1)


def test_few_records_are_not_kept(folder: RunFolder) -> None:
    """They are read as fast."""
    recorded.read([folder.path])
    assert [] == kept(folder)


def test_several_runs_are_one_table_however_each_was_read(
    folder: RunFolder, tmp_path: Path
) -> None:
    """One from what was kept, one from its records."""
    read(folder)
    plan = factories.plan(run_id="run1")
    other = RunFolder.create(tmp_path, plan)
    records = factories.measured(plan, lambda _: 0.02)
    for record in records:
        other.write(record)
    whole = merge([(folder.plan(), folder.records()), (plan, other.records())])
    frame = recorded.read([folder.path, other.path], enough=1).frame
    pd.testing.assert_frame_equal(whole, frame)
