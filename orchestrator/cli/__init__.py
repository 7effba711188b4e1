"""The command line. Commands import what they need when they run: `--help` stays quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator import __version__
from orchestrator.cli import beginning, cleaning, doctor, listing, racing, reading, selftest
from orchestrator.errors import StackraceError, UsageError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence


class Commands(click.Group):
    """A group that keeps the order of definition and names the nearest command."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All commands, as they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; UsageError names the nearest one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            shown = [known for known, command in self.commands.items() if not command.hidden]
            raise UsageError(f"There is no command {name!r}. {nearest(name, shown)}")
        return super().resolve_command(ctx, args)


HELP = """\
Is my model slower on another TensorFlow/Keras version, in which configuration, by how much,
and how sure are we? stackrace builds one environment per version pair, races them interleaved
on this machine, and says what the timings show.

\b
stackrace run tf114 tf20          which is faster, and how surely
stackrace list                    environments, presets, cases
stackrace init                    an example of your own model to begin with
"""


# Here and in every command the text is given as `help`: PYTHONOPTIMIZE=2 drops docstrings.
@click.group(
    cls=Commands,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="stackrace")
def stackrace() -> None:
    """Run the group itself: its options are all that it does."""


for command in (
    beginning.init,
    listing.list_command,
    doctor.doctor,
    racing.prepare,
    cleaning.clean,
    racing.run,
    reading.status,
    reading.merge,
    reading.compare,
    reading.report,
    selftest.selftest,
    racing.lock,
):
    stackrace.add_command(command)


def main(words: Sequence[str]) -> int:
    """Run one command line and return its exit code; StackraceError for what a user can cause."""
    _refuse_empty(words)
    try:
        code = stackrace.main(args=list(words), prog_name="stackrace", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort as abort:  # how click hands on a signal
        raise abort.__cause__ or abort from None
    except SystemExit:  # how click ends when the reader of its help has gone (`| head`)
        return 0
    except click.exceptions.NoArgsIsHelpError as error:
        raise _no_command(error) from error
    except click.ClickException as error:
        raise UsageError(_sentence(error)) from error
    return code if isinstance(code, int) else 0


def _refuse_empty(words: Sequence[str]) -> None:
    """An unset variable of a script must not pass for the default of an option."""
    for before, word in zip(["", *words], words, strict=False):
        if word == "":
            option = before if before.startswith("--") else "An argument"
            raise UsageError(f"{option} is empty.", fix="Give it a value, or leave it out.")
        if word.startswith("--") and word.endswith("="):
            raise UsageError(f"{word[:-1]} is empty.", fix="Give it a value, or leave it out.")


def _no_command(error: click.exceptions.NoArgsIsHelpError) -> StackraceError:
    return UsageError("Name a command.", fix=error.format_message())


def _sentence(error: click.ClickException) -> str:
    """Click's message on one line."""
    return " ".join(error.format_message().split())
