"""What the reports say in each situation, in the terminal and in Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from orchestrator.model.result import Proof
from orchestrator.pipeline import reading
from orchestrator.store import RunFolder
from tests import factories
from tests.reporting import SECONDS, Reports, raced, scaled, usual

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.model.plan import Job

BOTH = [factories.case(), factories.case("fit")]
UNCLEAR = (
    "tf20 as installed against tf114 at train_on_batch is unclear: at most 12% slower or 12% "
    "faster (0.89 to 1.12)."
)


def test_the_screen_as_a_whole() -> None:
    """The answer, the figures, how far to trust them, what to do: in this order."""
    plan = factories.plan(cases=BOTH)
    shown = Reports(
        plan,
        factories.measured(plan, usual),
        width=80,
        preparing_s=31,
        folder=Path("results/7f3a"),
    ).terminal
    assert shown.startswith(
        """\
tf114 = TensorFlow 1.14.0, Keras 2.2.5     tf20 = TensorFlow 2.0.0, Keras 2.3.1
CPU (no GPU asked for), 2 cores, Python 3.7.16 in both, 6 rounds interleaved

tf20 as installed is 3.86x SLOWER than tf114 at train_on_batch (3.82 to 3.91).
Most of it is eager mode: graph against graph it is 1.15x (1.14 to 1.17).
"""
    )
    assert "small-small, tf.keras, numpy       tf114      tf20  ratio" in shown
    assert (
        "* tf114 graph, tf20 eager. ratio = tf20 time / tf114 time, averaged over blocks; above 1 "
        "is slower."
    ) in " ".join(shown.split())
    assert shown.endswith(
        """\
48 of 48 jobs ok, 2 min 24 s measuring, 31 s preparing.

