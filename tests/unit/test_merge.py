"""Runs put together in one table."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import pytest

from orchestrator.errors import InputError, UsageError
from orchestrator.merge import NO_BLOCK, NO_RECORD, export, merge
from orchestrator.model.result import Failure
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record


def small(run_id: str = "run0", **facts: Any) -> Plan:  # noqa: ANN401
    """Two arms of one case, two rounds: four jobs."""
    return factories.plan(forms=[("tf.keras", "graph")], rounds=2, run_id=run_id, **facts)


def whole(plan: Plan) -> list[Record]:
    """Every job of the plan, at ten milliseconds."""
    return factories.measured(plan, lambda _: 0.01)


def only(frame: pd.DataFrame, **where: object) -> pd.Series:
    """The one row in which all these columns have these values."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_every_planned_job_is_a_row_with_its_facts() -> None:
    """A row carries identity, outcome, seconds and where it was measured."""
    plan = small()
    frame = merge([(plan, whole(plan))])
    assert len(frame) == 4
    row = only(frame, environment="tf20", round=2)
    assert row["arm"] == "tf20/tf.keras/graph"
    assert row["case"] == "small-small/numpy/train_on_batch"
    assert (row["tensorflow"], row["keras"], row["python"]) == ("2.0.0", "2.3.1", "3.7.16")
    assert (row["outcome"], row["counts"], row["attempt"]) == ("ok", True, 1)
    assert (row["median_s"], *row["values_s"], *row["warmup_s"]) == (0.01, *[0.01] * 3, 0.5, 0.4)
    assert (row["import_s"], row["build_s"], row["first_call_s"]) == (1.0, 0.2, 0.5)
    assert (row["first_loss"], row["last_loss"]) == (0.7, 0.6)
    assert (row["machine"], row["node"], row["lock_digest"]) == ("m0", "node0", "lock-tf20")


def test_the_peak_of_memory_is_the_kernels_and_never_the_highest_sample() -> None:
    """Samples are taken every tenth iteration: without the high-water mark there is no peak."""
    plan = small()
    known = factories.result([0.01], diagnostics={"peak_rss_bytes": 900}, rss_bytes=(100, 300))
    records = [factories.record(plan, plan.jobs[0], result=known), *whole(plan)[1:]]
    frame = merge([(plan, records)])
    assert only(frame, key=plan.jobs[0].key)["peak_rss_bytes"] == 900
    assert frame["peak_rss_bytes"].isna().sum() == 3


def test_rows_stand_in_the_order_of_rounds_cases_and_arms() -> None:
    """The random order of the plan is in `slot`, not in the order of the rows."""
    plan = factories.plan(rounds=2, cases=[factories.case("fit"), factories.case()])
    frame = merge([(plan, [])])
    first = frame[(frame["round"] == 1) & (frame["method"] == "fit")]
    assert list(frame["round"].drop_duplicates()) == [1, 2]
    assert list(first["arm"]) == [
        "tf114/tf.keras/graph",
        "tf114/tf.keras/eager",
        "tf20/tf.keras/graph",
        "tf20/tf.keras/eager",
    ]


def test_native_is_tf_keras_in_the_environments_own_mode() -> None:
    """TF1 starts in graph mode, TF2 in eager; stand-alone Keras is never the default."""
    forms = [(api, mode) for api in ("keras", "tf.keras") for mode in ("graph", "eager")]
    plan = factories.plan(forms=forms, rounds=1)  # type: ignore[arg-type]
    frame = merge([(plan, whole(plan))])
    assert {"tf114/tf.keras/graph", "tf20/tf.keras/eager"} == set(frame["arm"][frame["native"]])


def test_the_median_is_that_of_the_timed_iterations() -> None:
    """Warm-up and order play no part."""
    plan = small()
    records = [factories.record(plan, plan.jobs[0], values=[0.05, 0.01, 0.02, 0.03])]
    records += whole(plan)[1:]
    assert merge([(plan, records)])["median_s"].max() == pytest.approx(0.025)


def test_a_job_without_a_record_is_missing() -> None:
    """A gap in the table is a bug: the job is there, with its reason."""
    plan = small()
    frame = merge([(plan, whole(plan)[:2])])
    assert len(frame) == 4
    lost = frame[frame["outcome"] == "missing"]
    assert [NO_RECORD, NO_RECORD] == list(lost["reason"])
    assert lost["counts"].all()
    assert lost["median_s"].isna().all()
    assert lost["attempt"].isna().all()


