"""Files that are complete or absent, and messages for what a disk or a folder refuses.

A file is written under a temporary name, synced, and linked to its own name, which fails when that
exists. So the first writer wins, and a crash leaves nothing half done.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from orchestrator.errors import InputError, StorageError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
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


def listed(folder: Path) -> list[str]:
    """The names of the JSON files in a folder, in order; none where it is not there."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except OSError as error:
        # Copies may have dropped empty folders; a link that leads nowhere had something behind it.
        if isinstance(error, FileNotFoundError) and not folder.is_symlink():
            return []
        raise _unreadable(folder, error) from error
    return sorted(name for name in names if name.endswith(".json") and not name.startswith("."))


def read(path: Path | str) -> bytes:
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


def read_text(path: Path) -> str:
    """A file's text; InputError for what is none."""
    try:
        return read(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error}.") from error


def _unreadable(path: Path | str, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be read: {error.strerror}.",
        fix="Mend its permissions, or move it away.",
    )
