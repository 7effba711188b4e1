"""What a plan keeps of its environments is enough to have them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.config import Flags, load
from orchestrator.model.plan import PlannedEnvironment
from orchestrator.pipeline import preparing

if TYPE_CHECKING:
    from pathlib import Path


def planned(identifier: str, **facts: Any) -> PlannedEnvironment:  # noqa: ANN401 - any field
    """An environment of a plan."""
    defaults: dict[str, Any] = {
        "tensorflow": "2.9.1",
        "keras": "2.9.0",
        "python": "3.10.13",
        "variant": "cpu",
        "native_mode": "eager",
        "lock_digest": "d" * 64,
    }
    return PlannedEnvironment(identifier=identifier, **{**defaults, **facts})


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, "tf29"),
        ({"lock": "tf28"}, "tf28"),  # a copy
        ({"spec": "tensorflow==2.9.1+python==3.10"}, "tensorflow==2.9.1+python==3.10"),
        (
            {"spec": "tf29=/opt/bin/python", "source": "/opt/bin/python", "backend": "existing"},
            "tf29",
        ),
        (
            {"spec": "mine=image:1", "source": "image:1", "backend": "container", "lock": "mine"},
            "mine",
        ),
    ],
)
def test_a_resumed_run_names_its_environments_as_the_user_did(
    facts: dict[str, Any], expected: str
) -> None:
    """A row by its identifier, a pair by its text, somebody's own environment by its name."""
    assert expected == preparing.name_of(planned("tf29", **facts))


def test_pinned_cores_are_those_of_every_backend(tmp_path: Path) -> None:
    """By affinity outside containers, as a CPU set in them; without a word, whatever was set."""
    settings = load(Flags(pin="0-1,3"), folder=tmp_path)
    told = preparing.options(settings)
    assert ((0, 1, 3), "0-1,3") == (told.cores, told.containers.cpus)
    free = preparing.options(load(Flags(cpus="2"), folder=tmp_path))
    assert ((), "2") == (free.cores, free.containers.cpus)
