"""`stackrace list`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from orchestrator import log
from orchestrator.cli import options
from orchestrator.model import phrases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.catalogue import Catalogue, ListedEnvironment, ListedKnob, ListedPreset

WIDTH = 100


@click.command(
    "list",
    help="Show environments, presets, cases, knobs, arms and contrasts; your own ones too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def list_command(*, as_json: bool) -> int:
    """Run `stackrace list`; returns the exit code."""
    from orchestrator.config import Flags
    from orchestrator.model import codec
    from orchestrator.pipeline.catalogue import catalogue

    found = catalogue(options.configuration(Flags()))
    log.data(codec.encode(found).decode().rstrip() if as_json else render(found))
    return 0


def render(found: Catalogue) -> str:
    """The catalogue as text, without a line longer than 100 columns."""
    lines = ["Environments (name them in `stackrace run`; globs work: 'tf2*')"]
    lines += [
        f"  {row.identifier:<12} {row.title:<33} Python {row.python:<5} "
        f"default {row.native_mode:<6} {row.size_mb:>5} MB"
        for row in found.environments
    ]
    lines += _impossible(found.environments)
    lines += ["", "Presets (--preset NAME; jobs, time and disk for two environments)"]
    lines += [_preset(preset) for preset in found.presets]
    lines += [
        "",
        *textwrap.wrap(
            "Arms (--arm GLOB): " + ", ".join(found.arms), WIDTH, subsequent_indent=" " * 19
        ),
        "",
        "Cases (--case GLOB), as size/input/method; in a glob '*' crosses '/'",
        *_cases(found.cases),
        "",
        "Knobs (added to a case, each makes its own: --case 'small-small/numpy/fit+batch_size=64')",
        *(line for knob in found.knobs for line in _knob(knob)),
        "",
        *textwrap.wrap(
            "Contrasts (stackrace compare RUN --contrast KIND): " + ", ".join(found.contrasts),
            WIDTH,
            subsequent_indent="  ",
        ),
    ]
    return "\n".join(lines)


def _impossible(environments: Sequence[ListedEnvironment]) -> list[str]:
    """What cannot be run: each reason once, with everything that it is about."""
    about: dict[str, dict[str, list[str]]] = {}
    for row in environments:
        for rule in row.impossible:
            what, _, reason = rule.partition(": ")
            about.setdefault(reason, {}).setdefault(row.identifier, []).append(what)
    lines = ["", "What they cannot run"] if about else []
    for reason, rows in about.items():
        places: dict[str, list[str]] = {}
        for name, combinations in rows.items():
            places.setdefault(", ".join(combinations), []).append(name)
        told = "; ".join(f"{', '.join(names)}: not {what}" for what, names in places.items())
        lines += textwrap.wrap(
            f"{told}: {reason}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )
    return lines


def _preset(preset: ListedPreset) -> str:
    from orchestrator.report import words

    name = f"{preset.name}{' (default)' if preset.default else ''}"
    return (
        f"  {name:<16} {preset.summary}\n"
        f"  {'':<16} {phrases.count(preset.cases, 'case')}, "
        f"{phrases.count(preset.rounds, 'round')}, {phrases.count(preset.jobs, 'job')}, "
        f"about {words.roughly(preset.estimate_s)}, "
        f"{preset.disk_mb / 1000:.1f} GB of environments"
    )


def _knob(knob: ListedKnob) -> list[str]:
    values = f" ({', '.join(knob.choices)})" if knob.choices else ""
    return textwrap.wrap(
        f"{knob.name:<14} {knob.summary}{values}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent=" " * 17,
    )


def _cases(names: tuple[str, ...]) -> list[str]:
    """The grid by its axes: every size with every input and method."""
    axes = [
        dict.fromkeys(parts) for parts in zip(*(name.split("/") for name in names), strict=True)
    ]
    lines = []
    for title, values in zip(("sizes", "inputs", "methods"), axes, strict=True):
        lines += textwrap.wrap(
            f"{title:<8} {', '.join(values)}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent=" " * 11,
            break_on_hyphens=False,
        )
    return lines
