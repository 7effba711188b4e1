"""`stackrace init`: an example to begin with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from orchestrator import log
from orchestrator.errors import UsageError

RESOURCES = Path(__file__).parents[1] / "resources" / "init"
EXAMPLES = {".py": "workload.py.txt", ".toml": "stackrace.toml"}
FIX = "Name a file in a folder where you may write."


@click.command(
    help="Write a commented example: of your own model as a workload [my_model.py], or, for a name "
    "that ends in .toml, of the settings in stackrace.toml. What exists is never overwritten.",
)
@click.argument("file", default="my_model.py", type=click.Path(path_type=Path))
def init(*, file: Path) -> int:
    """Run `stackrace init`; returns the exit code."""
    from orchestrator import store
    from orchestrator.config.file import FILE

    example = EXAMPLES.get(file.suffix)
    if example is None:
        raise UsageError(
            f"{file} ends in neither .py nor .toml.",
            fix=f"A workload is a file like my_model.py, settings stand in {FILE}.",
        )
    if not file.parent.is_dir():
        raise UsageError(f"There is no folder {file.parent}.", fix=FIX)
    raw = (RESOURCES / example).read_bytes()
    if not store.write_once(file, raw, fix=FIX):
        raise UsageError(f"{file} exists, and is never overwritten.", fix="Name another file.")
    words = ["--workload", str(file)] if file.suffix == ".py" else []
    if not words and file.name != FILE:
        log.warn(f"{file} is read where it is called {FILE}, in the folder of the command.")
    log.talk(f"Wrote {file}. Race it with:")
    log.data(shlex.join(["stackrace", "run", "tf114", "tf20", *words]))
    return 0
