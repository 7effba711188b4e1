"""`stackrace doctor`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import click

from orchestrator import log
from orchestrator.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from orchestrator.model.health import Health, HealthCell, Level
    from orchestrator.model.names import Backend

# What is in an environment that somebody else made is found out when it is raced.
BACKENDS: tuple[Backend, ...] = ("venv", "container")
STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "cannot": "red"}


@click.command(
    help="Show what this machine can run, and the exact line that mends what it cannot.\n\n"
    "Nothing is installed or changed. Exit code 5 when an ENV that was named cannot run.",
)
@click.argument("environments", nargs=-1, metavar="[ENV...]")
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    help="Only environments that are isolated so [venv and container].",
)
@click.option("--device", metavar="cpu,gpu", help="Only these devices; every one is asked for.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def doctor(
    *,
    environments: tuple[str, ...],
    backend: Backend | None,
    device: str | None,
    as_json: bool,
) -> int:
    """Run `stackrace doctor`; returns the exit code."""
    from orchestrator.config import Flags
    from orchestrator.model import codec
    from orchestrator.pipeline import health

    settings = options.configuration(
        Flags(environments=environments, backend=backend, device=device)
    )

    backends: tuple[Backend, ...] = (backend,) if backend else BACKENDS
    found = health.examine(settings, backends=backends)
    if as_json:
        log.data(codec.encode(found).decode().rstrip())
    else:
        log.data(render(found, width=log.width(), colour=log.shows_colour()))
    return found.exit_code


def render(found: Health, *, width: int = 100, colour: bool = False) -> str:
    """The answer as text: the machine, then every environment, then what mends it."""
    from rich.console import Console

    page = io.StringIO()
    console = Console(
        file=page, width=width, force_terminal=colour, no_color=not colour, highlight=False
    )
    _checks(console, found)
    _cells(console, found)
    _reasons(console, found)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).rstrip()


def _checks(console: Console, found: Health) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in found.checks:
        level = "" if check.level == "ok" else check.level
        table.add_row(Text(check.subject), Text(level, style=STYLES[check.level]), Text(check.text))
        if check.fix and check.level != "ok":
            table.add_row("", "", Text(f"-> {check.fix}"))
    console.print(table)


def _cells(console: Console, found: Health) -> None:
    from rich.table import Table
    from rich.text import Text

    rows: dict[str, dict[str, HealthCell]] = {}
    for cell in found.cells:
        rows.setdefault(cell.environment, {})[f"{cell.backend} {cell.device}"] = cell
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("environment", *dict.fromkeys(name for cells in rows.values() for name in cells)):
        table.add_column(name, no_wrap=True)
    for environment, cells in rows.items():
        words = [Text(cell.level, style=STYLES[cell.level]) for cell in cells.values()]
        table.add_row(environment, *words)
    console.print()
    console.print(table)


def _reasons(console: Console, found: Health) -> None:
    """Each reason once, with everything that it holds for."""
    from rich.padding import Padding
    from rich.text import Text

    reasons: dict[tuple[Level, str, str], list[HealthCell]] = {}
    for cell in found.cells:
        if cell.reason:
            reasons.setdefault((cell.level, cell.reason, cell.fix), []).append(cell)
    for (level, reason, fix), cells in reasons.items():
        console.print()
        console.print(Text(f"{level}: {reason}.", style=STYLES[level]))
        console.print(Padding(Text(_named(cells)), (0, 0, 0, 2)))
        if fix:
            console.print(Padding(Text(f"-> {fix}"), (0, 0, 0, 2)))


def _named(cells: list[HealthCell]) -> str:
    """`venv, gpu: tf114, tf115`."""
    groups: dict[str, list[str]] = {}
    for cell in cells:
        groups.setdefault(cell.environment, []).append(f"{cell.backend} {cell.device}")
    places: dict[str, list[str]] = {}
    for environment, where in groups.items():
        places.setdefault(", ".join(where), []).append(environment)
    return "; ".join(f"{', '.join(names)} ({where})" for where, names in places.items())