def test_an_incomplete_block_does_not_count() -> None:
    """One arm of a block was measured before the interruption: kept, but not counted."""
    plan = small()
    frame = merge([(plan, whole(plan)[:1])])
    assert len(frame) == 5
    row = only(frame, key=plan.jobs[0].key, counts=True)
    assert (row["outcome"], row["reason"]) == ("missing", NO_BLOCK)
    assert only(frame, counts=False)["median_s"] == pytest.approx(0.01)


@pytest.mark.parametrize("outcome", ["unsupported", "failed", "timed_out", "invalid"])
def test_an_outcome_other_than_ok_never_becomes_a_number(outcome: str) -> None:
    """Even a process that left times gives none when its outcome is not ok."""
    plan = small()
    bad = msgspec.structs.replace(
        whole(plan)[0], outcome=outcome, failure=Failure(kind="why", message="it broke")
    )
    frame = merge([(plan, [bad, *whole(plan)[1:]])])
    row = only(frame, key=bad.key)
    assert (row["outcome"], row["failure_kind"], row["reason"]) == (outcome, "why", "it broke")
    assert pd.isna(row["median_s"])
    assert len(row["values_s"]) == 0


def test_the_second_attempt_counts_when_the_first_was_to_be_redone() -> None:
    """The whole block is taken from one attempt; the other one is superseded."""
    plan = small()
    first, second, *rest = plan.jobs
    records = [
        factories.record(plan, first, values=[0.5]),
        factories.record(plan, second, outcome="environment_error", message="node lost"),
        factories.record(plan, first, values=[0.1], attempt=2),
        factories.record(plan, second, values=[0.2], attempt=2),
        *(factories.record(plan, job) for job in rest),
    ]
    frame = merge([(plan, records)])
    assert len(frame) == 6
    assert only(frame, key=first.key, counts=True)["median_s"] == pytest.approx(0.1)
    assert only(frame, key=first.key, counts=False)["median_s"] == pytest.approx(0.5)
    assert only(frame, key=second.key, counts=False)["outcome"] == "environment_error"


def test_a_copy_of_a_run_adds_nothing() -> None:
    """The same folder named twice, or a copy of it, is one run."""
    plan = small()
    once = merge([(plan, whole(plan))])
    pd.testing.assert_frame_equal(once, merge([(plan, whole(plan)), (plan, whole(plan))]))


def test_a_copy_that_got_further_completes_a_run() -> None:
    """Records that only one copy has are taken from it."""
    plan = small()
    frame = merge([(plan, whole(plan)[:2]), (plan, whole(plan))])
    assert list(frame["outcome"]) == ["ok"] * 4


@pytest.mark.parametrize("order", [1, -1])
def test_a_copy_from_before_rounds_were_added_is_that_run(order: int) -> None:
    """Of two copies, one may be as it was before the run got more rounds."""
    plan = small()
    before = msgspec.structs.replace(plan, blocks=plan.blocks[:1], rounds=1)
    runs = [(before, whole(before)), (plan, whole(plan))]
    pd.testing.assert_frame_equal(merge([(plan, whole(plan))]), merge(runs[::order]))


def test_copies_that_were_resumed_apart_are_refused() -> None:
    """Two copies that measured one job at different times contradict each other."""
    plan = small()
    early = [factories.record(plan, plan.jobs[0], values=[0.5], at=0)]
    late = [factories.record(plan, job, values=[0.1], at=1000) for job in plan.jobs]
    with pytest.raises(InputError) as caught:
        merge([(plan, early), (plan, late)], places=["a", "b"])
    name = f"records/{plan.jobs[0].key}.1.json"
    assert f"a/{name} and b/{name} contradict each other." == caught.value.what


def test_a_copy_with_another_run_id_is_refused() -> None:
    """The jobs of one run never count twice, whatever the run is called."""
    plan = small()
    renamed = msgspec.structs.replace(plan, run_id="other")
    with pytest.raises(UsageError, match="a and b are two different runs with the same job"):
        merge([(plan, whole(plan)), (renamed, [])], places=["a", "b"])


def test_two_runs_stand_below_each_other() -> None:
    """Rows of different runs are told apart by `run_id`."""
    one, other = small("run1"), small("run2")
    frame = merge([(one, whole(one)), (other, whole(other))])
    assert {"run1": 4, "run2": 4} == frame["run_id"].value_counts().to_dict()


def test_runs_of_different_guests_are_refused_by_name() -> None:
    """Results of changed code are never compared."""
    one, other = small("run1"), small("run2", guest_digest="guest-1")
    with pytest.raises(UsageError) as caught:
        merge([(one, whole(one)), (other, whole(other))])
    assert "guest_digest is guest-0 in run1, but guest-1 in run2" in caught.value.what


