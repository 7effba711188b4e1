"""One contrast in one sentence, whatever came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.model.comparison import ENOUGH_BLOCKS, INDICATIVE, OTHER_WORK
from orchestrator.model.phrases import count
from orchestrator.report import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.model.advice import Range
    from orchestrator.model.comparison import Contrast


# Notes without which a sentence would mislead.
_CAUTIONS: Final = ("confounded", OTHER_WORK)


class Told(NamedTuple):
    """The candidate and the reference as a sentence names them, and what it holds for."""

    subject: str
    reference: str
    where: str


def tell(contrast: Contrast, told: Told, *, threshold: float) -> str:
    """`tf20 as installed is 3.85x SLOWER than tf114 at fit (3.62 to 4.09).`"""
    subject, reference, where = told
    caution = "".join(f" ({note})" for note in contrast.notes if note.startswith(_CAUTIONS))
    interval = words.interval(contrast, to=" to ")
    match contrast.state:
        case "slower" | "faster":
            return _beyond(contrast, told) + caution
        case "same":
            near = f"at {where}, within {words.percent(threshold)} ({interval})."
            return f"{subject} is as fast as {reference} {near}{caution}"
        case "unclear":
            what = f"{subject} against {reference} at {where}"
            return f"{what} is unclear: {contrast.reason} ({interval}).{caution}"
        case None:
            return _undecided(contrast, told) + caution


def summed(
    told: Told,
    contrasts: Sequence[Contrast],
    where: Mapping[tuple[str, str], str],
    found: Range | None,
) -> list[str]:
    """Many contrasts of the same two values: mean, range and verdicts; `found` has the numbers.

    `tf20 against tf114 over 12 cases: 1.42x (1.35 to 1.50), from 0.83x (CASE) to 3.9x (CASE); 9
    slower, 3 unclear.`
    """
    counted = words.counted(contrasts)
    pair = f"{told.subject} against {told.reference}"
    if found is None or found.mean is None:
        return [f"{pair}, {len(contrasts)} cases: {counted}.", *extremes(contrasts, where)]
    ends = [
        f"{words.times_as_long(end.ratio)} ({where[end.arm, end.case]})"
        for end in (found.best, found.worst)
    ]
    alone = found.cases == found.contrasts
    over = count(found.contrasts, "case" if alone else "comparison")
    mean = words.figures(found.mean, to=" to ")
    return [f"{pair} over {over}: {mean}, from {ends[0]} to {ends[1]}; {counted}."]


def extremes(contrasts: Sequence[Contrast], where: Mapping[tuple[str, str], str]) -> list[str]:
    """`At most 3.00x SLOWER: CASE (2.9 to 3.1).`, and the same of what is faster.

    `where` names each contrast by its candidate's arm and case.
    """
    slower = [item for item in contrasts if item.state == "slower"]
    faster = [words.inverse(item) for item in contrasts if item.state == "faster"]
    found = []
    for state, group in (("SLOWER", slower), ("FASTER", faster)):
        if group:
            most = max(group, key=lambda item: item.ratio or 0)
            place = where[most.candidate.arm, most.candidate.case]
            interval = words.interval(most, to=" to ")
            found.append(f"At most {words.ratio(most)} {state}: {place} ({interval}).")
    return found


def _beyond(contrast: Contrast, told: Told) -> str:
    turned = contrast if contrast.state == "slower" else words.inverse(contrast)
    return (
        f"{told.subject} is {words.ratio(turned)} {str(contrast.state).upper()} than "
        f"{told.reference} at {told.where} ({words.interval(turned, to=' to ')})."
    )


def _undecided(contrast: Contrast, told: Told) -> str:
    subject, reference, where = told
    if contrast.ratio is None:
        reason = (contrast.reason or "").rstrip(".")
        return f"{subject} against {reference} at {where} has no number: {reason}."
    took = f"{subject} {_took(contrast)} {reference} at {where}"
    if contrast.pairs < ENOUGH_BLOCKS:  # an interval of so few says little more than that
        return f"{took}. No verdict: {(contrast.reason or '').removeprefix(INDICATIVE)}."
    turned = words.inverse(contrast) if contrast.ratio < 1 else contrast
    return f"{took} ({words.interval(turned, to=' to ')}). No verdict: {contrast.reason}."


def _took(contrast: Contrast) -> str:
    """`was 71x faster than`: in lower case, for what no verdict says."""
    faster = contrast.ratio is not None and contrast.ratio < 1
    turned = words.inverse(contrast) if faster else contrast
    return f"was {words.ratio(turned)} {'faster' if faster else 'slower'} than"
