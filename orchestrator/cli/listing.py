"""`stackrace list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator import log
from orchestrator.model import codec
from orchestrator.report import words

if TYPE_CHECKING:
    from orchestrator.model.catalogue import Catalogue, ListedPreset


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def list_command(*, as_json: bool) -> int:
    """Show environments, presets, cases, arms and contrasts."""
    from orchestrator.pipeline.catalogue import catalogue

    found = catalogue()
    log.data(codec.encode(found).decode().rstrip() if as_json else render(found))
    return 0


def render(found: Catalogue) -> str:
    """The catalogue as text, without a line longer than 100 columns."""
    lines = ["Environments (name them in `stackrace run`; globs work: 'tf2*')"]
    for row in found.environments:
        lines.append(
            f"  {row.identifier:<7} TensorFlow {row.tensorflow:<7} Keras {row.keras:<6} "
            f"Python {row.python}  default {row.native_mode:<6} {row.size_mb:>5} MB"
        )
        lines += [f"          not: {reason}" for reason in dict.fromkeys(row.impossible)]
    lines += ["", "Presets (--preset NAME; jobs, time and disk for two environments)"]
    lines += [_preset(preset) for preset in found.presets]
    lines += [
        "",
        "Arms (--arm GLOB): " + ", ".join(found.arms),
        "",
        "Cases (--case GLOB; model-data/input/method, '*' crosses '/')",
        *_columns(found.cases, 3),
        "",
        "Contrasts (stackrace compare RUN --contrast KIND): " + ", ".join(found.contrasts),
    ]
    return "\n".join(lines)


def _preset(preset: ListedPreset) -> str:
    name = f"{preset.name}{' (default)' if preset.default else ''}"
    return (
        f"  {name:<16} {preset.summary}\n"
        f"  {'':<16} {words.count(preset.cases, 'case')}, {words.count(preset.rounds, 'round')}, "
        f"{words.count(preset.jobs, 'job')}, about {words.roughly(preset.estimate_s)}, "
        f"{preset.disk_mb / 1000:.1f} GB of environments"
    )


def _columns(names: tuple[str, ...], count: int) -> list[str]:
    width = max(map(len, names)) + 2
    rows = [names[start : start + count] for start in range(0, len(names), count)]
    return ["  " + "".join(f"{name:<{width}}" for name in row).rstrip() for row in rows]
