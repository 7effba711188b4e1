"""Collects what the tests find, and writes it as a page when that is asked for.

`pytest tests/simulation --write-rigour docs/rigour.md`; STACKRACE_SIMULATE=full for the full size.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import values
from tests.simulation.figures import Figure, Keep, page

_PROPERTY = "rigour"
_OPTION = "--write-rigour"
_collected: list[tuple[Figure, bool]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to write the page; nowhere by default."""
    parser.addoption(_OPTION, metavar="FILE", default=None, help="write what was found as a page")


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Keep:
    """Keep a figure for the page, whether or not the test passes afterwards."""

    def kept(target: str, what: str, *, bound: str, found: str, size: str) -> None:
        # As a property of the test, so that it crosses from the processes of xdist to the first.
        figure = Figure(target, what, bound, found, size)
        request.node.user_properties.append((_PROPERTY, tuple(figure)))

    return kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what a test that ended has kept."""
    if report.when == "call":
        _collected.extend(
            (Figure(*value), report.passed)
            for name, value in report.user_properties
            if name == _PROPERTY and isinstance(value, (tuple, list))
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page, in the process that has all reports."""
    asked = session.config.getoption(_OPTION, default=None)
    if asked is None or hasattr(session.config, "workerinput"):
        return
    small = "This page shows what every test run draws; `nox -s rigour` draws ten times as many."
    full = (
        "This page shows the full size (STACKRACE_SIMULATE=full), which takes half an hour; every "
        "test run\ndraws a tenth of it, with the same bounds but for R11."
    )
    how = full if values.TIMES > 1 else small
    Path(asked).write_text(page(_collected, how=how), encoding="utf-8")
