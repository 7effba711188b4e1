"""What goes into images and containers, and comes out of them, as tar streams.

The build context of an image has some GB, of which little is ever in memory.
"""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MOST_BYTES = 200_000_000  # that a container may send back
_CHUNK = 1 << 20
_READABLE = 0o444
_SEARCHABLE = 0o111


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One member: a file of this machine, some bytes, a link, or a folder."""

    name: str
    path: Path | None = None
    raw: bytes = b""
    link: str = ""
    folder: bool = False

    @property
    def size(self) -> int:
        """Bytes that it takes in the image."""
        return len(self.raw) if self.path is None else self.path.stat().st_size


def tree(
    name: str, folder: Path, *, without: Callable[[str], bool] = lambda _: False
) -> Iterator[Entry]:
    """Every entry below `folder`, as `name/...`, except paths that `without` names.

    Links that stay inside the folder are kept; others are replaced by what they lead to.
    """
    yield Entry(name=name, folder=True)
    for where, folders, files in os.walk(folder):
        folders.sort()
        for item in [*folders, *sorted(files)]:
            path = Path(where, item)
            inside = path.relative_to(folder).as_posix()
            if without(inside):
                if item in folders:
                    folders.remove(item)
                continue
            yield _entry(f"{name}/{inside}", path, folder)


def _entry(name: str, path: Path, root: Path) -> Entry:
    if path.is_symlink():
        target = path.readlink()
        whole = Path(os.path.normpath(path.parent / target))
        if not target.is_absolute() and whole.is_relative_to(root):
            return Entry(name=name, link=str(target))
        if path.is_dir():
            return Entry(name=name, folder=True)
    elif path.is_dir():
        return Entry(name=name, folder=True)
    return Entry(name=name, path=path)


def stream(entries: Iterator[Entry]) -> Iterator[bytes]:
    """The tar stream of the entries. Everybody may read every file, and nobody owns one.

    Times stay: byte-compiled files name those of their sources.
    """
    for entry in entries:
        info = _info(entry)
        yield info.tobuf(tarfile.GNU_FORMAT)
        if info.isfile():
            yield from _contents(entry, info.size)
            yield b"\0" * (-info.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _info(entry: Entry) -> tarfile.TarInfo:
    info = tarfile.TarInfo(entry.name)
    info.mode = _READABLE
    if entry.folder:
        info.type = tarfile.DIRTYPE
        info.mode |= _SEARCHABLE
    elif entry.link:
        info.type = tarfile.SYMTYPE
        info.linkname = entry.link
    elif entry.path is not None:
        found = entry.path.stat()
        info.size = found.st_size
        info.mtime = int(found.st_mtime)
        if found.st_mode & _SEARCHABLE:
            info.mode |= _SEARCHABLE
    else:
        info.size = len(entry.raw)
    return info


def _contents(entry: Entry, size: int) -> Iterator[bytes]:
    if entry.path is None:
        yield entry.raw
        return
    sent = 0
    with entry.path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            sent += len(chunk)
            yield chunk
    if sent != size:
        raise OSError(0, "changed while it was copied", str(entry.path))


def archive(files: Mapping[str, bytes], *, owned: Mapping[str, int]) -> bytes:
    """A small tar in memory: files that root owns, and folders with the user that owns each."""
    entries = [Entry(name=name, raw=raw) for name, raw in files.items()]
    out = []
    for name, user in owned.items():
        info = _info(Entry(name=name, folder=True))
        info.mode = 0o755
        info.uid = info.gid = user
        out.append(info.tobuf(tarfile.GNU_FORMAT))
    return b"".join([*out, *stream(iter(entries))])


def unpack(archive: bytes, folder: Path) -> None:
    """Put what is below the archive's one folder into `folder`: files and folders, nothing else."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as found:
            left = MOST_BYTES
            for member in found:
                _, _, inside = member.name.partition("/")
                left -= member.size
                if inside and left > 0 and (member.isfile() or member.isdir()):
                    member.name = inside
                    found.extract(member, folder, filter="data")
    except tarfile.TarError:  # a container of somebody's image sends what it likes
        return
