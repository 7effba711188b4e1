"""What is known about releases: when, for which Pythons, what they need, what cannot work."""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from orchestrator.model import codec

RELEASES = Path(__file__).parents[1] / "resources" / "releases.toml"
RULES = RELEASES.with_name("pairs.toml")


class TensorFlowRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release of `tensorflow`. `cpu`: tensorflow-cpu has it too."""

    date: date
    pythons: tuple[str, ...]
    cpu: bool = False


class KerasRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release of `keras` or `tf-keras`. `python`: the oldest that it takes."""

    date: date
    python: str

    def takes(self, python: str) -> bool:
        """Whether it installs on this Python."""
        return Version(self.python) <= Version(python)


class Releases(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """All releases by version, oldest first."""

    tensorflow: dict[str, TensorFlowRelease]
    keras: dict[str, KerasRelease]
    tf_keras: dict[str, KerasRelease]


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Constraints that a range of TensorFlow releases needs, and why."""

    tensorflow: str
    constraints: tuple[str, ...]
    reason: str


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pairs that cannot work: a range of TensorFlow, a range of Keras, the reason."""

    tensorflow: str
    keras: str
    reason: str

    def holds(self, tensorflow: str, keras: str) -> bool:
        """Whether it is about this pair; without a stand-alone Keras nothing is refused."""
        return bool(keras) and within(tensorflow, self.tensorflow) and within(keras, self.keras)


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What pairs need, and which cannot be."""

    pins: tuple[Pin, ...]
    refusals: tuple[Refusal, ...]


def within(version: str, wanted: str) -> bool:
    """Whether a version lies in a range such as `>=2.0,<2.3`."""
    return SpecifierSet(wanted).contains(version, prereleases=True)


@cache
def releases() -> Releases:
    """The generated table of releases."""
    return codec.decode_toml(RELEASES.read_text(encoding="utf-8"), Releases, source=RELEASES.name)


@cache
def rules() -> Rules:
    """The rules, as people wrote them."""
    return codec.decode_toml(RULES.read_text(encoding="utf-8"), Rules, source=RULES.name)
