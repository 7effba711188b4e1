"""Cleaning removes what stackrace made and nobody uses, and nothing else."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import filelock
import pytest

from orchestrator.environments import cache, cleaning
from orchestrator.errors import UsageError
from orchestrator.model import codec
from orchestrator.model.container import Found, Image, RefusedError
from orchestrator.pipeline.cleaning import parse_age

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 24 * 3600.0


@dataclass
class FakeEngine:
    """Images that carry our mark."""

    found: list[Image] = field(default_factory=list)
    refuses: str = ""
    kept: list[Found] = field(default_factory=list)

    def close(self) -> None:
        """Nothing is open."""

    def images(self) -> list[Image]:
        """Every image."""
        return list(self.found)

    def volumes(self) -> list[Found]:
        """Those that were not removed."""
        return list(self.kept)

    def remove_volume(self, name: str) -> None:
        """Forget a volume."""
        self.kept = [one for one in self.kept if one.id != name]

    def remove_image(self, image: str) -> None:
        """Forget an image, or refuse to."""
        if self.refuses:
            raise RefusedError(self.refuses, status=409)
        self.found = [one for one in self.found if one.id != image]


def image(environment: str) -> Image:
    """An image of ours."""
    labels = {"stackrace": "image", "stackrace.environment": environment}
    return Image(id=f"sha256:{environment}", labels=labels, size_bytes=5000)


def made(folder: Path, name: str, *, days: float = 0.0) -> Path:
    """A finished environment of 10 kB that was used so many days ago."""
    place = folder / "environments" / name
    (place / "bin").mkdir(parents=True)
    (place / "lib").write_bytes(b"x" * 10_000)
    manifest = cache.Manifest(
        title="TensorFlow 1.14.0",
        python="3.7.16",
        build="",
        variant="cpu",
        lock_digest="0",
        packages={},
    )
    (place / "stackrace.json").write_bytes(codec.encode(manifest))
    mark = folder / "environments" / f".{name}.use"
    mark.touch()
    moment = time.time() - days * DAY_S
    os.utime(mark, (moment, moment))
    return place


def names(items: tuple[cleaning.Item, ...]) -> list[str]:
    """What they are called."""
    return [item.name for item in items]


def test_only_what_carries_our_mark_is_found(tmp_path: Path) -> None:
    """Other folders, links out of the cache and somebody else's images are not among them."""
    made(tmp_path, "tf114-cpu-0123")
    (tmp_path / "environments" / "mine").mkdir()
    elsewhere = made(tmp_path / "elsewhere", "tf20-cpu-0123")
    (tmp_path / "environments" / "tf20-cpu-0123").symlink_to(elsewhere)
    engine = FakeEngine(found=[image("tf114"), Image(id="sha256:x", labels={"other": ""})])
    found = cleaning.every(tmp_path, engine)  # type: ignore[arg-type]
    assert ["tf114-cpu-0123", "sha256:tf114"] == names(found)


def test_a_linked_environments_folder_is_left_alone(tmp_path: Path) -> None:
    """Nothing outside the cache folder is ever removed."""
    made(tmp_path / "elsewhere", "tf114-cpu-0123")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "environments").symlink_to(tmp_path / "elsewhere" / "environments")
    assert () == cleaning.every(tmp_path / "cache", None)


def test_they_are_chosen_by_name_and_age(tmp_path: Path) -> None:
    """Names are identifiers or globs, and not a part of another name; ages count from use."""
    for name, days in (("tf114-cpu-0", 40), ("tf20-cpu-0", 5), ("tf20-gpu-0", 40)):
        made(tmp_path, name, days=days)
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "tf2.9.1-cpu-0.txt").write_text("numpy==1\n")
    items = cleaning.every(tmp_path, None)
    assert ["tf20-cpu-0", "tf20-gpu-0"] == names(cleaning.choose(items, names=["tf20"]))
    assert ["tf2.9.1-cpu-0.txt"] == names(cleaning.choose(items, names=["tf2.*"]))
    old = cleaning.choose(items, older_than_s=30 * DAY_S)
    assert ["tf114-cpu-0", "tf20-gpu-0"] == names(old)
    assert 4 == len(cleaning.choose(items))
    with pytest.raises(UsageError, match="nothing of 'tf2' to remove"):
        cleaning.choose(items, names=["tf2"])


