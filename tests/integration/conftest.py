"""Real environments, prepared once in the user's own cache: the first time takes minutes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from orchestrator import config, guest, log, matrix
from orchestrator import environments as stage
from orchestrator.environments.options import Options, Wanted
from orchestrator.environments.venv import VenvEnvironment
from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from pathlib import Path

# Set where nothing may be missing, such as in CI: what would be skipped then fails.
REQUIRE_ALL = "STACKRACE_REQUIRE_ALL"
# What this machine lacks, as opposed to what this program does wrong.
MISSING = ("There is no Python 3", "The package index could not be reached")


@pytest.fixture(scope="session")
def zipapp() -> Path:
    """The real guest."""
    return guest.build(config.cache_folder() / "guest").path


@pytest.fixture(scope="session")
def environments(zipapp: Path) -> dict[str, VenvEnvironment]:
    """The real tf114 and tf20 for the CPU."""
    return prepared(zipapp, "tf114", "tf20")


@pytest.fixture(scope="session")
def keras3(zipapp: Path) -> dict[str, VenvEnvironment]:
    """The real tf218 for the CPU: Keras 3, and tf_keras beside it."""
    return prepared(zipapp, "tf218")


def prepared(zipapp: Path, *names: str) -> dict[str, VenvEnvironment]:
    """Environments of these rows; skips the test where this machine cannot have them."""
    try:
        found = stage.prepare(
            [Wanted(row=row) for row in matrix.select(matrix.load(), names)],
            variant="cpu",
            guest=zipapp,
            options=Options(cache=config.cache_folder(), interpreters={}),
            say=log.talk,
        )
    except EnvironmentFailedError as error:
        told = f"{error.what}\n{error.why}"
        if os.environ.get(REQUIRE_ALL) == "1" or not any(text in told for text in MISSING):
            raise
        pytest.skip(told)
    return {name: made for name, made in found.items() if isinstance(made, VenvEnvironment)}