your model?  stackrace run tf114 tf20 --workload FILE.py
report       results/7f3a/report.md"""
    )
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_every_row_has_times_ratio_interval_and_verdict() -> None:
    """As installed first, then each mode."""
    shown = raced(usual)
    assert shown.line("train_on_batch as installed *").split()[4:8] == ["6.62", "ms", "25.49", "ms"]
    assert shown.line("graph").endswith("1.15x 1.14 - 1.17 slower")
    assert (
        "| train_on_batch | graph | 6.62 ms | 7.61 ms | 1.15x | 1.14 - 1.17 | <0.001 | slower |"
        in (shown.markdown)
    )


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (
            scaled(1.5, wobble=0.01),
            "tf20 as installed is 1.50x SLOWER than tf114 at train_on_batch (1.48 to 1.52).",
        ),
        (
            scaled(0.5, wobble=0.01),
            "tf20 as installed is 2.00x FASTER than tf114 at train_on_batch (1.98 to 2.02).",
        ),
        (
            scaled(1.0, wobble=0.01),
            "tf20 as installed is as fast as tf114 at train_on_batch, within 2% (0.99 to 1.01).",
        ),
        (
            scaled(1.0, wobble=0.1),
            UNCLEAR,
        ),
    ],
)
def test_the_answer_in_words(seconds: Callable[[Job], float], sentence: str) -> None:
    """One sentence for each state, the same in both reports."""
    shown = raced(seconds)
    assert shown.sentences.startswith(sentence)
    assert f"**{sentence}**" in shown.markdown


def test_eager_mode_is_blamed_only_where_the_figures_say_so() -> None:
    """Graph against graph is half of it and more: then it is not only eager mode."""
    assert "It is not only eager mode: graph against graph it is 1.50x" in (
        raced(scaled(1.5, wobble=0.01)).sentences
    )


def test_eager_mode_is_all_of_it_where_graph_mode_is_not_slower() -> None:
    """Graph against graph is faster: nothing is left for the version."""
    times = {**SECONDS, "tf20/tf.keras/graph": 0.006}
    assert "All of it is eager mode: graph against graph it is 0.906x" in (
        raced(lambda job: times[job.arm.name] * (1 + job.slot * 1e-4)).sentences
    )


def test_wide_intervals_blame_nobody() -> None:
    """Where graph against graph may be much or nothing of it, the words leave that open."""
    noise = {"tf20/tf.keras/graph": 1.5}
    assert "How much of it is eager mode is unclear: graph against graph it is" in (
        raced(
            lambda job: SECONDS[job.arm.name] * (1 + noise.get(job.arm.name, 0.0) * (job.round % 2))
        ).sentences
    )


def test_no_explanation_is_given_for_what_is_not_slower() -> None:
    """A faster version needs no culprit."""
    assert "eager mode" not in raced(scaled(0.5, wobble=0.01)).sentences


def test_few_blocks_are_called_indicative() -> None:
    """The ratio is shown, the verdict is not."""
    shown = raced(usual, rounds=2)
    assert "No verdict: 2 blocks, a verdict needs 5." in shown.sentences
    assert "SLOWER" not in shown.terminal
    assert "all rows: no verdict, indicative: 2 blocks, a verdict needs 5" in shown.terminal
    assert shown.line("A verdict needs").endswith("q < .05, from 5 blocks on.")
    assert "interleaved" not in shown.terminal


def test_an_unclear_row_says_what_is_still_possible() -> None:
    """Below the table, with the row that it is about."""
    shown = raced(scaled(1.0, wobble=0.1))
    assert "unclear, at most 12% slower or 12% faster" in shown.terminal
    assert "unclear, at most 12% slower or 12% faster" in shown.markdown


def partly(outcome: str, where: Callable[[Job], bool], **facts: Any) -> Reports:  # noqa: ANN401
    """A run with keras as well, in which some jobs end otherwise."""
    plan = factories.plan(
        forms=[("tf.keras", "graph"), ("keras", "eager"), ("keras", "graph")], rounds=6
    )
    records = [
        factories.record(plan, job, outcome=outcome, message="it is | so\nlog", **facts)  # type: ignore[arg-type]
        if where(job)
        else factories.record(plan, job, values=[scaled(1.5)(job)])
        for job in plan.jobs
    ]
    return Reports(plan, records)


def test_a_cell_that_cannot_run_is_listed_with_its_reason() -> None:
    """No row is left out; the reason stands once, below."""
    shown = partly("unsupported", lambda job: (job.arm.api, job.arm.mode) == ("keras", "eager"))
    entry = "tf20/keras/eager, small-small/numpy/train_on_batch: unsupported (6 jobs): it is"
    assert "No number:\n  tf114/keras/eager" in shown.terminal
    assert f"  {entry} | so" in shown.terminal
    assert f"- {entry} \\| so" in shown.markdown
    assert shown.line("eager - ") == "eager - - - - no number"
    assert "24 of 36 jobs ok, 12 unsupported" in shown.terminal
    assert (
        "tf20/keras/eager against tf114/keras/eager at train_on_batch has no number: "
        "tf20/keras/eager unsupported: it is | so."
    ) in shown.sentences
    assert "unsupported |" in shown.markdown.split("## Seconds per iteration")[1]


def test_a_job_that_failed_once_is_listed_beside_the_number() -> None:
    """The cell has its number from five blocks, and the reader knows about the sixth."""
    shown = partly("crashed", lambda job: (job.round, job.arm.name) == (2, "tf20/keras/graph"))
    lost = "tf20/keras/graph, small-small/numpy/train_on_batch: crashed (1 job): it is | so"
    assert f"Lost jobs:\n  {lost}" in shown.terminal
    assert "1 of 6 blocks dropped: tf20/keras/graph crashed" in shown.terminal
    assert "35 of 36 jobs ok, 1 crashed" in shown.terminal


def test_three_environments_stand_below_each_other() -> None:
    """A line an environment, each with its own ratio against the reference."""
    plan = factories.plan(environments=["tf114", "tf20", "tf21"])
    shown = Reports(plan, factories.measured(plan, usual))
    assert shown.line("train_on_batch as installed * tf114").endswith("6.62 ms - - reference")
    assert shown.line("tf20 25.49 ms 3.863x").endswith("slower")
    assert shown.line("tf21 3.30 ms").endswith("faster")
    assert "tf21 as installed is 2.01x FASTER than tf114" in shown.sentences
    footnote = "ratio = time / tf114 time, averaged over blocks; above 1 is slower."
    assert footnote in " ".join(shown.terminal.split())
    assert max(len(line) for line in shown.terminal.splitlines()) <= 100


def test_an_arm_as_reference_has_every_other_arm_below_it() -> None:
    """Nothing is as installed then: the one arm is in every denominator."""
    plan = factories.plan()
    shown = Reports(plan, factories.measured(plan, usual), reference="tf114/tf.keras/graph")
    assert shown.line("train_on_batch graph tf114").endswith("6.62 ms - - reference")
    assert shown.line("eager tf114").endswith("slower")
    assert "as installed" not in shown.terminal
    assert "ratio = time / tf114/tf.keras/graph time" in shown.terminal


def test_one_environment_alone_shows_its_times() -> None:
    """Modes are still compared; versions are not."""
    plan = factories.plan(environments=["tf114"])
    shown = Reports(plan, factories.measured(plan, usual))
    row = shown.line("train_on_batch tf114")
    assert row.startswith("train_on_batch tf114 6.62 ms 14.2 ms 2.15x")
    assert shown.terminal.count("14.2 ms") == 1
    assert "eager is 2.15x SLOWER than graph at train_on_batch" in shown.sentences


def test_a_kind_alone_is_counted_in_the_answer() -> None:
    """Who asks for one kind of contrast gets that, not a complaint about versions."""
    plan = factories.plan(cases=BOTH)
    shown = Reports(plan, factories.measured(plan, usual), kinds=["method"])
    assert shown.sentences.startswith("fit against train_on_batch over 4 comparisons: 1.000x (1.0")
    assert shown.sentences.endswith("; 4 same.")
    assert shown.line("tf114 graph").endswith("1.000x 1.000 - 1.000 same")


def test_a_kind_alone_draws_its_own_table_only() -> None:
    """What was asked for is drawn; a table of versions would have no ratio in it."""
    plan = factories.plan(cases=BOTH)
    shown = Reports(plan, factories.measured(plan, usual), kinds=["mode"])
    assert "not compared" not in shown.terminal + shown.markdown
    assert "eager against graph: small-small" in shown.terminal
    assert "ratio = right time / left time" in " ".join(shown.terminal.split())


def test_the_reference_stands_to_the_left() -> None:
    """The columns have the order of the sentence below them."""
    plan = factories.plan()
    shown = Reports(plan, factories.measured(plan, usual), reference="tf20")
    assert "small-small, tf.keras, numpy tf20 tf114 ratio 95% interval verdict" in " ".join(
        shown.terminal.split()
    )
    assert "ratio = tf114 time / tf20 time" in " ".join(shown.terminal.split())


def test_a_cut_run_says_what_is_missing_instead_of_dashes() -> None:
    """Before a block is complete there is nothing to draw."""
    plan = factories.plan()
    shown = Reports(plan, factories.measured(plan, usual)[:3])
    for text in (shown.terminal, shown.markdown):
        assert "Nothing can be said yet: 24 of 24 jobs are missing" in " ".join(text.split())
        assert "not compared" not in text
        assert "0 of 24 jobs ok, 24 missing" in " ".join(text.split())


def test_many_environments_are_told_row_by_row() -> None:
    """Seconds and percents of 26 environments are no wider than those of one."""
    names = [f"tf{number}" for number in range(26)]
    plan = factories.plan(environments=names)
    shown = Reports(plan, factories.measured(plan, lambda job: 0.01 + job.slot / 1000))
    rows = [line for line in shown.markdown.splitlines() if line.startswith("|")]
    assert max(line.count("|") for line in rows) <= 10
    assert max(len(line) for line in shown.terminal.splitlines()) <= 100


def test_runs_that_were_merged_say_how(tmp_path: Path) -> None:
    """Rounds are interleaved within each run; times are of all, ratios of each."""
    for name in ("run0", "run1"):
        plan = factories.plan(run_id=name)
        folder = RunFolder.create(tmp_path, plan)
        for record in factories.measured(plan, usual):
            folder.write(record)
    shown = " ".join(reading.compare([tmp_path / "run0", tmp_path / "run1"]).text.split())
    assert "12 rounds in 2 runs, interleaved in each" in shown
    assert "Times are medians over the processes of all 2 runs" in shown


def test_one_arm_alone_says_that_there_is_nothing_to_compare() -> None:
    """No rule, no footnote, no verdict: only its time."""
    plan = factories.plan(environments=["tf114"], forms=[("tf.keras", "graph")])
    shown = Reports(plan, factories.measured(plan, usual))
    assert shown.sentences == (
        "tf114/tf.keras/graph takes 6.62 ms an iteration at small-small/numpy/train_on_batch: "
        "nothing else was measured to compare it with."
    )
    assert "verdict" not in shown.terminal


def test_many_cases_are_counted() -> None:
    """Nobody reads thirty sentences; the extremes are named."""
    cases = [factories.case(data=f"d{number}") for number in range(8)]
    plan = factories.plan(cases=cases, forms=[("tf.keras", "graph"), ("tf.keras", "eager")])
    factors = {f"d{number}": factor for number, factor in enumerate((3, 2, 2, 1, 1, 1, 1, 0.5))}

    def seconds(job: Job) -> float:
        factor = next(value for name, value in factors.items() if f"-{name}/" in job.case)
        return scaled(factor, wobble=0.005)(job)

    shown = Reports(plan, factories.measured(plan, seconds))
    assert shown.sentences.startswith("tf20 as installed against tf114 over 8 cases: 1.25")
    assert shown.sentences.endswith(
        "from 0.500x (small-d7/numpy/train_on_batch) to 3.00x (small-d0/numpy/train_on_batch); "
        "3 slower, 1 faster, 4 same."
    )


def test_many_further_contrasts_are_left_to_the_file() -> None:
    """The terminal counts them, the file has them all."""
    cases = [factories.case(data=f"d{number}") for number in range(13)]
    plan = factories.plan(cases=cases)
    shown = Reports(plan, factories.measured(plan, lambda _: 0.01), folder=Path("results/7f3a"))
    assert "More in report.md:\n  eager against graph: 26 same" in shown.terminal
    assert "### eager against graph: small-d12, tf.keras, numpy" in shown.markdown


def test_different_pythons_are_said_everywhere() -> None:
    """In the line about the machine, in the answer and below the table."""
    later = factories.environment("tf20", python="3.8.18")
    plan = factories.plan(environments=["tf114", later])
    shown = Reports(plan, factories.measured(plan, usual))
    assert "Python 3.7.16 (tf114), 3.8.18 (tf20)" in shown.terminal
    assert "(confounded: Python 3.8.18 against 3.7.16)" in shown.sentences
    assert "confounded: Python 3.8.18 against 3.7.16" in shown.markdown


def test_the_file_has_seconds_and_percents_of_every_cell() -> None:
    """+ where the newer version, or graph mode, is faster."""
    table = raced(usual).markdown.split("## Seconds per iteration, and percents")[1]
    told, _, header, _, row = table.strip().splitlines()[:5]
    assert told.startswith("A percent says how much longer the slower of the two takes")
    assert header == (
        "| case | api | tf114 graph | tf114 eager | tf20 graph | tf20 eager "
        "| tf20 vs tf114 as installed | tf20 vs tf114 graph | tf20 vs tf114 eager "
        "| tf114 graph vs eager | tf20 graph vs eager |"
    )
    assert row == (
        "| small-small/numpy/train_on_batch | tf.keras | 0.00662 | 0.0142 | 0.00761 | 0.0255 "
        "| -285% | -15% | -79% | +115% | +235% |"
    )


def test_the_file_says_where_the_time_goes_and_what_it_holds_for() -> None:
    """Phases apart from the iterations; machine, versions and locks."""
    shown = raced(usual).markdown
    assert "| session | 1.00 s | 100 ms | 200 ms | 500 ms | 6.62 ms |" in shown
    assert "- Machine: Test CPU, 2 cores" in shown
    assert "- tf20: TensorFlow 2.0.0, Keras 2.3.1, Python 3.7.16, cpu packages of lock" in shown
    assert shown.endswith("- Run: run0\n")


def test_a_run_that_measured_nothing_is_still_a_report() -> None:
    """Every cell is missing, with its reason."""
    shown = Reports(factories.plan(), [])
    assert "0 of 24 jobs ok, 24 missing, under 1 s measuring" in shown.terminal
    assert "missing (6 jobs): no record: the run was interrupted" in shown.markdown


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_nothing_is_ever_nan(width: int, rounds: int) -> None:
    """With one round, with failures, at any width: numbers or a dash."""
    plan = factories.plan(cases=BOTH, rounds=rounds)
    records = factories.measured(plan, lambda _: 0.01)
    records[0] = factories.record(plan, plan.jobs[0], outcome="failed")
    shown = Reports(plan, records, width=width)
    for text in (shown.terminal, shown.markdown):
        assert re.search(r"\b(nan|inf|None|NaN)\b", text) is None
        assert "\n\n\n" not in text


def test_colour_only_where_it_is_asked_for() -> None:
    """A file or a pipe gets plain text, the same words."""
    plain, coloured = raced(usual).terminal, raced(usual, colour=True).terminal
    assert "\x1b" not in plain
    assert "\x1b[1;31mSLOWER" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == plain.split()


GPU = factories.case(device="gpu")
H200 = msgspec.structs.replace(factories.HOST, gpus=({"name": "NVIDIA H200", "uuid": "GPU-1"},))


def on_both(proof: str) -> Reports:
    """Both devices raced: the GPU takes half the time; what is proven of it."""
    plan = factories.plan(cases=[factories.case(), GPU])
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                [0.005 + job.slot / 1e5] * 3,
                proof=Proof(device=proof, how="seen"),  # type: ignore[arg-type]
            ),
            host=H200,
        )
        if "@gpu" in job.case
        else factories.record(plan, job, values=[0.01 + job.slot / 1e5] * 3)
        for job in plan.jobs
    ]
    return Reports(plan, records)


def test_a_gpu_is_named_and_compared_with_the_cpu() -> None:
    """The device stands in the header and in the rows; devices are paired by round."""
    shown = on_both("gpu")
    assert "CPU and GPU (NVIDIA H200), 2 cores" in shown.terminal
    assert "GPU against CPU: small-small, tf.keras, numpy" in shown.terminal
    assert "faster" in shown.line("train_on_batch tf114 graph")
    assert "?" not in shown.terminal


def test_what_is_not_proven_is_marked() -> None:
    """A time that may be one of the CPU is never silently one of the GPU."""
    shown = on_both("unknown")
    assert "5.01 ms ?" in shown.terminal or "5.02 ms ?" in shown.terminal
    for text in (shown.terminal, shown.markdown):
        assert "? not proven to have run on the GPU: tf114/tf.keras/graph" in " ".join(text.split())
