"""What processes show beside their medians: warm-up, spikes, slopes, memory, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.model.phrases import significant
from orchestrator.report import words
from orchestrator.report.marks import bullets, grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from orchestrator.model.quantities import (
        Amount,
        CellQuantities,
        Finding,
        FindingKind,
        Quantities,
    )

_SECONDS: Final = ("steady_s", "p95_s", "p99_s", "max_s")
_HEADERS: Final = (
    "steady from",
    "steady",
    "p95",
    "p99",
    "longest",
    "slope, us",
    "peak memory, MB",
    "memory slope, kB",
    "traces",
    "retraces",
)
# What columns mean, told where one of them is shown.
_LEGEND: Final[Mapping[str, frozenset[str]]] = {
    "Steady from: the iteration after which nothing of the warm-up is left, and how many processes "
    "came so far; what never settled counts as a whole.": frozenset({"steady from"}),
    "Slopes: what each iteration takes more than the one before.": frozenset(
        {"slope, us", "memory slope, kB"}
    ),
    "Percentiles: of the iterations of a process.": frozenset({"p95", "p99"}),
}
# What may be found, and the quantity without which nobody could look for it.
_SOUGHT: Final = {
    "leaks": "memory_slope_bytes",
    "slow-downs": "slope_s",
    "spikes": "p50_s",
    "retraces": "retraces",
}
# By which number one finding is worse than another.
_WORST: Final[Mapping[FindingKind, str]] = {
    "memory grows": "bytes",
    "gets slower": "fraction",
    "throttle unknown": "fraction",
    "spikes": "size",
    "retraces": "retraces",
}
_TOP: Final = 5  # findings on a terminal
_MB = 1e6


def section(quantities: Quantities) -> Iterator[str]:
    """What was found, then the quantities of every cell that has some."""
    cells = [item for item in quantities.cells if item.processes]
    if not cells:
        return
    yield "## What the processes show"
    found = sentences(quantities.findings)
    yield bullets(found) if found else _clean(cells)
    rows = [_row(item) for item in cells]
    columns = list(zip(*rows, strict=True))
    shown = [place for place, column in enumerate(columns) if set(column) != {words.NOTHING}]
    yield grid(
        ("arm", "case", *(_HEADERS[place] for place in shown)),
        [
            (item.arm, item.case, *(row[place] for place in shown))
            for item, row in zip(cells, rows, strict=True)
        ],
        left=2,
    )
    names = {_HEADERS[place] for place in shown}
    legend = [sentence for sentence, columns in _LEGEND.items() if columns & names]
    yield " ".join(["Medians over processes.", *legend])


def _clean(cells: Sequence[CellQuantities]) -> str:
    """What was looked for and not found; where nothing could be looked at, that is said instead."""
    looked = {
        word: any(getattr(item, name) is not None for item in cells)
        for word, name in _SOUGHT.items()
    }
    absent = words.listed([f"no {word}" for word, seen in looked.items() if seen])
    blind = words.listed([word for word, seen in looked.items() if not seen])
    told = [f"{absent[0].upper()}{absent[1:]} found."] if absent else []
    told += [f"Nothing is known of {blind}: too little was recorded."] if blind else []
    return " ".join(told)


def top(quantities: Quantities) -> list[str]:
    """The first findings, for a terminal; the others are counted."""
    found = sentences(quantities.findings)
    more = [f"... and {len(found) - _TOP} more in report.md"] if len(found) > _TOP else []
    return [*found[:_TOP], *more]


def sentences(findings: Sequence[Finding]) -> list[str]:
    """One a kind and arm: its cases together, with the worst of their numbers."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for item in findings:
        groups.setdefault((item.kind, item.arm), []).append(item)
    return [sentence(members) for members in groups.values()]


def sentence(members: Sequence[Finding]) -> str:
    """`tf20/tf.keras/graph, small-small/numpy/fit: memory grows by 1.2 MB an iteration (...)`."""
    worst = max(members, key=lambda item: item.numbers.get(_WORST.get(item.kind, ""), 0.0))
    where = worst.case if len(members) == 1 else f"{len(members)} cases, most in {worst.case}"
    shown = f"in {worst.shown} of {worst.processes} processes"
    caution = ", indicative" if worst.indicative else ""
    return f"{worst.arm}, {where}: {_what(worst)} ({shown}{caution})"


def _what(item: Finding) -> str:
    numbers = item.numbers
    match item.kind:
        case "memory grows":
            return f"memory grows by {_bytes(numbers.get('bytes', 0))} an iteration"
        case "gets slower":
            return f"the last iteration takes {_percent(numbers)} more than the first"
        case "throttle unknown":
            return (
                f"the last iteration takes {_percent(numbers)} more than the first, and the GPU "
                "does not tell whether it slowed down"
            )
        case "spikes":
            rhythm = f", every {significant(numbers['period'])} iterations" if item.periodic else ""
            return (
                f"{words.about(numbers.get('share', 0))} of the iterations take "
                f"{words.times_as_long(numbers.get('size', 1))} the median{rhythm}"
            )
        case "retraces":
            return f"{significant(numbers.get('retraces', 0))} retraces in the timed iterations"
        case "no steady state":
            return "no steady state was reached"


def _bytes(number: float) -> str:
    if number < _MB:
        return f"{significant(number / 1e3)} kB"
    return f"{significant(number / _MB)} MB"


def _percent(numbers: dict[str, float]) -> str:
    return words.about(numbers.get("fraction", 0.0))


def _row(item: CellQuantities) -> tuple[str, ...]:
    return (
        steady(item),
        *(_seconds(getattr(item, name)) for name in _SECONDS),
        _number(item.slope_s, 1e6),
        _number(item.peak_rss_bytes, 1e-6),
        _number(item.memory_slope_bytes, 1e-3),
        _number(item.traces),
        _number(item.retraces),
    )


def steady(item: CellQuantities) -> str:
    """`iteration 12 on (6 of 6)`: the first steady one, of processes that were long enough."""
    settled = item.warmup_iterations
    if settled is None:
        return f"never (0 of {item.unsettled})" if item.unsettled else words.NOTHING
    every = settled.processes + item.unsettled
    return f"iteration {significant(settled.median + 1)} on ({settled.processes} of {every})"


def _seconds(amount: Amount | None) -> str:
    return words.seconds(amount.median if amount else None)


def _number(amount: Amount | None, factor: float = 1.0) -> str:
    return significant(amount.median * factor) if amount else words.NOTHING