def test_what_is_removed_is_gone_and_counted(tmp_path: Path) -> None:
    """An environment goes with its rests; what uv's cache links to as well is not freed."""
    place = made(tmp_path, "tf114-cpu-0")
    (place / "shared").write_bytes(b"x" * 50_000)
    (tmp_path / "uv").hardlink_to(place / "shared")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (place / "link").symlink_to(outside)
    (tmp_path / "environments" / ".tf20-cpu-0.1.tmp").mkdir()
    (item,) = cleaning.every(tmp_path, None)
    (removed,) = cleaning.remove([item], folder=tmp_path, engine=None)
    assert "" == removed.kept
    assert 10_000 <= removed.freed_bytes < 50_000 < item.size_bytes
    assert not [path for path in (tmp_path / "environments").iterdir() if path.is_dir()]
    assert (outside / "kept").exists()


def test_what_is_in_use_is_kept(tmp_path: Path) -> None:
    """A race or a build holds its environment; its image and lock stay as well."""
    place = made(tmp_path, "tf114-cpu-0")
    (tmp_path / "locks").mkdir()
    lock = tmp_path / "locks" / "tf114-cpu-0.txt"
    lock.touch()
    engine = FakeEngine(found=[image("tf114")])
    items = cleaning.every(tmp_path, engine)  # type: ignore[arg-type]
    slot = cache.Slot(
        name="tf114-cpu-0", environments=tmp_path / "environments", logs=tmp_path / "logs"
    )
    slot.use()
    done = cleaning.remove(items, folder=tmp_path, engine=engine)  # type: ignore[arg-type]
    os.close(cache._uses.pop())
    assert ["in use"] * 3 == [one.kept for one in done]
    with filelock.FileLock(tmp_path / "environments" / ".tf114-cpu-0.lock"):
        done = cleaning.remove(items, folder=tmp_path, engine=engine)  # type: ignore[arg-type]
    assert ["in use"] * 3 == [one.kept for one in done]
    assert place.exists()
    assert lock.exists()
    done = cleaning.remove(items, folder=tmp_path, engine=engine)  # type: ignore[arg-type]
    assert [""] * 3 == [one.kept for one in done]
    assert [] == engine.found


def test_an_image_that_the_engine_keeps_is_told(tmp_path: Path) -> None:
    """A container that runs in an image keeps it; the engine's own words say so."""
    engine = FakeEngine(found=[image("tf114")], refuses="image is being used by a container")
    items = cleaning.every(tmp_path, engine)  # type: ignore[arg-type]
    (done,) = cleaning.remove(items, folder=tmp_path, engine=engine)  # type: ignore[arg-type]
    assert "image is being used by a container" == done.kept


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * DAY_S), ("12h", 43200), ("2w", 14 * DAY_S)]
)
def test_ages(text: str, seconds: float) -> None:
    """Hours, days and weeks."""
    assert seconds == parse_age(text)


@pytest.mark.parametrize("text", ["30", "d", "-1d", "1y", "\u0663d\u0663"])
def test_other_ages_are_refused(text: str) -> None:
    """Anything else is a usage error."""
    with pytest.raises(UsageError, match="is not an age"):
        parse_age(text)


def test_cuda_caches_of_what_is_not_ours_are_found(tmp_path: Path) -> None:
    """Interpreters and images of the user's leave caches; those of ours go with their owner."""
    made(tmp_path, "tf218-gpu-0123")
    for name in ("tf218-gpu-0123", "mine-existing-0123"):
        (tmp_path / "cuda" / name).mkdir(parents=True)
        (tmp_path / "cuda" / name / "code").write_bytes(b"x" * 5000)

    def volume(name: str, of: str) -> Found:
        labels = {"stackrace": "cuda", "stackrace.keep": "1", "stackrace.image": of}
        return Found(id=name, labels={**labels, "stackrace.environment": "ngc"}, created=7.0)

    engine = FakeEngine(
        found=[image("tf114")],
        kept=[
            volume("ours", "sha256:tf114"),
            volume("theirs", "sha256:x"),
            Found(id="job", labels={"stackrace": "job"}),
        ],
    )
    found = cleaning.every(tmp_path, engine)  # type: ignore[arg-type]
    assert ["tf218-gpu-0123", "mine-existing-0123", "sha256:tf114", "theirs"] == names(found)
    chosen = cleaning.choose(found, names=["tf218", "mine", "ngc"])
    removed = cleaning.remove(chosen, folder=tmp_path, engine=engine)  # type: ignore[arg-type]
    assert ["", "", ""] == [one.kept for one in removed]
    assert [] == list((tmp_path / "cuda").iterdir())
    assert ["ours", "job"] == [one.id for one in engine.kept]
