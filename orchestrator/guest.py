"""The guest as one file that any Python runs: the same bytes from every clone.

The package keeps its folder inside the archive, because modules named `inputs` or `timing` at its
top would stand in the way of what TensorFlow imports.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

from orchestrator import store

# Beside this package in a clone, and in a wheel as well.
SOURCES = Path(__file__).resolve().parent.parent / "workloads"

_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the first that the format can hold
_MODE = 0o644


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A built guest. `digest` is the sha256 of its sources, and is in every record."""

    path: Path
    digest: str


def digest() -> str:
    """Digest of the guest's sources: their relative names and bytes, in order."""
    total = hashlib.sha256()
    for name, raw in _sources().items():
        total.update(f"{name}\0{len(raw)}\0".encode())
        total.update(raw)
    return total.hexdigest()


def build(folder: Path) -> Guest:
    """Build the guest into `folder`, in the cache, unless it is there already.

    Raises UsageError or StorageError when the folder cannot be written.
    """
    found = digest()
    path = folder / f"workloads-{found[:12]}.pyz"
    if not path.exists():
        with store.storage_errors(path, fix=store.NAME_CACHE):
            folder.mkdir(parents=True, exist_ok=True)
        store.write_once(path, _archive(), fix=store.NAME_CACHE)
    return Guest(path=path, digest=found)


def _archive() -> bytes:
    sources = _sources()
    entries = {"__main__.py": sources["workloads/__main__.py"], **sources}
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(entries.items()):
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.create_system = 3  # Unix, whichever system builds it
            entry.external_attr = _MODE << 16
            archive.writestr(entry, content)
    return raw.getvalue()


def _sources() -> dict[str, bytes]:
    paths = {path.relative_to(SOURCES.parent).as_posix(): path for path in SOURCES.rglob("*.py")}
    return {name: paths[name].read_bytes() for name in sorted(paths)}
