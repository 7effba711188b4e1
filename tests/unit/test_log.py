"""What is said while something takes long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from orchestrator import log

if TYPE_CHECKING:
    import pytest


def test_the_first_job_is_named_before_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """An import of TensorFlow takes ten seconds, and nobody should wonder."""
    with log.progress("racing", 2) as progress:
        progress.start("tf114/tf.keras/graph  small-small/numpy/fit")
        assert capsys.readouterr().err == (
            "racing: 0 of 2 done; now tf114/tf.keras/graph  small-small/numpy/fit\n"
        )


def test_a_line_now_and_then_and_one_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Jobs of milliseconds do not fill a log."""
    with log.progress("racing", 3) as progress:
        for name in "abc":
            progress.start(name)
            progress.advance(f"{name}: ok")
    assert capsys.readouterr().err.splitlines() == [
        "racing: 0 of 3 done; now a",
        "racing: 3 of 3 done; last c: ok",
    ]


def test_work_may_become_more(capsys: pytest.CaptureFixture[str]) -> None:
    """A round that is added is counted from then on; the last line comes when all is done."""
    with log.progress("racing", 1) as progress:
        progress.advance("a: ok")
        progress.extend(2)
        progress.advance("b: ok")
        progress.advance("c: ok")
    assert capsys.readouterr().err.splitlines() == [
        "racing: 3 of 3 done; last c: ok",
    ]


def test_what_will_be_added_is_counted_as_expected(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only what is planned by now: three hours are not `1 min left`."""
    now = iter(range(0, 10_000, 60))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
    with log.progress("racing", 1) as progress:
        progress.start("a")
        progress.advance("a: ok")
        progress.extend(2, further=97)
        progress.start("b")
        progress.advance("b: ok")
        progress.extend(0)
    assert capsys.readouterr().err.splitlines() == [
        "racing: 0 of 1 done; now a",
        "racing: 1 of about 100 done, about 198 min left; now b",
        "racing: 2 of 3 done; last b: ok",
    ]
