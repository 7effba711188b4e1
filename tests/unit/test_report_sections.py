"""What reports say beyond the ratios: advice, paths, profiles, trends, tracebacks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator.model.quantities import Amount, CellQuantities, Finding, Quantities
from orchestrator.model.record import Control
from orchestrator.model.result import Failure, Profile, ProfiledFunction
from orchestrator.report import measured
from tests import factories
from tests.reporting import Reports, scaled, usual

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.model.plan import Job

TRACEBACK = """\
Traceback (most recent call last):
  File "model.py", line 4, in build_model
    raise ValueError("four layers, not five")
ValueError: four layers, not five
"""


def section(shown: Reports, title: str) -> str:
    """One section of report.md, without its title."""
    return shown.markdown.split(f"\n## {title}\n")[1].split("\n## ")[0].strip()


def one_arm(*names: str, times: Callable[[Job], float]) -> Reports:
    """tf20 alone, eager, at these methods."""
    cases = [factories.case(name) for name in names]
    plan = factories.plan(environments=["tf20"], forms=[("tf.keras", "eager")], cases=cases)
    return Reports(plan, factories.measured(plan, times))


def test_methods_of_one_environment_are_the_headline() -> None:
    """Each against the first of its group, by name; nothing is said of versions."""
    speed = {"predict": 0.05, "predict_on_batch": 0.02, "call": 0.01}
    shown = one_arm(
        *speed, times=lambda job: speed[job.case.rsplit("/", 1)[1]] * (1 + job.round / 1000)
    )
    assert shown.sentences == (
        "predict_on_batch is 2.500x FASTER than predict at small-small (2.500 to 2.500). "
        "call is 5.000x FASTER than predict at small-small (5.000 to 5.000)."
    )
    assert "against predict: small-small, tf.keras, numpy" in shown.terminal
    assert shown.line("predict_on_batch tf20 eager").endswith("faster")


def test_workload_files_are_the_headline() -> None:
    """Is it my change: new against old, in words that people use."""
    plan = factories.plan(
        environments=["tf20"], forms=[("tf.keras", "eager")], workloads=["old", "new"]
    )
    slower = {"old": 0.01, "new": 0.012}
    shown = Reports(
        plan,
        factories.measured(plan, lambda job: slower[str(job.arm.workload)] * (1 + job.slot / 1000)),
    )
    assert shown.sentences.startswith("new is 1.200x SLOWER than old at train_on_batch")
    assert "new against old: small-small, tf.keras, numpy" in shown.terminal


def test_knobs_are_named_with_their_values() -> None:
    """Against the case without the knob."""
    cases = [factories.case(), factories.case(knobs={"jit_compile": "yes"})]
    plan = factories.plan(environments=["tf20"], forms=[("tf.keras", "eager")], cases=cases)
    shown = Reports(
        plan,
        factories.measured(
            plan, lambda job: (0.02 if "jit" in job.case else 0.01) * (1 + job.round / 1000)
        ),
    )
    assert shown.sentences.startswith(
        "jit_compile=yes is 2.000x SLOWER than jit_compile=default at train_on_batch"
    )
    assert "jit_compile=yes against jit_compile=default: small-small" in shown.terminal


def test_many_pairs_of_one_axis_are_counted_with_their_extremes() -> None:
    """Four sizes: one line of counts, and where it is worst."""
    cases = [
        factories.case(name, data=f"d{number}")
        for number in range(4)
        for name in ("predict", "call")
    ]
    plan = factories.plan(environments=["tf20"], forms=[("tf.keras", "eager")], cases=cases)
    shown = Reports(
        plan,
        factories.measured(
            plan, lambda job: 0.01 * (1 + int(job.case[7]) if job.case.endswith("call") else 1)
        ),
    )
    assert shown.sentences.startswith(
        "call against predict over 4 cases: 2.213x (2.213 to 2.213), from 1.00x (small-d0) to "
        "4.00x (small-d3); 3 slower, 1 same."
    )


def test_the_advice_stands_in_both_reports() -> None:
    """The fastest first; then what to avoid; more of it in the file."""
    plan = factories.plan(cases=[factories.case(), factories.case("fit")])
    shown = Reports(plan, factories.measured(plan, usual))
    advice = section(shown, "Advice")
    fastest = (
        "training small-small: tf114 graph train_on_batch and tf114 graph fit may each be the "
        "fastest of 8; the next, tf20 graph train_on_batch, takes 1.15x (1.12 - 1.18)"
    )
    avoid = "version tf20: 1.15x to 3.86x the time of the fastest (all 4 configurations with it)"
    for text in (advice, " ".join(shown.terminal.split())):
        assert fastest in text
        assert avoid in text
    together = section(shown, "Over all cases")
    assert "method does not matter (within 0%)" in together
    assert "version tf20 against tf114 takes 1.15x with mode graph, but 1.80x with" in together
    assert "| version | tf20 | tf114 |" in together


def test_without_a_difference_nothing_is_advised() -> None:
    """The terminal is silent, and the file says that nothing is faster."""
    plan = factories.plan()
    shown = Reports(plan, factories.measured(plan, lambda _: 0.01))
    assert "Advice" not in shown.terminal
    assert "none of 4 configurations is surely faster than another" in section(shown, "Advice")


def test_what_to_measure_next_can_be_copied() -> None:
    """Markdown leaves a command as it is."""
    shown = Reports(plan := factories.plan(rounds=3), factories.measured(plan, usual))
    (step,) = [line for line in section(shown, "Advice").splitlines() if "more rounds: " in line]
    assert step.partition(": ")[2].startswith("`stackrace run tf114 tf20 --case ")
    assert step.endswith("`")


def test_the_path_that_ran_is_shown_where_arms_differ() -> None:
    """A row an arm; cases whose arms all took the same path are left out."""
    cases = [factories.case(), factories.case("fit"), factories.case("predict")]
    plan = factories.plan(forms=[("tf.keras", "graph")], cases=cases)
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                [0.01],
                executed_as="session",
                training_loop="fit_loop"
                if "predict" in job.case
                else job.arm.environment + "_loop",
                retraces=0 if job.arm.environment == "tf114" else job.round % 2 + 3,
            ),
        )
        for job in plan.jobs
        if "predict" not in job.case or job.arm.environment == "tf114"
    ]
    shown = section(Reports(plan, records), "Which path ran")
    both = "small-small/numpy/train_on_batch, small-small/numpy/fit"
    assert "| case | arm | ran as | training loop | retraces |" in shown
    assert f"| {both} | tf114/tf.keras/graph | session | tf114_loop | 0 |" in shown
    assert f"| {both} | tf20/tf.keras/graph | session | tf20_loop | 3.5 |" in shown
    assert "predict" not in shown


def test_one_path_is_no_section() -> None:
    """Nothing to explain."""
    plan = factories.plan()
    assert "Which path ran" not in Reports(plan, factories.measured(plan, usual)).markdown


def test_retraces_and_kernels_are_noted_below_the_table() -> None:
    """Candidate first; the terminal has no room for more."""
    plan = factories.plan(forms=[("tf.keras", "graph")])
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                [scaled(2.0)(job)],
                retraces=0 if job.arm.environment == "tf114" else 199,
                kernel="lstm" if job.arm.environment == "tf114" else "while loop",
                training_loop=job.arm.environment,
            ),
        )
        for job in plan.jobs
    ]
    shown = Reports(plan, records)
    assert "kernel while loop / lstm" in shown.terminal
    assert "retraces 199 / 0" in shown.terminal
    assert "tf114 / tf20" not in shown.terminal


def profiled(unattributed: float = 40.0) -> Reports:
    """tf114 and tf20 with a profile of each; that of tf20 failed."""
    plan = factories.with_profiles(factories.plan(forms=[("tf.keras", "graph")]))
    profile = Profile(
        run_s=2.0,
        iterations=200,
        build=55.5,
        data=10.0,
        training=45.0,
        other=5.0,
        unattributed=unattributed,
        functions=(
            ProfiledFunction(name="mkl.py:init", calls=1, own_s=9.0, total_s=9.0, root="build"),
            ProfiledFunction(name="loop.py:fit", calls=7, own_s=0.9, total_s=1.8, root="training"),
        ),
        trace="vm.xplane.pb",
    )
    records = factories.measured(plan, usual)
    for job in plan.profiles:
        fine = job.arm.environment == "tf114"
        records.append(
            msgspec.structs.replace(
                records[0],
                key=job.key,
                arm=job.arm,
                round=job.round,
                outcome="ok" if fine else "failed",
                failure=None if fine else Failure(kind="exception", message="profiler broke"),
                result=factories.result([], profile=profile) if fine else None,
            )
        )
    return Reports(plan, records)


def test_profiles_have_a_section_of_their_own() -> None:
    """Percents, the functions that take longest, and what a profiler cannot see."""
    shown = section(profiled(), "Profiles")
    case = "small-small/numpy/train_on_batch"
    assert f"| tf114/tf.keras/graph | {case} | 55.5 | 10.0 | 45.0 | 5.0 | 40.0 | 2.00 s |" in shown
    assert "| loop.py:fit | training | 7 | 900 ms | 1.80 s |" in shown
    assert "40% is unattributed" in shown
    assert shown.index("loop.py:fit") < shown.index("mkl.py:init")
    assert re.search(r"own trace: profiles/\S+\.1/vm\.xplane\.pb", shown) is not None
    assert f"- tf20/tf.keras/graph, {case}: failed: profiler broke" in shown
    assert "is unattributed:" not in section(profiled(20.0), "Profiles")


def test_a_profile_is_no_timing() -> None:
    """It is in no table of times, and no lost job."""
    assert "12 of 12 jobs ok" in profiled().terminal


@pytest.mark.parametrize("kind", ["workload", "exception"])
def test_what_breaks_in_the_users_file_is_shown_as_python_told_it(kind: str) -> None:
    """Once, for all jobs that it ended; what breaks elsewhere has its reason in a line."""
    plan = factories.plan(workloads=["model"])
    records = [
        factories.record(
            plan,
            job,
            outcome="failed",
            failure=Failure(kind=kind, message="four layers, not five", traceback=TRACEBACK),
        )
        for job in plan.jobs
    ]
    shown = Reports(plan, records)
    for text in (shown.terminal, shown.markdown):
        times = int(kind == "workload")
        assert text.count('raise ValueError("four layers, not five")') == times
        assert text.count("Your workload file failed in 24 jobs of 4 arms") == times


def test_packages_that_were_added_are_named() -> None:
    """In the head and with the versions."""
    plan = factories.plan(environments=["tf114", factories.environment("tf20", extra=["pandas"])])
    shown = Reports(plan, factories.measured(plan, usual))
    assert "tf20 = TensorFlow 2.0.0, Keras 2.3.1 + pandas" in shown.terminal
    assert "- tf20: TensorFlow 2.0.0, Keras 2.3.1 + pandas, Python 3.7.16" in shown.markdown


def test_three_versions_have_a_trend_in_order_of_release() -> None:
    """Ratios against the first, whatever the reference is, and the largest step."""
    plan = factories.plan(
        environments=["tf21", "tf114", "tf20"], forms=[("tf.keras", "graph")], reference="tf20"
    )
    times = {"tf114": 0.01, "tf20": 0.015, "tf21": 0.03}
    shown = Reports(
        plan,
        factories.measured(plan, lambda job: times[job.arm.environment]),
        reference="tf20",
    )
    trend = section(shown, "Trend over the versions")
    assert "| case | as | tf114 | tf20 | tf21 | largest step |" in trend
    assert (
        "| small-small/numpy/train_on_batch | tf.keras/graph | 1.00x - | 1.50x | 3.00x + "
        "| tf20 to tf21: 2.00x |"
    ) in trend


def test_two_versions_are_no_trend() -> None:
    """They are a contrast."""
    plan = factories.plan()
    assert "Trend" not in Reports(plan, factories.measured(plan, usual)).markdown


def test_a_terminal_shows_the_first_tables_and_counts_the_others() -> None:
    """Thirty tables of six rows: nobody scrolls through them, and the file has them all."""
    cases = [factories.case(data=f"d{number:02}") for number in range(30)]
    plan = factories.plan(cases=cases)
    shown = Reports(plan, factories.measured(plan, usual), folder=Path("results/7f3a"))
    assert "... and 10 tables like this in report.md" in shown.terminal
    assert shown.terminal.count("as installed *") == 20
    assert shown.markdown.count("| as installed \\* |") == 30


def shown_by(seconds: Sequence[float], losses: Sequence[float], **facts: object) -> Reports:
    """Two arms whose processes all have these iterations, memory and losses."""
    plan = factories.plan(forms=[("tf.keras", "graph")])
    slow = {
        around
        for place, job in enumerate(plan.jobs)
        if job.round == 3
        for around in (place, place + 1)
    }
    read = [
        0.02 * (2 if place in slow else 1) + 1e-5 * (place % 3)
        for place in range(len(plan.jobs) + 1)
    ]
    records = [
        factories.record(
            plan,
            job,
            result=factories.result(
                seconds,
                losses=tuple(
                    loss + job.round * 0.1 * (place > 4) for place, loss in enumerate(losses)
                ),
                **facts,
            ),
            control=Control(before_s=read[place], after_s=read[place + 1]),
        )
        for place, job in enumerate(plan.jobs)
    ]
    return Reports(plan, records)


def test_what_processes_show_beside_their_medians_is_told() -> None:
    """A leak of a megabyte an iteration, in both reports; the quantities of each cell."""
    leak = tuple(200_000_000 + 10_000_000 * place for place in range(22))
    shown = shown_by(
        [0.01 + 1e-5 * (place % 7) for place in range(200)], [0.5] * 10, rss_bytes=leak
    )
    found = section(shown, "What the processes show")
    assert "memory grows by" in found
    assert "in 6 of 6 processes" in found
    assert "memory grows by" in " ".join(shown.terminal.split())
    assert "| arm | case |" in found


def test_histories_that_diverge_are_told() -> None:
    """No process of an arm repeats another from its sixth loss on, after two of warm-up."""
    shown = shown_by([0.01] * 200, [0.5] * 10)
    found = section(shown, "Reproducibility")
    assert "| its own processes | diverging from iteration 8 on" in found
    assert "diverging from iteration 8 on" in " ".join(shown.terminal.split())


def test_a_machine_that_changed_its_speed_is_a_warning() -> None:
    """Told by the host's own work, in both reports."""
    shown = shown_by([0.01] * 200, [0.5] * 10)
    for text in (shown.terminal, shown.markdown):
        assert "the machine changed its speed in" in " ".join(text.split())
    assert "changed its speed" not in one_arm("fit", times=lambda _: 0.01).terminal


def amount(value: float) -> Amount:
    """A quantity that one process has."""
    return Amount(median=value, low=value, high=value, processes=1)


def test_what_nobody_could_look_for_is_not_told_to_be_absent() -> None:
    """Twenty iterations show no leak, and that is no sign that there is none."""
    cell = CellQuantities(arm="a", case="c", processes=1, p50_s=amount(0.01), retraces=amount(0))
    shown = list(measured.section(Quantities(cells=(cell,), findings=())))[1]
    assert shown == (
        "No spikes and no retraces found. "
        "Nothing is known of leaks and slow-downs: too little was recorded."
    )


def test_the_worst_spikes_are_the_longest() -> None:
    """Not those that come least often."""
    findings = [
        Finding(
            kind="spikes", arm="a", case=case, shown=3, processes=3, indicative=False, numbers=told
        )
        for case, told in (
            ("rare", {"share": 0.02, "size": 2.0, "period": 50.0}),
            ("long", {"share": 0.2, "size": 9.0, "period": 5.0}),
        )
    ]
    (sentence,) = measured.sentences(findings)
    assert sentence.startswith("a, 2 cases, most in long: 20% of the iterations take 9.00x")
