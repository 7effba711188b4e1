"""What the doctor says of a machine, in plain words, whatever the numbers are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orchestrator import doctor, gpus, matrix
from orchestrator.model.health import EngineFact, Facts
from tests.fakes import nvml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.health import Check

ROWS = matrix.load().rows
AWAY = EngineFact(
    place="tcp://gpu-host.example:2376", machine="x86_64", nvidia=True, elsewhere=True
)


def said(names: Sequence[str], **facts: Any) -> dict[str, Check]:  # noqa: ANN401
    """The checks of these environments on the CPU, by subject."""
    rows = [ROWS[name] for name in names]
    return {item.subject: item for item in doctor.checks(rows, ["cpu"], Facts(**facts))}


@pytest.mark.parametrize(
    ("names", "text"), [(["tf114"], "it is there"), (["tf114", "tf20"], "all 2 are there")]
)
def test_locks_that_are_there(names: list[str], text: str) -> None:
    """One lock is not `all 1`."""
    locks = frozenset(f"{name}-cpu" for name in names)
    assert text == said(names, locks=locks)["locks"].text


@pytest.mark.parametrize(
    ("names", "made", "text"),
    [
        ([], [], "/cache has 100 GB free"),
        (["tf114"], ["tf114-cpu"], "/cache has 100 GB free, and 1 of 1 environment made"),
        (
            ["tf114", "tf20"],
            ["tf114-cpu"],
            (
                "/cache has 100 GB free, and 1 of 2 environments made; what is missing takes about "
                f"{ROWS['tf20'].size_mb['cpu'] / 1000:.1f} GB"
            ),
        ),
    ],
)
def test_disk(names: list[str], made: list[str], text: str) -> None:
    """Nothing is counted where nothing could be made."""
    found = said(names, made=frozenset(made), cache="/cache", free_bytes=10**11)
    assert text == found["disk"].text


def test_engine_on_another_machine() -> None:
    """Its GPUs cannot be seen from here, so no container gets one, whatever GPUs are here."""
    here = Facts(engine=AWAY, gpus=gpus.find(nvml.FakeNvml(nvml.h200())))
    (cell,) = doctor.cells([ROWS["tf218"]], ["gpu"], ["container"], here)
    assert ("cannot", True) == (cell.level, cell.lasting)
    assert "Docker Engine at tcp://gpu-host.example:2376 is on another machine" in cell.reason
    assert "warning" == said(["tf218"], engine=AWAY)["Docker GPUs"].level
    (venv,) = doctor.cells([ROWS["tf218"]], ["gpu"], ["venv"], here)
    assert "another machine" not in venv.reason
