"""Numbers as people read them."""

from __future__ import annotations

import pytest

from orchestrator.model import phrases
from orchestrator.model.comparison import Contrast, Side
from orchestrator.model.quantities import Finding
from orchestrator.report import measured, words

SIDE = Side(arm="tf20/tf.keras/graph", case="c", seconds=0.01, processes=6, spread=0.02)


def contrast(ratio: float | None, low: float | None = None, high: float | None = None) -> Contrast:
    """A contrast of which only the numbers matter."""
    return Contrast(
        kind="version",
        family="version",
        candidate=SIDE,
        reference=SIDE,
        pairs=6,
        ratio=ratio,
        low=low,
        high=high,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (123.4, "123 s"),
        (1.2345, "1.23 s"),
        (0.9999, "1.00 s"),
        (0.9994, "999 ms"),
        (0.02549, "25.5 ms"),
        (0.00662, "6.62 ms"),
        (0.0009996, "1.00 ms"),
        (0.000123, "123 us"),
        (4.56e-8, "0.046 us"),
        (12345.0, "12300 s"),
    ],
)
def test_seconds_have_three_digits_and_a_unit(value: float | None, text: str) -> None:
    """The unit is the largest that needs no leading zero; rounding may reach the next one."""
    assert words.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.2, "under 1 s"),
        (31, "31 s"),
        (59.6, "1 min 0 s"),
        (206, "3 min 26 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_have_two_units_at_most(value: float, text: str) -> None:
    """Seconds below a minute, minutes and seconds below an hour."""
    assert words.duration(value) == text


@pytest.mark.parametrize(("value", "text"), [(90, "1 min 30 s"), (700, "12 min"), (9000, "2 h")])
def test_estimates_are_round(value: float, text: str) -> None:
    """Nobody knows the seconds of a run that has not begun."""
    assert words.roughly(value) == text


@pytest.mark.parametrize(
    ("numbers", "ratio", "interval"),
    [
        ((3.85, 3.62, 4.09), "3.85x", "3.62 - 4.09"),
        ((1.0153, 1.0131, 1.0175), "1.015x", "1.013 - 1.018"),
        ((4.1, 2.9, 5.3), "4.1x", "2.9 - 5.3"),
        ((120.4, 100.2, 143.1), "120x", "100 - 143"),
        ((0.0123, 0.0101, 0.0152), "0.012x", "0.010 - 0.015"),
        ((2.0, 1e-9, 1e9), "2.0x", "<0.001 - >9999"),
        ((3.8512, None, None), "3.9x", "-"),
        ((38.512, None, None), "39x", "-"),
        ((None, None, None), "-", "-"),
    ],
)
def test_ratios_have_the_digits_that_their_interval_leaves(
    numbers: tuple[float | None, float | None, float | None], ratio: str, interval: str
) -> None:
    """Two digits of the half-width; without an interval two digits of the ratio."""
    one = contrast(*numbers)
    assert words.ratio(one) == ratio
    assert words.interval(one) == interval


def test_a_ratio_seen_from_the_other_side() -> None:
    """Ends of the interval change places."""
    turned = words.inverse(contrast(0.5, 0.4, 0.8))
    assert (turned.ratio, turned.low, turned.high) == (2.0, 1.25, 2.5)


def test_percents() -> None:
    """A setting as it was given, an estimate without decimals, a span that may be one figure."""
    assert words.percent(0.025) == "2.5%"
    assert words.about(0.0789) == "8%"
    assert ["95%", "96%"] == [words.coverage(alpha) for alpha in (0.05, 0.04)]
    assert words.about(0.004) == "0.4%"
    assert words.span(0.071, 0.124) == "7-12%"
    assert words.span(0.071, 0.069) == "7%"


@pytest.mark.parametrize(
    ("names", "text"),
    [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")],
)
def test_lists_end_with_and(names: tuple[str, ...], text: str) -> None:
    """As in a sentence."""
    assert words.listed(names) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.00662, 0.02549], ["6.62 ms", "25.49 ms"]),
        ([0.0009, 0.0021, None], ["900 us", "2100 us", "-"]),
        ([1.5, 20.0], ["1.50 s", "20.00 s"]),
        ([0.0001, 0.5], ["100 us", "500 ms"]),
        ([], []),
    ],
)
def test_the_times_of_a_column_share_unit_and_digits(
    values: list[float | None], texts: list[str]
) -> None:
    """As the shortest needs them, unless the longest takes a hundred times as long."""
    assert words.times(values) == texts


@pytest.mark.parametrize(
    ("ratios", "decimals"),
    [
        ([(3.85, 0.2), (1.15, 0.05)], 2),
        ([(35.0, 12.0), (1.15, 0.05)], 2),
        ([(1.0, 0.001), (1.1, 0.002)], 3),
        ([(0.13, 0.02), (3.85, 0.2)], 3),
        ([(35.0, 12.0)], 0),
        ([(200.0, 12.0), (1.15, 0.05)], None),
        ([], None),
    ],
)
def test_the_ratios_of_a_column_share_their_decimals(
    ratios: list[tuple[float, float]], decimals: int | None
) -> None:
    """Of a ratio and the half-width of its interval, each row of a column."""
    rows = [contrast(ratio=ratio, low=ratio - half, high=ratio + half) for ratio, half in ratios]
    assert words.decimals(rows) == decimals


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0213, "0.0213"), (3.1, "3.1"), (5170.4, "5170"), (123456.0, "123000"), (0.0, "0")],
)
def test_large_numbers_have_no_exponents(value: float, text: str) -> None:
    """Three digits that count, of any size that a report has."""
    assert text == phrases.significant(value)


def test_memory_has_the_unit_that_fits() -> None:
    """`5.17 MB an iteration`, and not `5.17e+03 kB`."""
    for number, text in ((5.17e6, "5.17 MB"), (38_453.0, "38.5 kB")):
        grows = Finding(
            kind="memory grows",
            arm="a",
            case="c",
            shown=5,
            processes=5,
            indicative=False,
            numbers={"bytes": number},
        )
        (line,) = measured.sentences([grows])
        assert line == f"a, c: memory grows by {text} an iteration (in 5 of 5 processes)"
