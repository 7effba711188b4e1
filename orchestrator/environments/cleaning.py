"""Removes what stackrace made and nobody uses: environments, locks of the user's own, images."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from orchestrator.environments import cache, images, reaping
from orchestrator.errors import UsageError, nearest
from orchestrator.model.container import MARK, RefusedError
from orchestrator.store import NAME_CACHE, storage_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.environments.cache import Slot
    from orchestrator.model.container import Engine, Image

_DAY_S = 24 * 3600.0


@dataclass(frozen=True, kw_only=True)
class Item:
    """Something that carries our mark. `used`: seconds since 1970 of its last use, or making."""

    kind: Literal["environment", "lock", "image", "cache"]
    environment: str
    name: str
    title: str
    size_bytes: int
    used: float
    path: Path | None = None
    image: Image | None = None


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What became of one item: `kept` says why it is still there."""

    item: Item
    freed_bytes: int = 0
    kept: str = ""


def every(folder: Path, engine: Engine | None) -> tuple[Item, ...]:
    """All there is, in the cache folder and at the engine; nothing without our mark."""
    found = [*_environments(folder), *_locks(folder), *_caches(folder)]
    if engine is not None:
        found += [*_images(engine), *_volumes(engine)]
    return tuple(found)


def choose(
    items: Sequence[Item],
    *,
    names: Sequence[str] = (),
    older_than_s: float = 0.0,
    now: float | None = None,
) -> tuple[Item, ...]:
    """Those of the named environments (identifiers, globs; none: of all) not used for so long.

    Raises UsageError for a name that nothing has.
    """
    known = sorted({item.environment for item in items})
    for name in names:
        if not any(fnmatchcase(environment, name) for environment in known):
            raise UsageError(
                f"There is nothing of {name!r} to remove. {nearest(name, known)}".rstrip(),
                fix="`stackrace clean` shows what there is.",
            )
    moment = time.time() if now is None else now
    return tuple(
        item
        for item in items
        if moment - item.used >= older_than_s
        and (not names or any(fnmatchcase(item.environment, name) for name in names))
    )


def remove(items: Sequence[Item], *, folder: Path, engine: Engine | None) -> tuple[Removed, ...]:
    """Remove them, except for what is in use; rests of dead builds go as well."""
    cache.sweep(folder / "environments")
    busy: set[str] = set()
    done = []
    # Environments first: an image is made of one, and is used by those who use that.
    for item in sorted(items, key=lambda item: item.kind != "environment"):
        if item.image is not None and engine is not None:
            removed = _remove_image(item, item.image, engine, folder)
        elif item.kind == "environment":
            removed = _remove_environment(item, folder)
        elif item.kind == "cache":
            removed = _remove_cache(item, engine)
        else:
            removed = _remove_lock(item, busy)
        if removed.kept:
            busy.add(item.environment)
        done.append(removed)
    return tuple(done)


def slots(folder: Path) -> Iterator[Slot]:
    """The finished environments in a cache folder. Links are none: they lead out of it."""
    place = folder / "environments"
    if not place.is_dir() or not place.resolve().is_relative_to(folder.resolve()):
        return
    for entry in sorted(place.iterdir()):
        slot = cache.Slot(name=entry.name, environments=place, logs=folder / "logs")
        if not entry.name.startswith(".") and not entry.is_symlink() and slot.made() is not None:
            yield slot


