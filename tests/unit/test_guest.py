"""The archive: the same bytes from every clone, and a digest over what it is made of."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator import guest
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType


def clone(folder: Path) -> ModuleType:
    """The builder of another clone in `folder`, with files that git does not carry."""
    root = Path(guest.__file__).parent
    shutil.copytree(guest.SOURCES, folder / "workloads", ignore=shutil.ignore_patterns("*.pyc"))
    (folder / "workloads" / "__pycache__").mkdir(exist_ok=True)
    (folder / "workloads" / "__pycache__" / "worker.cpython-36.pyc").write_bytes(b"stale")
    (folder / "orchestrator").mkdir()
    copy = Path(shutil.copy(root / "guest.py", folder / "orchestrator"))
    for path in (folder / "workloads").glob("*.py"):
        path.chmod(0o600)
    spec = importlib.util.spec_from_file_location("orchestrator_of_another_clone", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses looks its module up by name while the class is made.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
    return module


def test_every_clone_builds_the_same_bytes(tmp_path: Path) -> None:
    """Folder, file modes and leftovers of a clone change neither archive nor digest."""
    here = guest.build(tmp_path / "here")
    there = clone(tmp_path / "clone").build(tmp_path / "there")
    assert here.digest == there.digest
    assert here.path.name == there.path.name
    assert here.path.read_bytes() == there.path.read_bytes()


def test_digest_follows_the_sources(tmp_path: Path) -> None:
    """A changed source is another guest, under another name."""
    other = clone(tmp_path / "clone")
    before = other.build(tmp_path / "built")
    with (tmp_path / "clone" / "workloads" / "timing.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    after = other.build(tmp_path / "built")
    assert before.digest != after.digest
    assert {before.path, after.path} == set((tmp_path / "built").iterdir())


def test_names_and_modes(tmp_path: Path) -> None:
    """Entries are stored in order, and only the entry point stands beside the package."""
    built = guest.build(tmp_path)
    assert built.path.name == f"workloads-{built.digest[:12]}.pyz"
    assert built.digest == guest.digest()
    with zipfile.ZipFile(built.path) as archive:
        entries = archive.infolist()
    found = [entry.filename for entry in entries]
    assert sorted(found) == found
    assert [name for name in found if "/" not in name] == ["__main__.py"]
    assert {zipfile.ZIP_STORED} == {entry.compress_type for entry in entries}
    assert {(1980, 1, 1, 0, 0, 0)} == {entry.date_time for entry in entries}


def test_is_built_once(tmp_path: Path) -> None:
    """A guest that is there already is left alone: processes may be reading it."""
    first = guest.build(tmp_path)
    inode = first.path.stat().st_ino
    assert guest.build(tmp_path) == first
    assert inode == first.path.stat().st_ino


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file where the folder should be is a message, not a traceback."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written") as caught:
        guest.build(tmp_path / "file" / "guest")
    assert "Name another folder with STACKRACE_CACHE." == caught.value.fix


@pytest.mark.parametrize("folder", ["/proc/nope", "/proc/self"])
def test_cache_that_takes_no_file(folder: str) -> None:
    """A place that takes no folder or no file is a message that names the variable of the cache."""
    with pytest.raises(UsageError, match=f"{folder}/.* cannot be written") as caught:
        guest.build(Path(folder))
    assert "Name another folder with STACKRACE_CACHE." == caught.value.fix


def test_no_module_is_named_like_one_of_the_standard_library() -> None:
    """A guest module that shadows one would break what TensorFlow imports."""
    own = {path.stem for path in guest.SOURCES.glob("*.py")}
    assert own & set(sys.stdlib_module_names) == set()
