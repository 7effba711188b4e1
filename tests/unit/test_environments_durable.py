"""A finished folder gets its name only when its files are on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.environments import durable

if TYPE_CHECKING:
    from pathlib import Path


def test_files_reach_the_disk_before_the_name(tmp_path: Path) -> None:
    """The file system is written out while the folder still has its temporary name."""
    temporary, final = tmp_path / "temporary", tmp_path / "final"
    temporary.mkdir()
    (temporary / "file").write_text("whole", encoding="utf-8")
    seen: list[tuple[Path, bool, bool]] = []

    def flush(folder: Path) -> None:
        seen.append((folder, (folder / "file").exists(), final.exists()))

    durable.give_name(temporary, final, flush=flush)
    assert [(temporary, True, False)] == seen
    assert "whole" == (final / "file").read_text(encoding="utf-8")


def test_folder_gets_its_name_with_the_real_flush(tmp_path: Path) -> None:
    """The system's own call works on a real folder, and renames nothing by itself."""
    temporary, final = tmp_path / "temporary", tmp_path / "final"
    temporary.mkdir()
    durable.flush(temporary)
    assert temporary.is_dir()
    durable.give_name(temporary, final)
    assert (False, True) == (temporary.exists(), final.is_dir())


def test_what_cannot_be_flushed_is_no_failure(tmp_path: Path) -> None:
    """Durability is a precaution: a folder that cannot be opened stops nothing."""
    durable.flush(tmp_path / "none")
    assert [] == list(tmp_path.iterdir())