def size(folder: Path) -> tuple[int, int]:
    """Bytes on disk below a folder: all, and those that its removal frees.

    Files that uv's cache links to as well stay on the disk.
    """
    links: dict[tuple[int, int], tuple[int, int, int]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found = (Path(place) / name).lstat()
                key = (found.st_dev, found.st_ino)
                seen = links.get(key, (0, 0, 0))[0]
                links[key] = (seen + 1, found.st_nlink, found.st_blocks * 512)
    return (
        sum(size for _, _, size in links.values()),
        sum(size for seen, links_of, size in links.values() if seen >= links_of),
    )


def _environments(folder: Path) -> Iterator[Item]:
    for slot in slots(folder):
        made = slot.made()
        if made is not None:
            yield Item(
                kind="environment",
                environment=slot.name.rsplit("-", 2)[0],
                name=slot.name,
                title=f"{made.title}, Python {made.python}",
                size_bytes=size(slot.folder)[0],
                used=_used(slot),
                path=slot.folder,
            )


def _locks(folder: Path) -> Iterator[Item]:
    place = folder / "locks"
    if not place.is_dir() or not place.resolve().is_relative_to(folder.resolve()):
        return
    for path in sorted(place.glob("*-*-*.txt")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            yield Item(
                kind="lock",
                environment=path.stem.rsplit("-", 2)[0],
                name=path.name,
                title="lock",
                size_bytes=path.stat().st_size,
                used=path.stat().st_mtime,
                path=path,
            )


def _images(engine: Engine) -> Iterator[Item]:
    for image in images.ours(engine):
        environment = image.labels.get(f"{MARK}.environment", "")
        yield Item(
            kind="image",
            environment=environment,
            name=image.tags[0] if image.tags else image.id,
            title="image",
            size_bytes=image.size_bytes,
            used=image.created,
            image=image,
        )


def _caches(folder: Path) -> Iterator[Item]:
    """CUDA caches of interpreters that are not ours, and of environments that are gone."""
    place = folder / cache.CUDA
    if not place.is_dir() or not place.resolve().is_relative_to(folder.resolve()):
        return
    ours = {slot.name for slot in slots(folder)}
    for path in sorted(place.glob("*-*-*")):
        if path.is_dir() and not path.is_symlink() and path.name not in ours:
            yield Item(
                kind="cache",
                environment=path.name.rsplit("-", 2)[0],
                name=path.name,
                title="CUDA cache",
                size_bytes=size(path)[0],
                used=path.stat().st_mtime,
                path=path,
            )


def _volumes(engine: Engine) -> Iterator[Item]:
    """CUDA caches of images that are not ours, or gone; what they hold, Docker does not tell."""
    ours = {image.id for image in images.ours(engine)}
    for volume in engine.volumes():
        if reaping.KEEP in volume.labels and volume.labels.get(reaping.IMAGE) not in ours:
            yield Item(
                kind="cache",
                environment=volume.labels.get(reaping.ENVIRONMENT, ""),
                name=volume.id,
                title="CUDA cache, a volume of Docker's",
                size_bytes=0,
                used=volume.created,
            )


def _used(slot: Slot) -> float:
    try:
        return slot.use_mark.stat().st_mtime
    except OSError:  # made by an older stackrace
        return slot.folder.stat().st_mtime


def _remove_environment(item: Item, folder: Path) -> Removed:
    slot = cache.Slot(name=item.name, environments=folder / "environments", logs=folder / "logs")
    with storage_errors(slot.folder, fix=NAME_CACHE), slot.unused() as unused:
        if not unused:
            return Removed(item=item, kept="in use")
        freed = size(slot.folder)[1]
        # Under this name the next command removes it, should this one be killed meanwhile.
        doomed = slot.environments / f".{slot.name}.{uuid4().hex}.tmp"
        slot.folder.rename(doomed)
        shutil.rmtree(doomed)
        slot.log.unlink(missing_ok=True)
        compiled = folder / cache.CUDA / slot.name
        freed += size(compiled)[1]
        shutil.rmtree(compiled, ignore_errors=True)
    return Removed(item=item, freed_bytes=freed)


def _remove_cache(item: Item, engine: Engine | None) -> Removed:
    if item.path is not None:
        with storage_errors(item.path, fix=NAME_CACHE):
            shutil.rmtree(item.path)
    elif engine is not None:
        try:
            engine.remove_volume(item.name)
        except RefusedError as error:  # a container has it
            return Removed(item=item, kept=error.message)
    return Removed(item=item, freed_bytes=item.size_bytes)


def _remove_lock(item: Item, busy: set[str]) -> Removed:
    if item.environment in busy:
        return Removed(item=item, kept="in use")
    if item.path is not None:
        with storage_errors(item.path, fix=NAME_CACHE):
            item.path.unlink(missing_ok=True)
    return Removed(item=item, freed_bytes=item.size_bytes)


def _remove_image(item: Item, image: Image, engine: Engine, folder: Path) -> Removed:
    with ExitStack() as stack:
        for slot in slots(folder):
            same = slot.name.rsplit("-", 2)[0] == item.environment
            if same and not stack.enter_context(slot.unused()):
                return Removed(item=item, kept="in use")
        try:
            images.remove(engine, [image])  # the engine itself refuses while a container runs
        except RefusedError as error:
            return Removed(item=item, kept=error.message)
    return Removed(item=item, freed_bytes=item.size_bytes)
