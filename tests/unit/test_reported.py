"""Public reports: the table of them, and whether a claim agrees with what was measured."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator import reported
from orchestrator.errors import InputError
from orchestrator.merge import merge
from orchestrator.model import codec
from orchestrator.model.reports import Cell, Claim, Report, Reports
from orchestrator.pipeline import reported as command
from orchestrator.pipeline.reported import written
from orchestrator.store import RunFolder
from tests.factories import by_arm, case, measured, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "examples" / "reports.toml"
DOCUMENT = ROOT / "docs" / "reports.md"
OLD = Cell(arm="tf114/tf.keras/graph", case=case().name)
NEW = Cell(arm="tf20/tf.keras/graph", case=case().name)
SECONDS = [0.010, 0.011, 0.0105, 0.0102, 0.0108, 0.0101]


def reports() -> dict[str, Report]:
    """The table that is committed."""
    return codec.decode_toml(TABLE.read_text(encoding="utf-8"), Reports, source=TABLE).report


def frame(ratios: Sequence[float]) -> pd.DataFrame:
    """A run in which tf20 takes so many times as long as tf114, round by round."""
    forms = (("tf.keras", "graph"),)
    of = plan(forms=forms, rounds=len(ratios))  # type: ignore[arg-type] # literals
    slow = [second * ratio for second, ratio in zip(SECONDS, ratios, strict=False)]
    return merge([(of, measured(of, by_arm({OLD.arm: SECONDS, NEW.arm: slow})))])


def claim(**facts: Any) -> Claim:  # noqa: ANN401
    """That tf20 is slower, unless said otherwise."""
    values: dict[str, Any] = {
        "says": "it is",
        "candidate": NEW,
        "reference": OLD,
        "expected": "slower",
    }
    return Claim(**(values | facts))


def test_every_report_has_a_place_in_the_document() -> None:
    """And a command, a claim, and arms that the command names."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, report in reports().items():
        assert f"<!-- report {name} -->" in text
        words = shlex.split(report.run)
        assert int(words[words.index("--rounds") + 1]) >= 5
        assert report.claims
        for item in report.claims:
            environment = item.candidate.arm.split("/")[0]
            named = [re.sub(r"tensorflow==(.*)\+keras==", r"tf\1-keras", word) for word in words]
            assert environment in named


def test_every_example_is_there() -> None:
    """A workload that a command names exists."""
    for report in reports().values():
        words = shlex.split(report.run)
        files = [words[i + 1] for i, word in enumerate(words) if word == "--workload"]
        assert [] == [name for name in files if not (ROOT / name).is_file()]


@pytest.mark.parametrize(
    ("ratios", "expected", "answer"),
    [
        ([1.5, 1.6, 1.4, 1.5, 1.5, 1.55], "slower", "agrees"),
        ([1.5, 1.6, 1.4, 1.5, 1.5, 1.55], "faster", "contradicts"),
        ([1.0, 1.001, 0.999, 1.0, 1.001, 1.0], "same", "agrees"),
        ([1.0, 1.001, 0.999, 1.0, 1.001, 1.0], "slower", "contradicts"),
        ([0.5, 2.0, 0.5, 2.0, 0.5, 2.0], "slower", "unclear"),
    ],
)
def test_a_ratio_agrees_when_its_whole_interval_does(
    ratios: list[float], expected: str, answer: str
) -> None:
    """Beyond the threshold, or inside it; an interval that is in both is no answer."""
    found = reported.check(claim(expected=expected), frame(ratios), threshold=0.02)
    assert answer == found.answer
    assert len(ratios) == found.processes


def test_a_ratio_is_the_mean_over_rounds() -> None:
    """The geometric mean of the rounds' ratios, whatever a round's own speed."""
    found = reported.check(claim(), frame([2.0, 2.0, 2.0, 2.0, 2.0]), threshold=0.02)
    assert pytest.approx(2.0) == found.middle
    assert pytest.approx(2.0) == found.low


