"""`stackrace run` and `stackrace prepare`: what measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator import log
from orchestrator.cli import options
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.config import Flags

environments = click.argument("environments", nargs=-1, metavar="ENV...")
packages = click.option(
    "--with",
    "packages",
    multiple=True,
    metavar="PACKAGE",
    help="Add a package to every environment, such as pandas or 'scipy<1.5'; may be repeated.",
)


@click.command(
    help="Build environments, or find them in the cache.",
)
@environments
@packages
@options.where
def prepare(**flags: Any) -> int:  # noqa: ANN401 - the names are those of Flags' fields
    """Run `stackrace prepare`; returns the exit code."""
    from orchestrator.config import Flags

    settings = options.configuration(Flags(**flags))
    if not settings.environments:
        raise UsageError("Name an environment, such as tf114.", fix="`stackrace list` shows all.")
    from orchestrator.pipeline import preparing

    for identifier, environment in preparing.prepare(settings).items():
        lock = environment.lock_digest[:12]
        image = f"  image {environment.image_digest}" if environment.image_digest else ""
        log.data(f"{identifier}  Python {environment.python}  lock {lock}{image}")
    return 0


@click.command(
    help="Race environments: prepare, measure interleaved, say which is faster.\n\n"
    "An ENV is an identifier such as tf114, a glob such as 'tf2*', or any pair on the fly, "
    "such as tensorflow==2.9.1 or tensorflow==2.18.1+keras==3.6.0+python==3.12; the first "
    "is the reference. The same one twice races it against itself.",
)
@environments
@click.option("--preset", metavar="NAME", help="What to measure; `list` shows them [quick].")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="GLOB[@DEVICE][+KNOB=VALUE]",
    help="Only these cases, with these knobs; may be repeated.",
)
@click.option(
    "--arm", "arms", multiple=True, metavar="GLOB", help="Only these api/mode; may be repeated."
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE|FOLDER",
    help="Your own model instead of ours (`stackrace init`); several are compared.",
)
@packages
@click.option(
    "--same-weights",
    is_flag=True,
    help="Same weights in every arm; no verdict where outputs differ.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="After the rounds, profile each cell in a process of its own.",
)
@options.where
@click.option("--rounds", type=int, metavar="N", help="Processes of each cell [the preset's].")
@click.option(
    "--budget",
    type=options.Duration(),
    metavar="TIME",
    help="Add rounds as long as they fit into so much measuring, such as 30m; not with --rounds.",
)
@click.option(
    "--precision",
    type=options.Fraction("precision"),
    metavar="PERCENT",
    help="Add rounds until every interval is so narrow to either side; not with --rounds.",
)
@options.threshold
@options.reference
@click.option(
    "--max-job-seconds",
    type=options.Seconds(),
    metavar="S",
    help="Limit of one process after its first call; iterations are cut to fit [120].",
)
@click.option("--seed", type=int, metavar="N", help="Fixes the random order [drawn and stored].")
@options.results
@click.option(
    "--resume",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="Measure what this run folder lacks, by its own plan.",
)
def run(*, resume: Path | None, **given: Any) -> int:  # noqa: ANN401 - as in prepare
    """Run `stackrace run`; returns the exit code."""
    from orchestrator.config import Flags

    flags = Flags(**given)
    if resume is not None:
        _check_resume(flags)
    settings = options.configuration(flags)
    if resume is None and not settings.environments:
        raise UsageError(
            "Name the environments to race, such as: stackrace run tf114 tf20",
            fix="`stackrace list` shows them all.",
        )
    from orchestrator.pipeline import racing

    if resume is not None:
        hints = racing.Hints(more_rounds=None, resume=options.resume_command)
        return racing.resume(resume, settings, hints)
    hints = racing.Hints(more_rounds=options.more_rounds(), resume=options.resume_command)
    return racing.race(settings, hints)


def _check_resume(flags: Flags) -> None:
    """A resumed run keeps its own plan; only how long it may wait for a GPU may still be said."""
    from orchestrator.config import Flags

    if flags != Flags(wait_lock=flags.wait_lock):
        raise UsageError(
            "--resume goes on with a run as it was planned, and takes no other option.",
            fix="Leave the others out, or start a new run.",
        )


@click.command(
    hidden=True,
    help="Make the locks of the matrix again (`nox -s lock`).",
)
@click.argument("environments", nargs=-1)
def lock(*, environments: tuple[str, ...]) -> int:
    """Run `stackrace lock`; returns the exit code."""
    from orchestrator.config import Flags
    from orchestrator.pipeline import racing

    racing.lock(options.configuration(Flags(environments=environments or ("*",))))
    return 0
