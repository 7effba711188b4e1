"""Numbers and lists as people read them, with no more digits than they deserve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from orchestrator.model.phrases import significant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.model.advice import Ratio
    from orchestrator.model.comparison import Contrast

NOTHING: Final = "-"
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_MINUTE, _HOUR = 60, 3600
_HALF = 0.5  # rounds to nothing below it
_TINY, _HUGE = 0.001, 9999
_VERDICTS = ("slower", "faster", "same", "unclear", "no verdict", "no number")
_VALUES = 4  # of one knob that are written out
_ALIKE = 100  # one column shows so wide a range in one unit


def seconds(value: float | None) -> str:
    """`6.62 ms`: three significant digits, in the unit that needs no exponent."""
    return times([value])[0]


def times(values: Sequence[float | None]) -> list[str]:
    """`6.62 ms` and `25.49 ms`: one unit and one number of decimals, as the shortest needs them.

    Where the longest takes a hundred times as long, each has its own.
    """
    known = [value for value in values if value is not None]
    shortest, longest = min(known, default=0.0), max(known, default=0.0)
    if longest > _ALIKE * shortest:
        return [NOTHING if value is None else _time(value, like=value) for value in values]
    return [NOTHING if value is None else _time(value, like=shortest) for value in values]


def _time(value: float, *, like: float) -> str:
    """In the unit and with the decimals that give `like` three significant digits."""
    rounded = float(f"{like:.3g}")
    size, unit = next((item for item in _UNITS if rounded >= item[0]), _UNITS[-1])
    scaled = rounded / size
    digits = max(0, 2 - math.floor(math.log10(scaled))) if scaled > 0 else 0
    shown = rounded if value == like else value
    return f"{shown / size:.{min(digits, 3)}f} {unit}"


def duration(value: float) -> str:
    """`3 min 26 s`."""
    if value < 1:
        return "under 1 s"
    whole = round(value)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def roughly(value: float) -> str:
    """`12 min`: an estimate."""
    if value < 2 * _MINUTE:
        return duration(value)
    if value < 2 * _HOUR:
        return f"{value / _MINUTE:.0f} min"
    return f"{value / _HOUR:.0f} h"


def ratio(contrast: Contrast, *, decimals: int | None = None) -> str:
    """`3.85x`; one that stands on a single pair gets two digits only."""
    if contrast.ratio is None:
        return NOTHING
    return f"{_fixed(contrast.ratio, _decimals(contrast) if decimals is None else decimals)}x"


def interval(contrast: Contrast, *, to: str = " - ", decimals: int | None = None) -> str:
    """`3.62 - 4.09`."""
    if contrast.low is None or contrast.high is None:
        return NOTHING
    decimals = _decimals(contrast) if decimals is None else decimals
    return f"{_fixed(contrast.low, decimals)}{to}{_fixed(contrast.high, decimals)}"


def decimals(contrasts: Sequence[Contrast]) -> int | None:
    """How many decimals the ratios of a column share; None where each needs its own.

    As many as the widest interval leaves standing, but two where any needs them, and three where a
    ratio is small.
    """
    known = [item for item in contrasts if item.ratio]
    ratios = [item.ratio for item in known if item.ratio]
    if not ratios or max(ratios) > _ALIKE * min(ratios) or min(ratios) < 1 / _ALIKE:
        return None
    each = [_decimals(item) for item in known]
    least = 3 if min(ratios) < _HALF else min(2, max(each))
    return max(least, min(each))


def figures(found: Ratio, *, to: str = " - ") -> str:
    """`1.35x (1.21 - 1.50)`."""
    decimals = _standing((found.high - found.low) / 2)
    ends = f"{_fixed(found.low, decimals)}{to}{_fixed(found.high, decimals)}"
    return f"{_fixed(found.ratio, decimals)}x ({ends})"


def times_as_long(value: float) -> str:
    """`1.65x`: a ratio without its interval, three digits."""
    return f"{_fixed(value, max(0, 2 - math.floor(math.log10(value))))}x"


def inverse(contrast: Contrast) -> Contrast:
    """The same numbers seen from the other side, for `2.00x FASTER`; its words do not turn."""
    return msgspec.structs.replace(
        contrast,
        ratio=None if contrast.ratio is None else 1 / contrast.ratio,
        low=None if contrast.high is None else 1 / contrast.high,
        high=None if contrast.low is None else 1 / contrast.low,
    )


def q(value: float | None) -> str:
    """`0.012`, `<0.001`."""
    if value is None:
        return NOTHING
    return f"<{_TINY}" if value < _TINY else f"{value:.3f}"


def verdict(contrast: Contrast) -> str:
    """One or two words; the reason stands elsewhere."""
    if contrast.ratio is None:
        return "no number"
    return contrast.state or "no verdict"


def counted(contrasts: Iterable[Contrast]) -> str:
    """`3 slower, 1 unclear`: the verdicts of some contrasts."""
    told = [verdict(contrast) for contrast in contrasts]
    return ", ".join(f"{told.count(word)} {word}" for word in _VERDICTS if word in told)


def percent(fraction: float) -> str:
    """`2%`, `2.5%`: a setting, as it was given."""
    return f"{significant(fraction * 100)}%"


def signed(value: float) -> str:
    """`+16%`, `-8%`, and `0%` without a sign."""
    return f"{value:+.0f}%" if abs(value) >= _HALF else "0%"


def coverage(alpha: float) -> str:
    """`95%`: how often an interval that misses with `alpha` holds the truth."""
    return percent(1 - alpha)


def about(fraction: float) -> str:
    """`9%`: an estimate; whole percents from 1% on."""
    return f"{_about(fraction)}%"


def span(least: float, most: float) -> str:
    """`7-12%`, or one figure where the two read alike."""
    low, high = _about(least), _about(most)
    return f"{high}%" if low == high else f"{low}-{high}%"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def knobs(turned: str) -> str:
    """`batch_size=64+shape=20x20x1,...,50x50x1 (16)`: of many values the first and the last."""
    return "+".join(_few_values(knob) for knob in turned.split("+"))


def plain(outcome: str) -> str:
    """`timed out` for `timed_out`."""
    return outcome.replace("_", " ")


def _few_values(knob: str) -> str:
    name, equals, value = knob.partition("=")
    values = value.split(",")
    if len(values) <= _VALUES:
        return knob
    return f"{name}{equals}{values[0]},...,{values[-1]} ({len(values)})"


def _about(fraction: float) -> str:
    value = fraction * 100
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def _decimals(contrast: Contrast) -> int:
    """How many decimals the interval leaves standing: two digits of its half-width."""
    if contrast.low is None or contrast.high is None:
        magnitude = math.floor(math.log10(contrast.ratio or 1))
        return max(0, 1 - magnitude)
    return _standing((contrast.high - contrast.low) / 2)


def _standing(half: float) -> int:
    """From a half-width of 10 on no decimal, from 1 on one, from 0.01 on two, below that three."""
    return next((number for number, least in enumerate((10, 1, 0.01)) if half >= least), 3)


def _fixed(value: float, decimals: int) -> str:
    if value > _HUGE:
        return f">{_HUGE}"
    if value < _TINY:
        return f"<{_TINY}"
    # A ratio keeps two digits of its own, whatever the width of the interval.
    least = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:.{max(decimals, least)}f}"
