"""What the documents promise is what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import orchestrator
from orchestrator import cli
from orchestrator.model import schemas

ROOT = Path(orchestrator.__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_published_schemas_are_current() -> None:
    """docs/schema holds what the types say; `nox -s docs` writes it again."""
    published = {path.name: path.read_text() for path in (ROOT / "docs" / "schema").iterdir()}
    assert schemas.files() == published


@pytest.mark.parametrize(
    "name", [name for name, c in cli.stackrace.commands.items() if not c.hidden]
)
def test_readme_shows_every_command(name: str) -> None:
    """Every command of the command line stands in the README."""
    assert f"stackrace {name}" in README


def test_readme_advertises_only_what_exists() -> None:
    """Every option that the README names belongs to a command."""
    known = {
        option
        for command in cli.stackrace.commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert set() == named - known - {"--from", "--spec"}  # uvx, pipx


def test_every_dependency_is_justified() -> None:
    """docs/dependencies.md has a line for each requirement of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *groups["lint"], *groups["tests"]]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    names = {re.split(r"[\[<>=]", line)[0] for line in wanted}
    lines = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert set() == {name for name in names if not re.search(rf"\b{name}\b", lines)}


def test_no_registry_host_or_machine_path_is_committed() -> None:
    """Locks and requirements name packages and hashes, never where they were fetched from."""
    for path in [*ROOT.glob("requirements*.txt"), *(ROOT / "orchestrator").rglob("*.txt")]:
        assert re.findall(r"https?://|file:|/(?:home|root)/", path.read_text()) == []
