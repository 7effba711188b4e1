"""How noisy a machine is, in words: after a selftest, and before another run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.model.phrases import count
from orchestrator.report import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orchestrator.model.health import Check
    from orchestrator.model.noise import Noise, NoiseCase


def selftest(
    noise: Noise,
    *,
    shown: Mapping[int, float | None],
    enough: int | None,
    unlikely: bool,
    hints: Sequence[Check],
) -> str:
    """What a selftest found, its conclusion last.

    `shown`: rounds -> the smallest difference that so many show, if any. `enough`: rounds in which
    as much as the threshold is told from nothing. `unlikely`: more intervals exclude 1 than chance
    makes.
    """
    excluded = sum(case.excluded for case in noise.cases)
    verb = "excludes" if excluded == 1 else "exclude"
    by_chance = 0.05 * len(noise.cases)
    rounds, intervals = count(noise.rounds, "round"), count(len(noise.cases), "interval")
    lines = [
        f"{noise.environment} against itself on the {noise.device.upper()}, {rounds} interleaved",
        "",
        *_table(noise.cases),
        "",
        f"{excluded} of {intervals} {verb} 1; one expects {by_chance:.2g} by chance.",
    ]
    if unlikely:
        lines.append(
            "That is more than chance makes: this machine changed while it measured, or treats "
            "two copies of one environment differently. Repeat it before you trust a verdict here."
        )
    lines.append(
        f"Ratios within a block vary by {words.about(noise.spread)} where there is no difference "
        "(pooled over the cases)."
    )
    if too_noisy(noise, enough):
        lines += ["", f"It is too noisy for the threshold of {words.percent(noise.threshold)}: "]
        lines[-1] += _needed(noise.threshold, enough) + "."
        lines += told(hints)
    return "\n".join([*lines, "", statement(noise, shown)])


def too_noisy(noise: Noise, enough: int | None) -> bool:
    """Whether as many rounds as this selftest's, or as a verdict needs, are not `enough`."""
    return enough is None or enough > max(noise.rounds, ENOUGH_BLOCKS)


def statement(noise: Noise, shown: Mapping[int, float | None]) -> str:
    """`This machine can see differences of 3% and more (10 rounds).`, and in other rounds."""
    own = count(noise.rounds, "round")
    others = words.listed(
        [
            f"{effect(seen)} with {rounds}"
            for rounds, seen in shown.items()
            if rounds != noise.rounds and seen is not None
        ]
    )
    if noise.rounds < ENOUGH_BLOCKS:
        told = f"{own} give no verdict: {ENOUGH_BLOCKS} are the fewest that do."
        then = f" By their spread, this machine can see differences of {others} rounds."
    else:
        told = f"This machine can see differences of {effect(noise.detectable)} and more ({own})."
        then = f" By the same formula {others}."
    return f"{told}{then if others else ''}"


def before(
    noise: Noise,
    *,
    rounds: int,
    threshold: float,
    seen: float | None,
    enough: int | None,
    expected: bool,
) -> str:
    """What a run of so many rounds can show on a machine that is too noisy for the threshold.

    `expected`: their number is a forecast. `seen`: None where they are too few for a verdict.
    """
    told = f"With {'about ' if expected else ''}{count(rounds, 'round')} "
    if seen is None:
        told += "there is no verdict"
    else:
        told += f"this machine sees differences of {effect(seen)} and more"
    return f"{told} (selftest of {day(noise)}); {_needed(threshold, enough)}."


def effect(ratio_less_1: float) -> str:
    """`9%`; from a whole 100% on, as a ratio: `2.62x`."""
    if ratio_less_1 < 1:
        return words.about(ratio_less_1)
    return words.times_as_long(1 + ratio_less_1)


def told(hints: Iterable[Check]) -> list[str]:
    """A line for each thing that makes times vary, and one for what mends it."""
    return [
        line
        for hint in hints
        for line in (f"  {hint.subject}: {hint.text}", f"    -> {hint.fix}" if hint.fix else "")
        if line
    ]


def day(noise: Noise) -> str:
    """`2026-11-30`."""
    return noise.created[:10]


def _needed(threshold: float, enough: int | None) -> str:
    from_none = f"to tell {words.percent(threshold)} from nothing"
    if enough is None:
        return f"{from_none}, no number of rounds that anybody waits for is enough"
    return f"{from_none}, it would take about {count(enough, 'round')}"


def _table(cases: Sequence[NoiseCase]) -> list[str]:
    rows = [
        (
            case.case,
            f"{case.ratio:.3f}",
            f"{case.low:.3f} - {case.high:.3f}",
            words.about(case.spread),
            "excludes 1" if case.excluded else "",
        )
        for case in cases
    ]
    widest = max(len(case) for case, *_ in rows)
    head = f"{'case':<{widest}}   ratio  95% interval    spread"
    return [
        head,
        *(
            f"{case:<{widest}}  {ratio:>6}  {interval:>13}  {spread:>6}  {note}".rstrip()
            for case, ratio, interval, spread, note in rows
        ),
    ]
