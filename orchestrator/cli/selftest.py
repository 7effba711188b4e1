"""`stackrace selftest`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator.cli import options

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 6


@click.command(
    help="Show how small a difference this machine can see: ENV is raced against itself.\n\n"
    "A few short cases, about three minutes on a CPU. The machine's noise is kept, and stands in "
    "the reports of its runs; a run whose threshold is too small for it is told so beforehand.",
)
@click.argument("environment", metavar="ENV")
@click.option(
    "--rounds", type=int, metavar="N", help=f"Processes of each copy and case [{ROUNDS}]."
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="GLOB[+KNOB=VALUE]",
    help="These cases instead of the sample; may be repeated.",
)
@options.threshold
@options.device
@options.pin
@options.results
@click.option("--json", "as_json", is_flag=True, help="Print what it found as JSON.")
def selftest(
    *,
    environment: str,
    rounds: int | None,
    cases: tuple[str, ...],
    threshold: float | None,
    device: str | None,
    pin: str | None,
    results: Path | None,
    as_json: bool,
) -> int:
    """Run `stackrace selftest`; returns the exit code."""
    from orchestrator.config import DEFAULT_PRESET, Flags

    flags = Flags(
        environments=(environment,),
        preset=DEFAULT_PRESET,
        rounds=ROUNDS if rounds is None else rounds,
        cases=cases,
        threshold=threshold,
        device=device,
        pin=pin,
        results=results,
    )
    settings = options.configuration(flags)
    from orchestrator.pipeline import racing
    from orchestrator.pipeline import selftest as pipeline

    hints = racing.Hints(more_rounds=None, resume=options.resume_command, as_json=as_json)
    return pipeline.selftest(settings, hints)
