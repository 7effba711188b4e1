"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec, get_args

import click

from orchestrator.errors import UsageError
from orchestrator.model.names import Backend

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from orchestrator.config import Config, Flags

P = ParamSpec("P")

# Set by noxfile.py to the sessions that it ran, so that hints name the command the user knows.
NOX_SESSIONS = "STACKRACE_NOX_SESSIONS"


@contextmanager
def _usage(
    kind: click.ParamType[float], param: click.Parameter | None, ctx: click.Context | None
) -> Generator[None]:
    """Tell what a parser refuses as click tells of an option, with how to write it."""
    try:
        yield
    except UsageError as error:
        kind.fail(f"{error.what} {error.fix or ''}".rstrip(), param, ctx)


class Fraction(click.ParamType[float]):
    """`2%` or `0.02`: a threshold, or a precision."""

    name = "fraction"

    def __init__(self, what: Literal["threshold", "precision"]) -> None:
        self.what = what

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The fraction; a usage failure says how to write one."""
        from orchestrator.config import parse_precision, parse_threshold

        parse = parse_precision if self.what == "precision" else parse_threshold
        with _usage(self, param, ctx):
            return parse(str(value))


class Duration(click.ParamType[float]):
    """`90s`, `30m`, `2h`, `1h30m`."""

    name = "duration"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; a usage failure says how to write them."""
        from orchestrator.config import parse_duration

        with _usage(self, param, ctx):
            return parse_duration(str(value))


class Seconds(click.ParamType[float]):
    """`120`, or as a duration: `90s`, `2m`."""

    name = "seconds"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; a usage failure says how to write them."""
        from orchestrator.config import parse_seconds

        with _usage(self, param, ctx):
            return parse_seconds(value, "number of seconds")


threshold = click.option(
    "--threshold",
    type=Fraction("threshold"),
    metavar="PERCENT",
    help="Smaller differences do not matter to you [2%; of a recorded run: its own].",
)
reference = click.option(
    "--reference",
    metavar="ENV|ARM",
    help="What the others are compared with [the first environment; of a recorded run: its own].",
)
results = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where run folders go [$STACKRACE_RESULTS, else results].",
)
device = click.option(
    "--device",
    metavar="cpu,gpu",
    help="Where models run; both races one against the other [the GPU if every arm can].",
)
pin = click.option(
    "--pin",
    metavar="CORES",
    help="Bind workers to these cores, such as 0-3 or 0,2; the host keeps off them.",
)
_WHERE = (
    click.option(
        "--backend",
        type=click.Choice(get_args(Backend)),
        help="How environments are isolated [venv].",
    ),
    click.option(
        "--python",
        "pythons",
        multiple=True,
        metavar="NAME=PATH",
        help="An interpreter of yours as the environment NAME; nothing is installed into it.",
    ),
    click.option(
        "--image",
        "images",
        multiple=True,
        metavar="[NAME=]REF",
        help="Somebody's image as the environment NAME, run as it is.",
    ),
    device,
    click.option(
        "--gpus",
        metavar="auto|all|INDEX,...|UUID,...",
        help="Which GPUs may be used [auto: one that is free].",
    ),
    click.option(
        "--wait-lock",
        type=Seconds(),
        metavar="S",
        help="Wait so long for a GPU that another run holds [0].",
    ),
    pin,
    click.option("--memory", metavar="SIZE", help="Memory limit of a job's container, such as 8g."),
    click.option("--cpus", metavar="SET", help="CPU set of a job's container, such as 0-3."),
    click.option("--shm-size", metavar="SIZE", help="Shared memory of a job's container."),
)


def where(command: Callable[P, int]) -> Callable[P, int]:
    """Add the options that say where environments come from and where models run."""
    for option in reversed(_WHERE):
        command = option(command)
    return command


runs = click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN...")


def configuration(flags: Flags) -> Config:
    """The configuration of this command, read from where it was started."""
    from orchestrator.config import load

    return load(flags, variables=os.environ)


def more_rounds(words: Sequence[str] | None = None) -> Callable[[int], str]:
    """How the user repeats the command with a number of rounds, whichever way they came."""
    own = list(sys.argv[1:] if words is None else words)
    kept = own
    for option in ("--rounds", "--budget", "--precision"):
        kept = _without(kept, option)
    sessions = os.environ.get(NOX_SESSIONS, "").split()

    def command(rounds: int) -> str:
        if not sessions:
            return shlex.join(["stackrace", *kept, "--rounds", str(rounds)])
        # nox hands over `run`, an ENV for each bench session, then what stands behind `--`.
        entered = [name for name in sessions if name.startswith("bench-")]
        behind = kept[1 + len(entered) :]
        return shlex.join(["nox", "-s", *sessions, "--", *behind, "--rounds", str(rounds)])

    return command


def resume_command(path: Path) -> str:
    """How the user goes on with a run that was cut."""
    start = ["nox", "-s", "race", "--"] if os.environ.get(NOX_SESSIONS) else ["stackrace", "run"]
    return shlex.join([*start, "--resume", str(path)])


def _without(words: Sequence[str], option: str) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != option and not word.startswith(f"{option}="):
            kept.append(word)
        skip = word == option
    return kept
