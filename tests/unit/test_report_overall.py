"""What reports say of many cases together, and what they leave out where there are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.model.plan import Goal
from tests import factories
from tests.reporting import Reports, raced, usual

if TYPE_CHECKING:
    from orchestrator.model.plan import Job

KNOBS: tuple[dict[str, str], ...] = ({}, {"compiled": "no"}, {"jit_compile": "yes"})
SPEED = {"": 0.01, "compiled=no": 0.005, "jit_compile=yes": 0.02}


def grid(goal: Goal | None = None) -> Reports:
    """tf20 takes 1.3 times as long in eager mode only; a dataset half as long as arrays."""
    cases = [
        factories.case(method, input=given)
        for method in ("train_on_batch", "fit")
        for given in ("numpy", "dataset")
    ]
    plan = factories.plan(cases=cases, goal=goal)

    def seconds(job: Job) -> float:
        slow = 1.3 if job.arm.name == "tf20/tf.keras/eager" else 1.0
        wobble = 1 + 0.002 * (job.round % 3)
        return 0.01 * slow * wobble * (0.5 if "/dataset/" in job.case else 1.0)

    return Reports(plan, factories.measured(plan, seconds))


def turned(*, environments: tuple[str, ...] = ("tf20",)) -> Reports:
    """One case with each of two knobs, and without."""
    cases = [factories.case(knobs=knobs) for knobs in KNOBS]
    plan = factories.plan(environments=environments, forms=[("tf.keras", "eager")], cases=cases)
    return Reports(
        plan,
        factories.measured(
            plan, lambda job: SPEED[job.case.partition("+")[2]] * (1 + job.round / 1000)
        ),
    )


def together(shown: Reports) -> str:
    """The section of report.md."""
    return shown.markdown.split("## Over all cases")[1].split("\n## ")[0]


def test_many_cases_have_one_sentence_and_five_lines() -> None:
    """Mean, range and verdicts; then the axes by what they matter, and how they interact."""
    shown = grid()
    text = " ".join(shown.terminal.split())
    assert "tf20 as installed against tf114 over 4 cases: 1.30" in text
    assert "; 4 slower." in text
    told = shown.terminal.split("On average over all cases:\n")[1].split("\n\n")[0]
    assert "input matters most: numpy takes 2.00" in told
    assert "the time of dataset" in told
    assert "version tf20 against tf114 takes 1.00x with mode graph, but 1.30x with" in told
    assert "method does not matter (within" in told
    entries = [line for line in told.splitlines() if not line.startswith("    ")]
    assert len(entries) <= 7  # five entries, of which some are wrapped
    assert "does not matter" not in shown.terminal.split("Advice, from")[1]


def test_a_table_has_the_mean_at_each_value_of_the_other_axes() -> None:
    """For every step, not for versions alone."""
    page = together(grid())
    version = page.split("### version, against tf114")[1].split("###")[0]
    rows = [line.split(" | ") for line in version.strip().splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == [
        "everywhere",
        "mode graph",
        "mode eager",
        "input numpy",
        "input dataset",
        "method train_on_batch",
        "method fit",
    ]
    assert [row[1] for row in rows] == ["8", "4", "4", "4", "4", "4", "4"]
    assert rows[1][2].startswith("1.00")
    assert rows[2][2].startswith("1.30")
    assert "### mode, against graph" in page
    assert "### input, against numpy" in page


def test_values_that_always_come_together_are_one_row() -> None:
    """Nothing tells apart what an input does from what its method does."""
    cases = [
        factories.case("train_on_batch", input="numpy"),
        factories.case("fit", input="dataset"),
    ]
    plan = factories.plan(cases=cases)
    page = together(Reports(plan, factories.measured(plan, usual)))
    assert "| input numpy, method train_on_batch | 2 |" in page
    assert "| input dataset, method fit | 2 |" in page


def test_one_case_has_no_summary() -> None:
    """The ranges of two modes and versions say no more than the table above; no empty advice."""
    cases = [factories.case(knobs=knobs) for knobs in KNOBS[:2]]
    plan = factories.plan(environments=["tf20"], forms=[("tf.keras", "eager")], cases=cases)
    shown = Reports(plan, factories.measured(plan, lambda _: 0.01))
    assert "over all cases" not in shown.terminal
    assert "Over all cases" not in shown.markdown
    assert "Range of each axis" not in shown.markdown
    assert "**Take**" not in shown.markdown
    assert "- compiled does not matter: within 0% (1 comparison)" in shown.markdown


@pytest.mark.parametrize(
    ("goal", "right", "wrong"),
    [(None, "95% interval", "96%"), (Goal(precision=0.02), "96% interval", "95%")],
)
def test_intervals_are_called_what_they_are(goal: Goal | None, right: str, wrong: str) -> None:
    """By the tables of terminal and page, and by the sentence over all cases."""
    shown = grid(goal)
    assert f"{right} " in shown.terminal
    assert f"| {right} |" in shown.markdown
    assert f"with their {right}s over rounds" in together(shown)
    assert wrong not in shown.terminal + shown.markdown


def test_knobs_stand_in_one_table() -> None:
    """A row each with its contrast; the times are not told twice."""
    shown = turned()
    assert shown.terminal.count("95% interval") == 1
    assert "against default: small-small, tf.keras, numpy" in shown.terminal
    assert shown.line("compiled=no train").endswith("0.500x 0.500 - 0.500 faster")
    assert shown.line("jit_compile=yes train").split()[-1] == "slower"
    assert "time\n" not in shown.terminal  # of a table without verdicts


def test_knobs_stand_in_one_table_of_two_versions() -> None:
    """A row a knob; what all of them have turned is in the title."""
    shown = turned(environments=("tf114", "tf20"))
    first = shown.terminal.split("\n\n")[2]
    assert first.startswith("small-small, tf.keras, numpy")
    rows = [" ".join(line.split()) for line in first.splitlines()[1:4]]
    assert [row.split()[1 if place == 0 else 0] for place, row in enumerate(rows)] == [
        "default",
        "compiled=no",
        "jit_compile=yes",
    ]


def test_a_headline_of_knobs_names_the_method() -> None:
    """And says how many times faster, not the time that is left."""
    shown = turned()
    assert (
        "compiled=no is 2.000x FASTER than compiled=default at train_on_batch (2.000 to 2.000)."
        in shown.sentences
    )
    few = Reports(
        plan := factories.plan(
            environments=["tf20"],
            forms=[("tf.keras", "eager")],
            cases=[factories.case(knobs=knobs) for knobs in KNOBS[:2]],
            rounds=2,
        ),
        factories.measured(plan, lambda job: SPEED[job.case.partition("+")[2]]),
    )
    assert few.sentences == (
        "compiled=no was 2.000x faster than compiled=default at train_on_batch. No verdict: "
        "2 rounds, a verdict needs 5."
    )


def test_knobs_of_many_values_are_cut_in_the_middle() -> None:
    """Nobody reads sixteen shapes in the header of a column."""
    shapes = ",".join(f"{size}x{size}x1" for size in range(20, 52, 2))
    cases = [factories.case(), factories.case(knobs={"shape": shapes})]
    plan = factories.plan(environments=["tf20"], forms=[("tf.keras", "eager")], cases=cases)
    shown = Reports(plan, factories.measured(plan, lambda _: 0.01))
    assert "shape=20x20x1,...,50x50x1 (16) against shape=default" in shown.terminal


def test_legends_explain_the_columns_that_are_there() -> None:
    """No percents, no slopes, no percentiles: no word of them."""
    plan = factories.plan(environments=["tf20"], forms=[("tf.keras", "eager")])
    page = Reports(plan, factories.measured(plan, usual)).markdown
    assert "## Seconds per iteration\n" in page
    assert "percent says" not in page
    assert "Slopes:" not in page
    assert "Percentiles:" not in page
    assert "A percent says how much longer" in raced(usual).markdown
