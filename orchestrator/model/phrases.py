"""Bits of sentences that more than one stage builds."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def first_line(text: object) -> str:
    """The first line of a message, where there is one; the log has the rest."""
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return lines[0] if lines else "no reason was given"


def significant(value: float) -> str:
    """`0.0213`, `3.1`, `5170`: three digits that count, and no exponent where a number is large."""
    text = f"{value:.3g}"
    return f"{float(text):.0f}" if "e+" in text else text
