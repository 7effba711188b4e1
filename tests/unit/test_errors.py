"""Exit codes and nearest names."""

from __future__ import annotations

import pytest

from orchestrator import errors


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([], 0), ([0, 3], 3), ([3, 5], 5), ([5, 2, 3], 2), ([2, 130], 130), ([1, 4], 4), ([4, 3], 3)],
)
def test_worst_exit_code(codes: list[int], worst: int) -> None:
    """When several codes hold: 130/143, 2, 5, 3, 4, 1."""
    assert worst == errors.worst_exit_code(codes)


def test_nearest_names_one() -> None:
    """A near name is suggested."""
    assert errors.nearest("tf14", ["tf114", "tf20"]) == "Did you mean tf114?"


def test_nearest_of_letters_that_were_swapped() -> None:
    """Of names that are equally near, the one of the same letters."""
    assert errors.nearest("tf02", ["tf20", "tf212", "tf29"]) == "Did you mean tf20?"


def test_nearest_lists_a_few() -> None:
    """When nothing is near, a short list of valid names is given."""
    assert errors.nearest("zzz", ["b", "a"]) == "Valid: a, b."


def test_nearest_does_not_list_many() -> None:
    """A long list of names is noise."""
    assert errors.nearest("zzz", [f"name-{number}" for number in range(50)]) == ""
