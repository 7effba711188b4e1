"""The advice in words: what to take, what to avoid, what does not matter, what to measure next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.model import phrases
from orchestrator.report import overall, words
from orchestrator.report.marks import bullets, code, text
from orchestrator.report.tables import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from orchestrator.model.advice import (
        Advice,
        Avoided,
        Choice,
        Configuration,
        Task,
    )

_AIMS: Final[Mapping[str, str]] = {
    "train_on_batch": "training",
    "test_on_batch": "evaluating",
    "predict": "inference",
    "step": "step",
    "life_cycle": "life cycle",
}
_PARTS: Final = ("environment", "api", "mode", "workload", "input", "method", "knobs")
_TOP: Final = 3  # entries of each sort on a terminal
_FEW: Final = 2  # choosing between two is what the headline already says


def top(advice: Advice) -> list[str]:
    """The most important of it, for a terminal; nothing where the headline says it all."""
    choices = [item for item in advice.choices if item.fastest and item.configurations > _FEW]
    if not choices:
        return []
    names = Names(advice)
    return [
        *_some([fastest(item, names) for item in choices]),
        *_some([f"avoid {avoided(item, names)}" for item in advice.avoid if item.axis]),
        *_some([] if overall.top(advice) else _indifferent(advice)),
    ]


def section(advice: Advice) -> Iterator[str]:
    """All of it, for report.md; nothing where nobody had a choice."""
    names = Names(advice)
    found = {
        "Take": [fastest(item, names) for item in advice.choices if item.fastest],
        "Avoid": [avoided(item, names) for item in advice.avoid],
        # What is told of all cases together tells of every axis.
        "Leave": [] if overall.several(advice) else _indifferent(advice),
        "No choice": [
            fastest(item, names)
            for item in advice.choices
            if not item.fastest and item.configurations > 1
        ],
    }
    if not any(found.values()) and not advice.steps:
        return
    yield "## Advice"
    yield "From what was measured here, on this machine, and from nothing else."
    for title, entries in found.items():
        yield from _list(title, entries)
    if advice.steps:
        yield "**Measure next**"
        yield "\n".join(f"- {text(item.why)}: {code(item.command)}" for item in advice.steps)


class Names:
    """Calls configurations by what tells them apart: in one environment nobody repeats it."""

    def __init__(self, advice: Advice) -> None:
        told = [
            item
            for choice in advice.choices
            for item in (*choice.fastest, choice.next, choice.as_installed)
            if item is not None
        ]
        told += [slow.configuration for group in advice.avoid for slow in group.slow]
        self._parts = [part for part in _PARTS if len({getattr(item, part) for item in told}) > 1]

    def __call__(self, item: Configuration) -> str:
        """`tf20 graph dataset fit jit_compile=yes`."""
        parts = [str(getattr(item, part) or "") for part in self._parts]
        return " ".join(part for part in parts if part) or item.arm


def _indifferent(advice: Advice) -> list[str]:
    return [
        f"{item.axis} does not matter: {overall.within(item)} "
        f"({phrases.count(item.contrasts, 'comparison')})"
        for item in advice.indifferent
    ]


def _some(entries: Sequence[str]) -> list[str]:
    more = [f"... and {len(entries) - _TOP} more in report.md"] if len(entries) > _TOP else []
    return [*entries[:_TOP], *more]


def fastest(choice: Choice, named: Names) -> str:
    """`training small-small: graph fit (8.05 ms) is the fastest of 8; the next, eager fit, ...`."""
    where = aim(choice.task)
    if not choice.fastest:
        return f"{where}: {choice.reason}"
    if choice.sure:
        (best,) = choice.fastest
        time = words.seconds(best.seconds)
        told = f"{where}: {named(best)} ({time}) is the fastest of {choice.configurations}"
    else:
        names = [named(item) for item in choice.fastest[:_TOP]]
        if len(choice.fastest) > _TOP:
            names.append(f"{len(choice.fastest) - _TOP} more")
        told = f"{where}: {words.listed(names)} may each be the fastest of {choice.configurations}"
    same = choice.next == choice.as_installed
    if choice.next and choice.against_next:
        how = " as installed" if same else ""
        figures = words.figures(choice.against_next)
        told += f"; the next, {named(choice.next)}{how}, takes {figures}"
    if choice.as_installed and choice.against_installed and not same:
        told += f"; as installed takes {words.figures(choice.against_installed)}"
    return told


def avoided(item: Avoided, named: Names) -> str:
    """`mode eager: 1.65x to 2.27x the time of the fastest (24 configurations)`."""
    if item.axis:
        what = f"{item.axis} {item.value or DEFAULT}"
        number = phrases.count(len(item.slow), "configuration")
        ends = (words.times_as_long(item.least), words.times_as_long(item.most))
        span = " to ".join(dict.fromkeys(ends))
        return f"{what}: {span} the time of the fastest (all {number} with it)"
    (slow,) = item.slow
    where = aim(slow.task)
    figures = words.figures(slow.against_fastest)
    return f"{named(slow.configuration)} at {where}: {figures} the time of the fastest"


def aim(task: Task) -> str:
    """`training small-small`, `inference tiny-tiny on the GPU, batch_size=64`."""
    device = "" if task.device == "cpu" else f" on the {task.device.upper()}"
    knobs = f", {task.knobs}" if task.knobs else ""
    return f"{_AIMS.get(task.method, task.method)} {task.size}{device}{knobs}"


def _list(title: str, entries: Sequence[str]) -> Iterator[str]:
    if entries:
        yield f"**{text(title)}**"
        yield bullets(entries)
