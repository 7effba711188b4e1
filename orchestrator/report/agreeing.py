"""Reproducibility: whether the same seeds gave the same losses, within and across arms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.model import phrases
from orchestrator.report import words
from orchestrator.report.marks import bullets, grid

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
    """A row a comparison of histories, within each cell first; then what is to be expected."""
    told = [item for item in agreements.items if item.histories]  # inference has no losses
    if not told:
        return
    yield "## Reproducibility"
    yield "Loss histories of processes that started from the same seeds."
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
            for item in told
        ],
        left=4,
    )
    meanings = [text for text in dict.fromkeys(map(meaning, told)) if text]
    if meanings:
        yield bullets(meanings)


def top(agreements: Agreements) -> list[str]:
    """The cells that do not repeat themselves, for a terminal, with what that means."""
    lost = [
        item for item in agreements.items if item.scope == "processes" and item.state == "diverging"
    ]
    meanings = dict.fromkeys(meaning(item) for item in lost)
    told = (f"{item.arm}, {item.case}: its losses are {sentence(item)}" for item in lost)
    return [*told, *meanings]


def meaning(item: Agreement) -> str:
    """Whether that divergence is to be expected, and why; empty for what does not diverge."""
    if item.state != "diverging":
        return ""
    if item.scope == "processes":
        return _within(item)
    between = f"{_SCOPES[item.scope].removeprefix('another ')}s"
    if "weights=same" not in _knobs(item):
        return (
            f"Between {between} a divergence is expected: each draws its weights, and orders its "
            "sums, in its own way. With --same-weights they start alike."
        )
    if item.at_once:
        return (
            f"Between {between} that start from the same weights, losses that differ at once are "
            "not expected: they do not compute the same."
        )
    return (
        f"Between {between} that start from the same weights, losses that drift apart later are "
        "expected: sums in another order differ in their last bits, and training amplifies that."
    )


def _within(item: Agreement) -> str:
    if item.at_once:
        unseen = item.begins != 1  # the warm-up has no losses
        return (
            "A cell whose first recorded loss differs from process to process draws something "
            f"without a seed{', unless it came apart during the warm-up' if unseen else ''}."
        )
    if "threads=1" in _knobs(item):
        return "On one thread the same seeds should give the same losses: something is not seeded."
    return (
        "A cell that is equal at first and diverges later is seeded: several threads add up in an "
        "order that changes, which shows in the last bits and grows. +threads=1 shows whether that "
        "is all."
    )


def _knobs(item: Agreement) -> list[str]:
    return item.case.split("+")[1:]


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
