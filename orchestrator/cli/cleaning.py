"""`stackrace clean`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from orchestrator import log
from orchestrator.errors import UsageError
from orchestrator.model.phrases import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.environments.cleaning import Item
    from orchestrator.pipeline.cleaning import Kept

_MB = 1_000_000
_GB = 1000 * _MB
_DAY_S = 24 * 3600


@click.command(
    help="Show what stackrace keeps on this machine, and remove what you name.\n\n"
    "Environments, the locks of those that no row has, and images. An ENV is an identifier such "
    "as tf114, or a glob. Only what stackrace made is touched, and nothing that is in use."
)
@click.argument("environments", nargs=-1, metavar="[ENV...]")
@click.option("--older-than", metavar="AGE", help="Only what was not used for 30d, 12h, 2w.")
@click.option("--all", "everything", is_flag=True, help="Of every environment.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
def clean(
    *, environments: tuple[str, ...], older_than: str | None, everything: bool, dry_run: bool
) -> int:
    """Run `stackrace clean`; returns the exit code."""
    if everything and environments:
        raise UsageError("--all and names exclude each other.", fix="Leave one of them out.")
    from orchestrator.pipeline import cleaning

    kept = cleaning.look()
    if not (environments or older_than or everything):
        _show(kept)
        return 0
    chosen = cleaning.choose(kept, names=environments, older_than=older_than)
    if dry_run:
        log.data("\n".join([*_lines(chosen), f"{_items(chosen)} would be removed."]))
        return 0
    removed = cleaning.remove(kept, chosen)
    done = [one for one in removed if not one.kept]
    for one in removed:
        log.data(f"{one.item.name}  {f'kept: {one.kept}' if one.kept else 'removed'}")
    freed = sum(one.freed_bytes for one in done)
    log.data(f"{count(len(done), 'item')} removed, {_size(freed)} freed.")
    linked = sum(one.item.size_bytes for one in done) - freed
    if linked > _GB:
        log.talk(f"{_size(linked)} more are in uv's cache as well: `uv cache clean` removes that.")
    return 0


def _show(kept: Kept) -> None:
    if not kept.items:
        log.data(f"There is nothing in {kept.folder}, and no image of ours.")
        return
    name = kept.items[0].environment
    log.data("\n".join([*_lines(kept.items), _items(kept.items)]))
    if kept.engine is None:
        log.talk("No container engine answers: images are not among them.")
    log.talk(
        "Remove some with: stackrace clean "
        f"{name}\nold ones:         stackrace clean --older-than 30d\n"
        "all:              stackrace clean --all"
    )


def _lines(items: Sequence[Item]) -> list[str]:
    widest = max((len(item.name) for item in items), default=0)
    return [
        f"{item.name:<{widest}}  {_size(item.size_bytes):>8}  {_age(item.used):>9}  {item.title}"
        for item in items
    ]


def _items(items: Sequence[Item]) -> str:
    return f"{count(len(items), 'item')}, {_size(sum(item.size_bytes for item in items))}"


def _age(used: float) -> str:
    days = int(max(0, time.time() - used) // _DAY_S)
    return "today" if days == 0 else count(days, "day")


def _size(amount: int) -> str:
    if amount >= _GB:
        return f"{amount / _GB:.1f} GB"
    return f"{amount / _MB:.0f} MB" if amount >= _MB else f"{amount / 1000:.0f} kB"
