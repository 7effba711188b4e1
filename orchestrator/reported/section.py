"""One report in Markdown: what was said, the command, what was measured, and what that means."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orchestrator.model.phrases import count
from orchestrator.model.reports import RATIOS, Cell, Quantity
from orchestrator.reported.check import amounts, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from orchestrator.model.reports import Claim, Report
    from orchestrator.reported.check import Checked

_UNITS = {
    "retraces": "retraces a step",
    "memory": "MB per 100 steps",
    "drift": "x from first to last",
}
_SECONDS: tuple[Quantity, ...] = ("step", "first_call", "import")
_OTHERS: tuple[Quantity, ...] = ("retraces", "memory", "drift")
_PATHS = ("executed_as", "training_loop", "data_adapter", "kernel")


def section(
    identifier: str,
    report: Report,
    checked: Sequence[Checked],
    frame: pd.DataFrame,
    *,
    shown: Sequence[str] = (),
) -> str:
    """The text between the report's marks. `shown`: what its processes show by themselves."""
    counting = frame[frame["counts"]]
    rounds = counting["round"].nunique()
    ok = int((counting["outcome"] == "ok").sum())
    head = f"## {identifier}. {report.title}\n\n{report.source}. Reported: {report.said}"
    command = f"```\nstackrace run {report.run}\n```"
    made = (
        f"{count(rounds, 'round')}, {ok} of {len(counting)} processes ok, "
        f"{_date(counting['started_wall_s'].min())}."
    )
    parts = [head, command, _claims(checked), _cells(frame), *_shown(shown), made]
    if report.finding:
        parts.append(report.finding.strip())
    return "\n\n".join(parts)


def _date(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, UTC).date().isoformat()


def _claims(checked: Sequence[Checked]) -> str:
    lines = ["claim | measured | 95% interval | answer", "--- | ---: | --- | ---"]
    for item in checked:
        unit = "x" if _is_ratio(item.claim) else f" {_UNITS[item.claim.quantity]}"
        middle = "-" if math.isnan(item.middle) else f"{_short(item.middle)}{unit}"
        interval = "-" if math.isnan(item.low) else f"{_short(item.low)} to {_short(item.high)}"
        answer = f"**{item.answer}**" + (f" ({item.reason})" if item.reason else "")
        lines.append(f"{item.claim.says} | {middle} | {interval} | {answer}")
    return "\n".join(f"| {line} |" for line in lines)


def _shown(sentences: Sequence[str]) -> list[str]:
    lines = "\n".join(f"- {sentence}" for sentence in sentences)
    return [f"What the processes show by themselves:\n\n{lines}"] if lines else []


def _is_ratio(claim: Claim) -> bool:
    return claim.reference is not None and claim.quantity in RATIOS


def _cells(frame: pd.DataFrame) -> str:
    """Every cell: what its processes took, and which way they went."""
    lines = [
        "arm | case | step | first call | import | retraces | MB/100 steps | last/first | path",
        "--- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---",
    ]
    counting = frame[frame["counts"]]
    for arm, case in counting[["arm", "case"]].drop_duplicates().itertuples(index=False):
        cell = Cell(arm=arm, case=case)
        rows = rows_of(cell, frame)
        ok = rows[rows["outcome"] == "ok"]
        if ok.empty:
            why = f"{rows.iloc[0]['outcome']}: {_one_line(str(rows.iloc[0]['reason']))}"
            lines.append(f"{arm} | {case} | - | - | - | - | - | - | {why}")
            continue
        found = amounts(cell, frame)
        path = "; ".join(str(ok.iloc[0][name]) for name in _PATHS if ok.iloc[0][name])
        seconds = [_seconds(found.get(name)) for name in _SECONDS]
        others = [_plain(found.get(name)) for name in _OTHERS]
        lines.append(" | ".join([arm, case, *seconds, *others, path]))
    return "\n".join(f"| {line} |" for line in lines)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{_short(value * 1000)} ms"


def _plain(value: float | None) -> str:
    return "-" if value is None else _short(value)


def _short(value: float) -> str:
    """Three figures, without an exponent."""
    if abs(value) >= 100:  # noqa: PLR2004
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"  # noqa: PLR2004


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")
