"""What a user writes for a pair: `tensorflow==2.18.1+keras==3.6.0+python==3.12`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from orchestrator.errors import UsageError

FORM = (
    "Write tensorflow==VERSION, with +keras==VERSION and +python==3.N where you want them; "
    "or tf-nightly."
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A pair as it was asked for. What is None is chosen.

    `tensorflow` is None only for `tf-nightly` without a version: the newest one.
    """

    text: str
    tensorflow: str | None
    keras: str | None = None
    python: str | None = None
    nightly: bool = False

    @property
    def title(self) -> str:
        """`tensorflow==2.9.1+keras==2.9.0`, for messages."""
        name = "tf-nightly" if self.nightly else "tensorflow"
        tensorflow = f"{name}=={self.tensorflow}" if self.tensorflow else name
        return f"{tensorflow}+keras=={self.keras}" if self.keras else tensorflow


def parse(text: str) -> Pair | None:
    """The pair that `text` asks for; None when it is a name or a glob.

    UsageError when it is meant as a pair and is none.
    """
    first, *rest = text.split("+")
    name, sign, version = first.partition("==")
    if not sign and name != "tf-nightly" and not rest:
        return None
    if name not in ("tensorflow", "tf-nightly"):
        raise UsageError(f"{text!r} is not a pair: it begins with {name!r}.", fix=FORM)
    if not sign and name == "tensorflow":
        raise UsageError(f"{text!r} does not say which TensorFlow.", fix=FORM)
    parts: dict[str, str] = {}
    for part in rest:
        key, given, value = part.partition("==")
        if not given or key not in ("keras", "python") or key in parts:
            raise UsageError(f"{text!r} is not a pair: {part!r} cannot stand in it.", fix=FORM)
        parts[key] = value
    python = parts.get("python")
    if python is not None and re.fullmatch(r"3\.\d{1,2}", python) is None:
        raise UsageError(
            f"{text!r} names no Python: {python!r}.",
            fix="Write it as 3.N, such as python==3.11; the newest patch release is taken.",
        )
    return Pair(
        text=text,
        tensorflow=_version(version, text) if sign else None,
        keras=_version(parts["keras"], text) if "keras" in parts else None,
        python=python,
        nightly=name == "tf-nightly",
    )


def _version(version: str, text: str) -> str:
    """A version as indexes write it."""
    try:
        return str(Version(version))
    except InvalidVersion as error:
        raise UsageError(f"{text!r} is not a pair: {version!r} is no version.", fix=FORM) from error
