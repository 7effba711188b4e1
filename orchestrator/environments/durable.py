"""What has its final name is on the disk: a power cut leaves no finished folder of empty files."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def flush(folder: Path) -> None:
    """Write out the file system that holds `folder`; where it cannot, that is no failure.

    One call for all of some ten thousand files; `os.sync` would wait for every other disk as well.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        _libc.syncfs(descriptor)
    finally:
        os.close(descriptor)


def give_name(temporary: Path, final: Path, *, flush: Callable[[Path], None] = flush) -> None:
    """Rename a finished folder, after its files have reached the disk."""
    flush(temporary)
    temporary.rename(final)
