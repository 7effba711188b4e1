"""`stackrace status`, `merge`, `compare` and `report`: what reads recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator import log
from orchestrator.cli import options
from orchestrator.errors import UsageError
from orchestrator.model.names import CONTRASTS

if TYPE_CHECKING:
    from orchestrator.model.names import ContrastKind

as_json = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


@click.command(
    help="Show how far a run is, and how its jobs ended.",
)
@click.argument("run", type=click.Path(path_type=Path))
@as_json
def status(*, run: Path, as_json: bool) -> int:
    """Run `stackrace status`; returns the exit code."""
    from orchestrator.model import codec
    from orchestrator.pipeline import reading

    found = reading.status(run)
    log.data(codec.encode(found).decode().rstrip() if as_json else reading.status_text(found))
    return 0


@click.command(
    help="Merge runs into one table: one row a job, raw values included.",
)
@options.runs
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A .parquet, .csv or .json file.",
)
def merge(*, runs: tuple[Path, ...], output: Path) -> int:
    """Run `stackrace merge`; returns the exit code."""
    from orchestrator.pipeline import reading

    rows = reading.merge_to(_named(runs), output)
    log.talk(f"{rows} rows in {output}")
    return 0


@click.command(
    help="Give the verdict on recorded runs.",
)
@options.runs
@options.reference
@options.threshold
@click.option(
    "--contrast",
    "kinds",
    multiple=True,
    type=click.Choice(CONTRASTS),
    metavar="KIND",
    help="Only this kind of contrast; may be repeated.",
)
@as_json
def compare(
    *,
    runs: tuple[Path, ...],
    reference: str | None,
    threshold: float | None,
    kinds: tuple[ContrastKind, ...],
    as_json: bool,
) -> int:
    """Run `stackrace compare`; returns the exit code."""
    from orchestrator.model import codec
    from orchestrator.pipeline import reading

    found = reading.compare(_named(runs), reference=reference, threshold=threshold, kinds=kinds)
    log.data(codec.encode(found.comparison).decode().rstrip() if as_json else found.text)
    return found.exit_code


@click.command(
    help="Write the report on recorded runs, and print it. Without a RUN: on the newest.",
)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN...]")
@click.option(
    "--format",
    "formats",
    default="md",
    metavar="LIST",
    help="Of md, csv, json, parquet; comma-separated [md].",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the files go [the run's own folder; of several runs, say where].",
)
@options.reference
@options.threshold
@options.results
def report(
    *,
    runs: tuple[Path, ...],
    formats: str,
    output: Path | None,
    reference: str | None,
    threshold: float | None,
    results: Path | None,
) -> int:
    """Run `stackrace report`; returns the exit code."""
    from orchestrator.config import Flags
    from orchestrator.pipeline import reading

    if not runs:
        runs = (reading.newest(options.configuration(Flags(results=results)).results),)
    found = reading.report(
        runs,
        formats=formats.split(","),
        output=output,
        reference=reference,
        threshold=threshold,
    )
    log.data(found.text)
    for path in found.files:
        log.talk(f"wrote {path}")
    return found.exit_code


def _named(runs: tuple[Path, ...]) -> tuple[Path, ...]:
    if not runs:
        raise UsageError("Name a run folder, such as results/<run-id>.")
    return runs
