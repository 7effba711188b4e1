"""Pages of the documentation that a command makes anew between two marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator import store
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

WHERE = "Name another document."


def around(text: str, begin: str, end: str, *, what: str) -> tuple[str, str]:
    """What stands before and behind the place of `what`, marks included; InputError without one."""
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InputError(f"The document has no place for {what}: {begin} ... {end}.")
    return f"{before}{begin}", f"{end}{after}"


def write(document: Path, text: str) -> None:
    """As a whole: a kill halfway leaves the page as it was."""
    store.write_report(document, text.encode(), fix=WHERE)
