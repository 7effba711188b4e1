"""Markdown: tables, lists, and text that it takes as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MARK: Final = re.compile(r"[\\|*`]|<(?=[A-Za-z/!])")


def grid(headers: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> str:
    """A Markdown table; the first `left` columns are text, the others stand to the right."""
    marks = [":--" if place < left else "--:" for place in range(len(headers))]
    return "\n".join(
        "| " + " | ".join(text(cell) for cell in row) + " |" for row in (headers, marks, *rows)
    )


def bullets(entries: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {text(entry)}" for entry in entries)


def code(words: str) -> str:
    """A command, which is copied as it stands; they have no backticks."""
    return f"`{words}`"


def text(words: str) -> str:
    """Text that Markdown takes as it stands."""
    return _MARK.sub(r"\\\g<0>", words)
