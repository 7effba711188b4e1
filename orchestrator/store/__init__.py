"""Where runs are stored: files that are complete or absent, and the folder of a run."""

from orchestrator.store.files import (
    DISK_FULL,
    NAME_CACHE,
    NAME_RESULTS,
    full_disk,
    read,
    read_text,
    rename_new,
    storage_errors,
    write_once,
    write_report,
)
from orchestrator.store.folder import ADDED, KEPT, PLAN, REPORTS, SUMMARY, RunFolder, State

__all__ = [
    "ADDED",
    "DISK_FULL",
    "KEPT",
    "NAME_CACHE",
    "NAME_RESULTS",
    "PLAN",
    "REPORTS",
    "SUMMARY",
    "RunFolder",
    "State",
    "full_disk",
    "read",
    "read_text",
    "rename_new",
    "storage_errors",
    "write_once",
    "write_report",
]
