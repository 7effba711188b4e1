"""Which rows, titles and hints a report has, and which it leaves out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests import factories
from tests.reporting import Reports, raced, scaled, usual

COMMAND = "nox -s bench-tf114 bench-tf20 -- --rounds 20"


def test_as_installed_and_its_own_mode_are_one_row() -> None:
    """tf20 and tf21 both start eager: the same cells stand in one row, in both reports."""
    plan = factories.plan(environments=["tf20", "tf21"])
    shown = Reports(plan, factories.measured(plan, usual))
    rows = [row for row in shown.terminal.splitlines() if "0.129x" in row]
    assert len(rows) == 1
    assert shown.line("train_on_batch as installed, eager * 25.49 ms 3.30 ms").endswith("faster")
    assert shown.line("graph 7.61 ms").endswith("faster")
    assert shown.markdown.count("| as installed, eager \\* | 25.49 ms | 3.30 ms |") == 1
    assert "| tf21 vs tf20 eager | tf21 vs tf20 graph |" in shown.markdown
    assert "over 2 comparisons (other kinds apart: 2 mode)." in shown.markdown


def test_only_the_environments_that_start_in_the_references_mode_share_a_row() -> None:
    """Against tf20, tf21 is told once for both; tf114 as installed is graph against eager."""
    plan = factories.plan(environments=["tf20", "tf21", "tf114"])
    shown = Reports(plan, factories.measured(plan, usual))
    assert shown.line("train_on_batch as installed * tf20").endswith("reference")
    assert shown.line("tf114 6.62 ms").endswith("faster")
    assert shown.line("as installed, eager * tf20").endswith("reference")
    assert len([row for row in shown.terminal.splitlines() if "0.129x" in row]) == 1
    assert "over 5 comparisons (other kinds apart: 3 mode)." in shown.markdown


def test_keras_without_tensorflow_is_compared_as_installed() -> None:
    """It has no tf.keras: its keras meets the reference's tf.keras, in a table of their own."""
    jax = msgspec.structs.replace(
        factories.environment("tf20"), identifier="keras3-jax", tensorflow="", jax="0.10.2"
    )
    plan = factories.plan(
        environments=["tf20", jax], forms=[("tf.keras", "eager"), ("keras", "eager")]
    )
    records = [
        factories.record(plan, job, outcome="unsupported")
        if (job.arm.environment, job.arm.api) == ("keras3-jax", "tf.keras")
        else factories.record(
            plan, job, values=[0.02 if job.arm.environment == "tf20" else 0.04] * 12
        )
        for job in plan.jobs
    ]
    shown = Reports(plan, records)
    assert "keras3-jax as installed is 2.000x SLOWER than tf20" in shown.terminal
    assert "as installed: small-small, numpy" in shown.terminal
    assert shown.line("train_on_batch keras3-jax keras 20.0 ms 40.0 ms 2.000x").endswith("slower")


def test_containers_and_environments_of_somebody_else_are_named() -> None:
    """The head says what ran in containers, and which interpreter or image was taken as it is."""
    replaced = msgspec.structs.replace
    container = replaced(factories.environment("tf114"), backend="container", image_digest="sha:1")
    image = replaced(
        factories.environment("tf20"), backend="container", source="reg/tf:2", image_digest="sha:2"
    )
    plan = factories.plan(environments=[container, image])
    shown = Reports(plan, factories.measured(plan, usual))
    assert "Python 3.7.16 in both, in containers, 6 rounds interleaved" in shown.terminal
    assert "tf20 = TensorFlow 2.0.0, Keras 2.3.1, as in image reg/tf:2" in shown.terminal
    assert ", cpu packages of lock" in shown.markdown
    assert ", image sha:1" in shown.markdown

    existing = replaced(image, backend="existing", source="/opt/bin/python", image_digest=None)
    plan = factories.plan(environments=[container, existing])
    shown = Reports(plan, factories.measured(plan, usual))
    assert ", tf114 in containers, 6 rounds" in shown.terminal
    assert "tf20 = TensorFlow 2.0.0, Keras 2.3.1, as in /opt/bin/python" in shown.terminal
    assert "packages as in /opt/bin/python, digest" in shown.markdown
    assert "in containers" not in raced(usual).terminal