def test_a_run_resumed_with_another_guest_is_refused() -> None:
    """The digest of every record counts, not that of the plan alone."""
    plan = small()
    changed = msgspec.structs.replace(whole(plan)[0], guest_digest="guest-1")
    with pytest.raises(UsageError, match="but guest-1 in run0"):
        merge([(plan, [changed, *whole(plan)[1:]])])


def test_one_name_means_one_version_in_all_runs() -> None:
    """A row of the matrix that was changed between two runs is refused."""
    one = small("run1")
    other = small("run2", environments=["tf114", factories.environment("tf20", keras="2.3.0")])
    with pytest.raises(UsageError, match=r"versions of tf20 is TensorFlow 2.0.0, Keras 2.3.1"):
        merge([(one, []), (other, [])])


def test_one_name_means_one_shape_in_all_runs() -> None:
    """A case whose data was changed between two runs is refused."""
    one = small("run1")
    other = small("run2", cases=[factories.case(batch_shape=(16, 140, 30))])
    with pytest.raises(
        UsageError, match="batch_shape of small-small/numpy/train_on_batch is 32, 140, 30"
    ):
        merge([(one, []), (other, [])])


def test_two_plans_of_one_name_are_refused() -> None:
    """A run identifier names one plan."""
    with pytest.raises(
        UsageError, match="a and b are two different runs with the same run_id run0"
    ):
        merge([(small(), []), (small(seed=8), [])], places=["a", "b"])


def test_parquet_keeps_lists_and_types(tmp_path: Path) -> None:
    """What is read back has the same values; a missing number is null."""
    plan = small()
    export(merge([(plan, whole(plan)[:2])]), tmp_path / "t.parquet")
    back = pd.read_parquet(tmp_path / "t.parquet")
    assert list(back["values_s"][0]) == [0.01, 0.01, 0.01]
    assert back["median_s"].isna().sum() == 2
    assert str(back["counts"].dtype) == "bool"


def test_csv_holds_lists_as_json(tmp_path: Path) -> None:
    """A spreadsheet shows one line a job, and a program can read the lists."""
    plan = small()
    export(merge([(plan, whole(plan)[:2])]), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert json.loads(rows[0]["values_s"]) == [0.01, 0.01, 0.01]
    assert [row["median_s"] for row in rows] == ["0.01", "0.01", "", ""]
    assert [row["attempt"] for row in rows] == ["1", "1", "", ""]


def test_json_has_null_where_there_is_no_number(tmp_path: Path) -> None:
    """NaN is no JSON."""
    plan = small()
    export(merge([(plan, whole(plan)[:2])]), tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text(encoding="utf-8")
    rows = json.loads(text, parse_constant=pytest.fail)
    assert [row["median_s"] for row in rows] == [0.01, 0.01, None, None]
    assert rows[0]["values_s"] == [0.01, 0.01, 0.01]


def test_an_empty_table_can_be_written(tmp_path: Path) -> None:
    """No runs give a table with columns and no rows."""
    export(merge([]), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").startswith("run_id,key,attempt,counts")


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    """The message names the endings that exist."""
    with pytest.raises(UsageError, match=r"ends in \.parquet, \.csv, \.json"):
        export(merge([]), tmp_path / "t.xls")


def test_a_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    """A mistyped folder is not made."""
    with pytest.raises(UsageError, match="does not exist"):
        export(merge([]), tmp_path / "nowhere" / "t.csv")


def test_workloads_of_one_name_are_one_thing() -> None:
    """Runs of a file that was edited between them are never put together."""
    first = factories.plan(run_id="run0", rounds=1)
    runs: list[tuple[Plan, list[Record]]] = [
        (msgspec.structs.replace(plan, workloads=(factories.workload("mine"),)), [])
        for plan in (first, factories.plan(run_id="run1", rounds=1))
    ]
    assert 2 * len(first.jobs) == len(merge(runs))
    edited = msgspec.structs.replace(factories.workload("mine"), digest="edited")
    runs[1] = (msgspec.structs.replace(runs[1][0], workloads=(edited,)), [])
    with pytest.raises(UsageError, match="workload digest of mine is digest-mine in run0"):
        merge(runs)


def test_packages_that_were_added_are_part_of_what_an_environment_is() -> None:
    """Runs with and without them are not of one environment."""
    plain = factories.environment("tf114")
    runs: list[tuple[Plan, list[Record]]] = [
        (factories.plan(run_id=run_id, environments=[item], rounds=1), [])
        for run_id, item in (
            ("run0", plain),
            ("run1", msgspec.structs.replace(plain, extra=("pandas",))),
        )
    ]
    with pytest.raises(UsageError, match=r"Keras 2\.2\.5 \+ pandas, Python 3\.7 in run1"):
        merge(runs)