def test_an_amount_is_held_against_its_limit() -> None:
    """How often a step was traced again: of 200 steps, each."""
    of = plan(forms=(("tf.keras", "graph"),), rounds=5)
    records = measured(of, lambda _: 0.01)
    table = merge([(of, records)])
    table["retraces"] = 200
    wanted = claim(reference=None, quantity="retraces", limit=0.9, expected="above")
    assert "agrees" == reported.check(wanted, table, threshold=0.02).answer
    table["retraces"] = 0
    assert "contradicts" == reported.check(wanted, table, threshold=0.02).answer


def test_one_process_is_no_measurement() -> None:
    """It has no interval."""
    assert "not measured" == reported.check(claim(), frame([1.5]), threshold=0.02).answer


def test_nothing_is_no_measurement() -> None:
    """Where every process was lost, there is no number."""
    table = frame([1.5, 1.6])
    table["outcome"] = "crashed"
    found = reported.check(claim(), table, threshold=0.02)
    assert ("not measured", "2 of 2 crashed") == (found.answer, found.reason)


def test_lost_processes_are_told() -> None:
    """The answer stands on those that are left."""
    table = frame([1.5, 1.6, 1.4, 1.5, 1.55, 1.45])
    lost = (table["arm"] == NEW.arm) & (table["round"] == 1)
    table.loc[lost, ["outcome", "median_s"]] = ["timed_out", None]
    found = reported.check(claim(), table, threshold=0.02)
    told = (found.answer, found.processes, found.reason)
    assert ("agrees", 5, "1 of 6 timed_out") == told


def test_a_cell_that_is_not_there_is_refused() -> None:
    """A claim about another run is a mistake in the table."""
    wanted = claim(candidate=Cell(arm="tf99/keras/graph", case="x"))
    with pytest.raises(InputError, match="no cell tf99"):
        reported.check(wanted, frame([1.0, 1.0]), threshold=0.02)


def test_a_section_is_made_from_its_run(tmp_path: Path) -> None:
    """Between its marks, with the command, the numbers and the finding; the rest stays."""
    of = plan(forms=(("tf.keras", "graph"),), rounds=5)
    folder = RunFolder.create(tmp_path, of)
    times = {OLD.arm: SECONDS, NEW.arm: [2 * second for second in SECONDS]}
    for item in measured(of, by_arm(times)):
        folder.write(item)
    report = Report(
        title="A thing",
        source="somewhere",
        said="it is slow.",
        run="tf114 tf20",
        claims=(claim(),),
        finding="So it is.",
    )
    text = written("a\n<!-- report 7 -->\nold\n<!-- end of report 7 -->\nb\n", "7", report, folder)
    assert text.startswith("a\n<!-- report 7 -->\n## 7. A thing\n")
    assert text.endswith("So it is.\n<!-- end of report 7 -->\nb\n")
    assert "stackrace run tf114 tf20\n" in text
    assert "| it is | 2.00x | 2.00 to 2.00 | **agrees** |" in text
    assert "5 rounds, 10 of 10 processes ok" in text
    assert "old" not in text
    with pytest.raises(InputError, match="no place for report 8"):
        written(text, "8", report, folder)


def test_few_processes_are_no_answer() -> None:
    """As in a verdict, five are the fewest."""
    found = reported.check(claim(), frame([1.5, 1.6, 1.4, 1.5]), threshold=0.02)
    assert ("unclear", "4 are too few") == (found.answer, found.reason)


def test_nothing_is_measured_for_a_page_that_cannot_take_it(tmp_path: Path) -> None:
    """A document without the report's place, one that is no text, or none at all."""
    page = tmp_path / "reports.md"
    with pytest.raises(InputError, match=r"reports\.md cannot be read"):
        command.main([str(TABLE), str(page), "3"])
    page.write_text("nothing")
    with pytest.raises(InputError, match="no place for report 3"):
        command.main([str(TABLE), str(page), "3"])
    with pytest.raises(InputError, match="no place for report 3"):
        command.main([str(TABLE), str(page), "--written", "3"])  # ids behind an option, too
    page.write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        command.main([str(TABLE), str(page), "3"])
