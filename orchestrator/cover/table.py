"""The grid's cover in words: a table of environments, and every reason once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cover.outcomes import KNOWLEDGE
from orchestrator.model.phrases import count

if TYPE_CHECKING:
    from orchestrator.model.coverage import Coverage, Reason

_HEAD = ("environment", "api", "mode", "combinations", "ok", "unsupported", "failed")


def table(coverage: Coverage) -> str:
    """Markdown: one line an environment, api and mode; then why combinations are unsupported."""
    lines = [" | ".join(_HEAD), " | ".join(["---"] * 3 + ["---:"] * 4)]
    for identifier, row in coverage.rows.items():
        for covered in row.covered:
            ok, refused = (covered.outcomes.get(outcome, 0) for outcome in KNOWLEDGE)
            every = sum(covered.outcomes.values())
            cells = (
                identifier,
                covered.api,
                covered.mode,
                every,
                ok,
                refused,
                every - ok - refused,
            )
            lines.append(" | ".join(map(str, cells)))
    swept = "\n".join(f"| {line} |" for line in lines)
    return "\n\n".join([swept, *_skipped(coverage), *_reasons(coverage), _made(coverage)]) + "\n"


def _skipped(coverage: Coverage) -> list[str]:
    rows = [(name, row) for name, row in coverage.rows.items() if row.skipped]
    if not rows:
        return []
    told = "\n".join(f"- `{name}` ({row.title}): {row.skipped}" for name, row in rows)
    return [f"Not swept:\n\n{told}"]


def _reasons(coverage: Coverage) -> list[str]:
    """Each reason once, those of the most combinations first, with where it was given."""
    found: dict[tuple[str, str], list[tuple[str, Reason]]] = {}
    for identifier, row in coverage.rows.items():
        for covered in row.covered:
            for reason in covered.reasons:
                where = f"{identifier}/{covered.api}/{covered.mode}"
                found.setdefault((reason.outcome, reason.message), []).append((where, reason))
    sections = []
    for wanted in (False, True):
        lines = [
            _reason(message, given)
            for (outcome, message), given in sorted(
                found.items(), key=lambda pair: -sum(item.cells for _, item in pair[1])
            )
            if (outcome == "unsupported") is wanted
        ]
        if lines:
            title = "Unsupported, and why" if wanted else "Failed"
            sections.append(f"## {title}\n\n" + "\n".join(lines))
    return sections


def _reason(message: str, given: list[tuple[str, Reason]]) -> str:
    cells = sum(reason.cells for _, reason in given)
    environments = list(dict.fromkeys(where.partition("/")[0] for where, _ in given))
    where, first = given[0]
    text = " ".join(message.split())
    return (
        f"- {text}  \n  {count(cells, 'combination')}, in {', '.join(environments)}; such as "
        f"`{where}` `{first.example}`"
    )


def _made(coverage: Coverage) -> str:
    dates = sorted({row.date for row in coverage.rows.values()})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "never"
    return f"Swept: {when}."
