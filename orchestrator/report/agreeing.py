"""Reproducibility: whether the same seeds gave the same losses, within and across arms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.model import phrases
from orchestrator.report import words
from orchestrator.report.marks import grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.model.reproducibility import Agreement, Agreements, Scope

_SCOPES: Final[Mapping[Scope, str]] = {
    "processes": "its own processes",
    "version": "another version",
    "mode": "another mode",
    "api": "another api",
}


def section(agreements: Agreements) -> Iterator[str]:
    """A row a comparison of histories, within each cell first."""
    if not agreements.items:
        return
    yield "## Reproducibility"
    yield (
        "Loss histories of processes that started from the same seeds. Versions draw their weights "
        "each in its own way, so that only arms with the same weights can agree."
    )
    yield grid(
        ("case", "arm", "with", "result", "histories"),
        [
            (
                item.case,
                item.arm,
                _SCOPES[item.scope] if item.scope == "processes" else item.other,
                sentence(item),
                str(item.histories),
            )
            for item in agreements.items
        ],
        left=4,
    )


def top(agreements: Agreements) -> list[str]:
    """The cells that do not repeat themselves, for a terminal."""
    lost = [item for item in agreements.items if item.scope == "processes"]
    return [
        f"{item.arm}, {item.case}: {sentence(item)}" for item in lost if item.state == "diverging"
    ]


def sentence(item: Agreement) -> str:
    """`equal, bit by bit`, `diverging from iteration 12 on (by up to 3.1%)`, or why not known."""
    match item.state:
        case "equal":
            return f"equal, bit by bit, over {phrases.count(item.iterations, 'iteration')}"
        case "close":
            return f"close: within {item.tolerance:g} from iteration {item.first_differing} on"
        case "diverging":
            largest = "" if item.largest is None else f" (by up to {words.percent(item.largest)})"
            return f"diverging from iteration {item.diverges_at} on{largest}"
        case None:
            return f"unknown: {item.reason}"
