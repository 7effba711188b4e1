"""Keeps the README's table current: `python -m orchestrator.pipeline.support README.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator import matrix
from orchestrator.errors import InputError
from orchestrator.report.support import support

BEGIN, END = "<!-- support table: nox -s docs -->", "<!-- end of the support table -->"


def renewed(text: str) -> str:
    """The document with the table between its marks as the matrix has it now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"The document has no place for the table: {BEGIN} ... {END}.")
    return f"{before}{BEGIN}\n{support(matrix.load())}{END}{after}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