def test_one_environment_is_compared_with_nothing_in_the_title() -> None:
    """A run of tf114 alone is not tf114 against tf114."""
    plan = factories.plan(environments=["tf114"])
    shown = Reports(plan, factories.measured(plan, usual))
    assert shown.markdown.startswith("# tf114\n")
    assert raced(usual).markdown.startswith("# tf20 against tf114\n")


@pytest.mark.parametrize(
    ("wobble", "rounds", "hinted"),
    [(0.1, 6, True), (0.01, 3, True), (0.01, 6, False)],
    ids=["unclear", "few blocks", "decided"],
)
def test_more_rounds_are_suggested_only_where_they_could_decide(
    wobble: float, rounds: int, *, hinted: bool
) -> None:
    """Nobody is sent to measure again what is known."""
    shown = raced(scaled(1.0, wobble=wobble), rounds=rounds, command=COMMAND, command_s=700)
    hint = f"unclear?     {COMMAND}  (about 12 min)"
    assert hinted == shown.terminal.endswith(hint)
    assert hinted == ("unclear?" in shown.terminal)


def test_a_cell_that_cannot_run_is_no_reason_for_more_rounds() -> None:
    """It would not run in those either."""
    plan = factories.plan(forms=[("tf.keras", "graph")])
    records = [
        factories.record(plan, job, outcome="unsupported")
        if job.arm.environment == "tf20"
        else factories.record(plan, job)
        for job in plan.jobs
    ]
    assert "unclear?" not in Reports(plan, records, command=COMMAND).terminal


def test_a_run_of_ready_models_leads_to_the_users_own() -> None:
    """The last lines of a race name the command; a race of a workload file needs none."""
    hint = "your model?  stackrace run tf114 tf20 --workload FILE.py"
    assert hint in raced(usual, preparing_s=31.0).terminal
    assert "your model?" not in raced(usual, preparing_s=31.0, own_model=True).terminal
    assert "your model?" not in raced(usual).terminal


def test_the_file_is_named_only_where_it_was_written() -> None:
    """Without a folder no report.md exists, and no line speaks of one."""
    cases = [factories.case(data=f"d{number}") for number in range(13)]
    plan = factories.plan(cases=cases)
    records = factories.measured(plan, lambda _: 0.01)
    assert "report.md" not in Reports(plan, records).terminal
    assert "More in report.md:" in Reports(plan, records, folder=Path("r")).terminal
    assert Reports(plan, records, folder=Path("r")).terminal.endswith("report       r/report.md")


def test_records_that_do_not_count_are_called_superseded() -> None:
    """A block that was cut was not done again: its records only do not count."""
    plan = factories.plan(rounds=2)
    whole = factories.measured(plan, lambda _: 0.01)
    assert "superseded" not in Reports(plan, whole).terminal
    assert "1 superseded record," in Reports(plan, whole[:5]).terminal
    cut = Reports(plan, whole[:6]).terminal
    assert "4 of 8 jobs ok, 4 missing, 2 superseded records," in cut
    assert "redone" not in cut


def test_another_way_to_execute_is_told_below_the_table() -> None:
    """One mode, two ways: the row has a note that explains its ratio."""
    plan = factories.plan()
    ways = {"tf114": "op by op", "tf20": "function"}
    records = [
        factories.record(
            plan,
            job,
            result=factories.result([usual(job)], executed_as=ways[job.arm.environment]),
        )
        if job.arm.mode == "eager"
        else factories.record(plan, job, values=[usual(job)])
        for job in plan.jobs
    ]
    shown = Reports(plan, records)
    assert "  train_on_batch eager: ran as function / op by op" in shown.terminal
    assert "- train_on_batch eager: ran as function / op by op" in shown.markdown


def test_reports_are_plain_ascii() -> None:
    """No dash, dot or box of a report needs more, however long its names are."""
    workload = "a" * 1200 + ".py"
    plan = factories.plan(
        cases=[factories.case(), factories.case("fit", data="d" * 1200)], workloads=[workload]
    )
    records = factories.measured(plan, lambda job: 0.01 + job.round / 1000)
    records[0] = msgspec.structs.replace(records[0], host=factories.HOST)
    for rounds in (2, 6):
        shown = Reports(plan, records[: rounds * 8], width=40, folder=Path("r"), command=COMMAND)
        assert shown.terminal.isascii()
        assert shown.markdown.isascii()
        assert workload in shown.markdown
