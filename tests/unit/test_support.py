"""The README's table of environments is the matrix, and current."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import matrix
from orchestrator.errors import InputError
from orchestrator.pipeline.support import BEGIN, END, renewed
from orchestrator.report.support import generations, support

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_is_current() -> None:
    """Whoever changes the matrix makes the table again: `nox -s docs`."""
    text = README.read_text(encoding="utf-8")
    assert renewed(text) == text


def test_one_line_for_every_row() -> None:
    """Every environment is in the table once, under its identifier."""
    lines = support(matrix.load()).splitlines()
    names = [line.split("|")[1].strip(" `") for line in lines[2:] if line.startswith("|")]
    assert list(matrix.load().rows) == names


@pytest.mark.parametrize(
    ("architectures", "expected"),
    [
        (("sm_35", "sm_37", "sm_52", "sm_60", "sm_61", "sm_70"), "Kepler to Turing"),
        (("sm_35", "sm_50", "sm_60", "sm_70", "sm_75", "compute_80"), "Kepler to Ada"),
        (("sm_60", "sm_70", "sm_80", "sm_89", "compute_90"), "Pascal to Hopper"),
        (("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "compute_120"), "Turing to Blackwell"),
        (("sm_90a",), "Hopper"),
        ((), "none"),
    ],
)
def test_generations(architectures: tuple[str, ...], expected: str) -> None:
    """Machine code runs on its own architecture and on later ones of the same major."""
    assert expected == generations(architectures)


def test_the_table_stands_between_its_marks() -> None:
    """What is around the marks stays; a document without them is refused."""
    text = renewed(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert text.startswith(f"before\n{BEGIN}\n| name |")
    assert text.endswith(f"{END}\nafter\n")
    with pytest.raises(InputError, match="no place for the table"):
        renewed("nothing")
