"""The noise of a machine: read off a selftest, kept, found again, and told in words."""

from __future__ import annotations

import math
import os
import threading
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from orchestrator import noise
from orchestrator.merge import merge
from orchestrator.model.advice import Advice
from orchestrator.model.findings import Findings
from orchestrator.model.noise import Noise, NoiseCase
from orchestrator.model.quantities import Quantities
from orchestrator.model.reproducibility import Agreements
from orchestrator.paired import intervals
from orchestrator.report import goals, lines, machine
from orchestrator.verdict import compare
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from orchestrator.model.plan import Job, Plan

FOUND = Noise(
    machine="m0",
    created="2026-11-30T13:15:00+00:00",
    run_id="run0",
    environment="tf114",
    rounds=10,
    threshold=0.02,
    spread=0.04,
    detectable=0.06,
    processes=0.03,
    cases=(
        NoiseCase(
            arm="tf114/tf.keras/graph",
            case="small-small/numpy/fit",
            pairs=10,
            spread=0.04,
            ratio=1.01,
            low=0.98,
            high=1.04,
            excluded=False,
        ),
    ),
)


def plan(rounds: int = 4) -> Plan:
    """A selftest of two cases."""
    copy = factories.environment("tf114-2", lock="tf114")
    return factories.plan(
        environments=["tf114", copy],
        forms=[("tf.keras", "graph")],
        cases=[factories.case(), factories.case("fit")],
        rounds=rounds,
        selftest=True,
    )


def found(ratios: dict[str, Sequence[float]]) -> Noise:
    """The noise where the copy takes so many times as long, by method and round."""
    of = plan(rounds=len(next(iter(ratios.values()))))
    methods = {case.name: case.method for case in of.cases}
    records = factories.measured(
        of,
        lambda job: (
            0.01
            * (
                ratios[methods[job.case]][job.round - 1]
                if job.arm.environment == "tf114-2"
                else 1.0
            )
        ),
    )
    shown = noise.of(merge([(of, records)]), of)
    assert shown is not None
    return shown


def test_spread_is_pooled_over_the_cases() -> None:
    """Root of the mean variance of the blocks' log ratios, and the interval of each case."""
    up, down = math.exp(0.02), math.exp(-0.02)
    wide, far = math.exp(0.05), math.exp(0.01)
    shown = found({"train_on_batch": [up, down, up, down], "fit": [wide, far, wide, far]})
    deviation = 0.02 * math.sqrt(4 / 3)
    assert [pytest.approx(deviation)] * 2 == [case.spread for case in shown.cases]
    assert pytest.approx(deviation) == shown.spread
    assert [pytest.approx(1.0), pytest.approx(math.exp(0.03))] == [
        case.ratio for case in shown.cases
    ]
    assert [False, False] == [case.excluded for case in shown.cases]
    assert ("tf114", "m0", 4, "cpu") == (
        shown.environment,
        shown.machine,
        shown.rounds,
        shown.device,
    )


def test_intervals_that_exclude_1_are_counted_against_chance() -> None:
    """One of two is chance in one selftest of ten; two of two are not."""
    apart, even = [1.2, 1.21, 1.2, 1.21], [1.02, 0.98, 1.02, 0.98]
    one = found({"train_on_batch": apart, "fit": even})
    both = found({"train_on_batch": apart, "fit": apart})
    assert [True, False] == [case.excluded for case in one.cases]
    assert (False, True) == (noise.unlikely(one), noise.unlikely(both))


def test_nothing_to_pair_shows_nothing() -> None:
    """One round, or a run that went on on another machine, has no spread."""
    of = plan(rounds=1)
    assert None is noise.of(merge([(of, factories.measured(of, lambda _: 0.01))]), of)
    of = plan()
    records = factories.measured(of, lambda _: 0.01)
    moved = msgspec.structs.replace(factories.HOST, machine="m1", node="node1")
    records[-1] = msgspec.structs.replace(records[-1], host=moved)
    assert None is noise.of(merge([(of, records)]), of)


def test_what_is_shown_is_the_verdicts_own_formula() -> None:
    """At any number of rounds; more rounds show smaller differences."""
    rounds = np.array([6, 10, 20])
    expected = intervals.detectable(0.04 / np.sqrt(rounds), rounds, threshold=0.02, alpha=0.05)
    shown = [noise.shown(FOUND, int(number), threshold=0.02) for number in rounds]
    assert list(expected) == shown
    assert sorted(expected, reverse=True) == shown


def test_too_few_rounds_for_a_verdict_show_nothing() -> None:
    """Neither before a run, nor after a selftest, nor in a report of another run."""
    assert [None, True] == [
        noise.shown(FOUND, 4, threshold=0.02),
        noise.shown(FOUND, 5, threshold=0.02) is not None,
    ]
    assert "3 rounds: fewer than 5 are indicative, and give no verdict." == goals.here(
        3, None, expected=False
    )
    few = msgspec.structs.replace(FOUND, rounds=3)
    told = machine.selftest(few, shown={6: 0.09, 10: 0.06}, enough=5, unlikely=False, hints=())
    assert "too noisy" not in told
    assert told.splitlines()[-1] == (
        "3 rounds give no verdict: 5 are the fewest that do. By their spread, this machine can "
        "see differences of 9% with 6 and 6% with 10 rounds."
    )
    (line,) = lines.selftests(findings(lambda job: 0.01 + 0.0001 * job.round, tested=few))
    assert "The selftest of 2026-11-30 on this machine had a spread of 4% in 3 rounds." == line


