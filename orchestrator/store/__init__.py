"""Where runs are stored: files that are complete or absent, and the folder of a run."""

from orchestrator.store.files import (
    DISK_FULL,
    NAME_CACHE,
    NAME_RESULTS,
    full_disk,
    rename_new,
    storage_errors,
    write_once,
    write_report,
)
from orchestrator.store.folder import ADDED, KEPT, REPORTS, SUMMARY, RunFolder, State

__all__ = [
    "ADDED",
    "DISK_FULL",
    "KEPT",
    "NAME_CACHE",
    "NAME_RESULTS",
    "REPORTS",
    "SUMMARY",
    "RunFolder",
    "State",
    "full_disk",
    "rename_new",
    "storage_errors",
    "write_once",
    "write_report",
]
