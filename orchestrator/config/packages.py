"""Packages that a workload needs beside TensorFlow: `--with pandas`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from packaging.requirements import Requirement

# What is compared is not added, nor what brings the same modules under another name: the
# environment's own pins say which it is.
COMPARED: Final = frozenset(
    {
        *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "intel-tensorflow"),
        *("tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
        *("keras", "keras-nightly", "jax", "torch"),
    }
)


def parse(texts: Sequence[str], sources: Collection[str]) -> tuple[str, ...]:
    """The packages in one spelling and order; UsageError for what is none.

    `sources`: environments that somebody else made, into which nothing is installed.
    """
    found = {str(_requirement(text)) for text in texts}
    if found and sources:
        raise UsageError(
            f"--with cannot add to {', '.join(sources)}: nothing is installed into what you made.",
            fix="Install it there yourself, and leave --with out.",
        )
    return tuple(sorted(found))


def _requirement(text: str) -> Requirement:
    # They take 30 ms, and most commands add no package.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        raise UsageError(
            f"--with {text!r} is no package.",
            why="Files, folders and options of pip are none either.",
            fix="Write a name, with a version where it matters: --with pandas --with 'scipy<1.5'",
        ) from error
    if found.url is not None:
        raise UsageError(
            f"--with {text!r} names an address.",
            why="What stands there can change, and the run could not be repeated.",
            fix="Name a package of your index, or put the code into the workload's folder.",
        )
    found.name = canonicalize_name(found.name)
    if found.name in COMPARED:
        raise UsageError(
            f"--with {text!r} would change what is compared.",
            fix="Name another pair instead, such as tensorflow==2.9.1+keras==2.9.0.",
        )
    return found