def test_rounds_for_an_effect_are_the_fewest_that_show_it() -> None:
    """One less would not; a verdict's five are the least, and nobody waits for thousands."""
    enough = noise.rounds_for(FOUND, 0.02)
    assert enough is not None
    least, larger = (noise.shown(FOUND, enough - less, threshold=0.0) for less in (0, 1))
    assert least is not None
    assert larger is not None
    assert least <= 0.02 < larger
    assert 5 == noise.rounds_for(FOUND, 0.5)
    assert None is noise.rounds_for(FOUND, 0.0001)


def test_the_newest_selftest_of_the_machine_is_found(tmp_path: Path) -> None:
    """Not that of another machine or device, nor the run that asks."""
    older = msgspec.structs.replace(FOUND, created="2026-11-29T23:59:59+00:00", run_id="run1")
    for one in (
        FOUND,
        older,
        msgspec.structs.replace(FOUND, machine="m1", created="2026-12-01T00:00:00+00:00"),
        msgspec.structs.replace(FOUND, device="gpu", created="2026-12-02T00:00:00+00:00"),
    ):
        assert noise.keep(one, tmp_path)
    assert FOUND == noise.newest(tmp_path, "m0", "cpu")
    assert older == noise.newest(tmp_path, "m0", "cpu", without=("run0",))
    assert None is noise.newest(tmp_path, "m0", "cpu", without=("run0", "run1"))
    assert None is noise.newest(tmp_path, "m2", "cpu")
    assert None is noise.newest(tmp_path / "nothing", "m0", "cpu")


def test_of_two_writers_the_first_wins(tmp_path: Path) -> None:
    """What is stored is never rewritten, by however many at once."""
    wins: list[bool] = []

    def write(spread: float) -> None:
        wins.append(noise.keep(msgspec.structs.replace(FOUND, spread=spread), tmp_path))

    threads = [threading.Thread(target=write, args=(0.01 * number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == sum(wins)
    (file,) = (tmp_path / "machines" / "m0-cpu").iterdir()
    raw = file.read_bytes()
    assert not noise.keep(FOUND, tmp_path)
    assert raw == file.read_bytes()


def test_what_cannot_be_read_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damaged files, files of a later stackrace and of another machine hide no good one."""
    noise.keep(FOUND, tmp_path)
    folder = tmp_path / "machines" / "m0-cpu"
    (good,) = folder.iterdir()
    (folder / "99990101T000000+0000.json").write_bytes(good.read_bytes()[:50])
    (folder / "99990102T000000+0000.json").write_text('{"schema": "stackrace.noise/9"}')
    (folder / "99990103T000000+0000.json").mkdir()
    (folder / "99990104T000000+0000.json").write_bytes(
        good.read_bytes().replace(b'"m0"', b'"m9"').replace(b"2026", b"9999")
    )
    os.mkfifo(folder / "99990105T000000+0000.json")
    below = msgspec.structs.replace(FOUND, created="9999", spread=-1.0)
    (folder / "99990106T000000+0000.json").write_bytes(msgspec.json.encode(below))
    assert FOUND == noise.newest(tmp_path, "m0", "cpu")
    warned = capsys.readouterr().err
    assert 5 == warned.count("warning:")
    assert "99990101T000000+0000.json" in warned
    assert "stackrace.noise/9" in warned


def test_a_selftest_ends_with_what_can_be_seen() -> None:
    """The conclusion comes last; each case has a line; hints only where it is too noisy."""
    told = machine.selftest(
        FOUND, shown={6: 0.09, 10: 0.06, 20: 0.03}, enough=34, unlikely=False, hints=()
    ).splitlines()
    assert told[-1] == (
        "This machine can see differences of 6% and more (10 rounds). "
        "By the same formula 9% with 6 and 3% with 20."
    )
    assert "0 of 1 interval exclude 1; one expects 0.05 by chance." in told
    assert any(
        line.startswith("small-small/numpy/fit") and "0.980 - 1.040" in line for line in told
    )
    assert (
        "It is too noisy for the threshold of 2%: to tell 2% from nothing, it would take about "
        "34 rounds."
    ) in told
    quiet = machine.selftest(FOUND, shown={}, enough=8, unlikely=False, hints=())
    assert "too noisy" not in quiet


def test_what_is_more_than_twice_as_long_is_no_percentage() -> None:
    """A machine that sees next to nothing says so in a figure that can be read."""
    assert ["3%", "97%", "2.62x"] == [machine.effect(value) for value in (0.03, 0.97, 1.62)]


def findings(seconds: Callable[[Job], float], *, tested: Noise = FOUND) -> Findings:
    """What a run says whose machine was tested before."""
    of = factories.plan(rounds=6)
    frame = merge([(of, factories.measured(of, seconds))])
    return Findings(
        comparison=compare(frame, environments=["tf114", "tf20"], threshold=0.02),
        advice=Advice(),
        quantities=Quantities(cells=(), findings=()),
        agreements=Agreements(items=()),
        noise=(tested,),
    )


def test_reports_say_what_the_selftest_saw() -> None:
    """A line a machine; where processes vary much more than then, that as well."""
    base = (
        "The selftest of 2026-11-30 on this machine saw differences of 6% and more in 10 rounds "
        "(spread 4%)"
    )
    assert [f"{base}."] == lines.selftests(findings(lambda job: 0.01 + 0.0001 * job.round))
    (line,) = lines.selftests(findings(lambda job: 0.01 * (1 + job.round % 2)))
    assert line.startswith(f"{base}; its processes varied by 3%, those here ")
    assert line.endswith("the machine was busier, or these models are less even.")
