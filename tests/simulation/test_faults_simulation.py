"""What goes wrong in a run makes no verdict where there is no difference, and says why.

tf20 is as fast as tf114, and every fault makes it look slower: through the engine, the record, the
run folder, merge and verdict, as in a real run.
"""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pytest

from orchestrator import record, run
from orchestrator.engines import local
from orchestrator.errors import StackraceError
from orchestrator.merge import merge
from orchestrator.model import attempts, codec
from orchestrator.model.record import Control, Load
from orchestrator.model.result import Failure, Outputs, Proof
from orchestrator.store import RunFolder
from orchestrator.verdict import compare
from tests import factories
from tests.simulation import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from orchestrator.model.comparison import Contrast
    from orchestrator.model.plan import Job, Plan
    from orchestrator.model.record import Record
    from orchestrator.model.result import Result
    from tests.simulation.figures import Keep

    Run = tuple[Plan, list[Record]]

ROUNDS = 6
LOAD = Load(load_1m=0.1, available_bytes=2**33)
SLOW, FAST = "tf20", "tf114"
_SHOWN: Final = 90  # characters of a reason that the page has room for


class Silence:
    """Progress that nobody sees."""

    def start(self, text: str) -> None:
        """Nothing."""

    def advance(self, text: str) -> None:
        """Nothing."""


def planned(run_id: str = "run0") -> Plan:
    """Two versions on a GPU, from the same weights."""
    case = factories.case(device="gpu", knobs={"weights": "same"})
    return factories.plan(
        environments=[FAST, SLOW],
        forms=[("tf.keras", "graph")],
        cases=[case],
        rounds=ROUNDS,
        run_id=run_id,
    )


def honest(seed: int) -> Callable[[], Result]:
    """Results of processes that differ by 2%, with iterations that differ by 3%."""
    random = np.random.default_rng(seed)

    def made() -> Result:
        log_s = random.normal(0, 0.02) + random.normal(0, 0.03, 30)
        return factories.result(
            (0.01 * np.exp(log_s)).tolist(),
            proof=Proof(device="gpu", how="kernels"),
            outputs_before=Outputs(digest="same", values=(0.5, 0.25)),
        )

    return made


def measured(
    results: Path, plan: Plan, fault: faults.Fault | None = None, *, both: bool = False
) -> Run:
    """The plan worked through, and read again from its folder."""
    environments = {
        name: faults.Environment(name, honest(n)) for n, name in enumerate((FAST, SLOW))
    }
    for environment in environments.values():
        environment.clock = environments[FAST].clock
        if fault is not None and (both or environment.identifier == SLOW):
            environment.fault = fault
    folder = RunFolder.create(results, plan)

    def measure(job: Job, *, attempt: int) -> Record:
        case = plan.case(job.case)
        execution = local.execute(
            job, case, plan=plan, attempt=attempt, folder=folder, environments=environments
        )
        return record.make(
            job,
            case,
            execution,
            plan=plan,
            attempt=attempt,
            host=factories.HOST,
            before=LOAD,
            after=LOAD,
            engine=local.FACTS,
            control=Control(before_s=0.1, after_s=0.1),
        )

    run.work_through(plan.blocks, folder, attempts.by_key([]), measure, Silence())
    opened = RunFolder.open(folder.path)
    return opened.plan(), opened.records()


def verdict(runs: Sequence[Run]) -> Contrast:
    """The only comparison of these runs."""
    comparison = compare(merge(runs), environments=[FAST, SLOW], threshold=0.02, kinds=["version"])
    (contrast,) = comparison.contrasts
    return contrast


def assert_no_false_verdict(contrast: Contrast, name: str, keep: Keep) -> None:
    """Neither faster nor slower, and a reason where there is no state at all."""
    told = contrast.state or contrast.reason or "nothing"
    shown = shorten(told, _SHOWN)
    keep("R12", name, bound="neither faster nor slower", found=shown, size="one race of 6 rounds")
    assert contrast.state not in {"faster", "slower"}
    assert contrast.state or contrast.reason


@pytest.mark.parametrize("name", faults.OF_PROCESSES)
def test_a_fault_of_processes_is_no_difference(name: str, tmp_path: Path, keep: Keep) -> None:
    """Whatever its processes do, an arm that is as fast is never called slower or faster."""
    contrast = verdict([measured(tmp_path, planned(), faults.OF_PROCESSES[name])])
    assert_no_false_verdict(contrast, name, keep)


def test_a_run_of_timeouts_has_no_verdict(tmp_path: Path, keep: Keep) -> None:
    """Both arms hang, every time."""
    fault = faults.OF_PROCESSES["hang afterwards"]
    contrast = verdict([measured(tmp_path, planned(), fault, both=True)])
    assert contrast.ratio is None
    assert_no_false_verdict(contrast, "all of both arms hang", keep)


def test_without_a_fault_a_difference_is_seen(tmp_path: Path) -> None:
    """The race that the faults are put into is able to have a verdict."""
    same = verdict([measured(tmp_path / "same", planned())])
    assert same.state in {"same", "unclear"}

    def twice(result: Result, _: int) -> dict[str, object]:
        return {"result": codec.encode(faults.slowed(result)), "exit_code": 0}

    assert verdict([measured(tmp_path / "twice", planned(), twice)]).state == "slower"


def doubled(made: Record) -> Record:
    """The same with times that are twice as long."""
    assert made.result is not None
    return msgspec.structs.replace(made, result=faults.slowed(made.result))


def changed(made: Sequence[Record], change: Callable[[Record], Record]) -> list[Record]:
    """The records of a run, those of tf20 changed."""
    return [change(each) if each.arm.environment == SLOW else each for each in made]


def _on_another_machine(run: Run) -> list[Run]:
    plan, made = run
    other = msgspec.structs.replace(factories.HOST, node="node1", machine="m1")
    return [(plan, changed(made, lambda one: msgspec.structs.replace(doubled(one), host=other)))]


def _later(run: Run) -> list[Run]:
    """All of tf20 after all of tf114, on a machine that became twice as slow."""
    plan, made = run

    def moved(one: Record) -> Record:
        start, end = (faults.at(when.monotonic + 1e5) for when in (one.start, one.end))
        return msgspec.structs.replace(doubled(one), start=start, end=end)

    return [(plan, changed(made, moved))]


def _in_runs_of_their_own(run: Run) -> list[Run]:
    """One run has tf114 only, another one tf20 only: nothing of them ran side by side."""
    plan, made = run
    other = planned("run1")
    keys = dict(zip([job.key for job in plan.jobs], [job.key for job in other.jobs], strict=True))
    second = [
        msgspec.structs.replace(doubled(one), run_id="run1", key=keys[one.key])
        for one in made
        if one.arm.environment == SLOW
    ]
    return [(plan, [one for one in made if one.arm.environment == FAST]), (other, second)]


def _missing(run: Run) -> list[Run]:
    plan, made = run
    return [(plan, [one for one in made if one.arm.environment == FAST])]


def _few(run: Run) -> list[Run]:
    """The run was cut after four rounds, all of them twice as slow by chance."""
    plan, made = run
    return [(plan, [one for one in changed(made, doubled) if one.round <= 4])]


def _copied(run: Run) -> list[Run]:
    """The same run three times over is no more evidence than once."""
    return [run] * 3


def _throttling_machine(run: Run) -> list[Run]:
    """From the middle of the fourth block on everything takes twice as long."""
    plan, made = run
    half = sorted(one.start.monotonic for one in made)[ROUNDS + 1]
    slow = Control(before_s=0.2, after_s=0.2)
    return [
        (
            plan,
            [
                msgspec.structs.replace(doubled(one), control=slow)
                if one.start.monotonic >= half
                else one
                for one in made
            ],
        )
    ]


def _clock_set_back(run: Run) -> list[Run]:
    """The calendar is set by a day while tf20 runs, so that all of it seems to come first."""
    plan, made = run

    def earlier(one: Record) -> Record:
        start = msgspec.structs.replace(one.start, wall=one.start.wall - 86_400)
        return msgspec.structs.replace(doubled(one), start=start)

    return [(plan, changed(made, earlier))]


def _superseded(run: Run) -> list[Run]:
    """A first attempt at every block was slow and lost its node; the second counts."""
    plan, made = run
    first = [
        msgspec.structs.replace(
            doubled(one),
            outcome="environment_error",
            failure=Failure(kind="lost_engine", message="gone"),
        )
        for one in made
    ]
    return [(plan, [*first, *(msgspec.structs.replace(one, attempt=2) for one in made)])]


def _unplanned(run: Run) -> list[Run]:
    """Records of jobs that the plan does not have are of another run."""
    plan, made = run
    others = [msgspec.structs.replace(doubled(one), key=f"x{one.key}") for one in made]
    return [(plan, [*made, *others])]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("arms on two machines", _on_another_machine),
        ("arms not interleaved", _later),
        ("arms in runs of their own", _in_runs_of_their_own),
        ("missing arm", _missing),
        ("run cut after four rounds", _few),
        ("one run given three times", _copied),
        ("machine that is throttled half way", _throttling_machine),
        ("calendar set back", _clock_set_back),
        ("superseded attempts", _superseded),
        ("records of jobs that were not planned", _unplanned),
    ],
)
def test_a_fault_of_records_is_no_difference(
    name: str, change: Callable[[Run], list[Run]], tmp_path: Path, keep: Keep
) -> None:
    """What was not measured side by side, once, in this run, is not compared as if it was."""
    assert_no_false_verdict(verdict(change(measured(tmp_path, planned()))), name, keep)


def test_a_run_given_twice_is_one_run(tmp_path: Path) -> None:
    """No pair counts twice."""
    once = measured(tmp_path, planned())
    assert verdict([once, once, once]) == verdict([once])


def _other_guest(run: Run) -> list[Run]:
    plan, made = run
    return [
        (plan, changed(made, lambda one: msgspec.structs.replace(doubled(one), guest_digest="x")))
    ]


def _other_case(run: Run) -> list[Run]:
    """A case of the same name with batches of another size."""
    plan, _ = run
    case = msgspec.structs.replace(plan.cases[0], batch_shape=(64, 140, 30))
    other = msgspec.structs.replace(planned("run1"), cases=(case,))
    return [run, (other, factories.measured(other, lambda _: 0.02))]


def _contradiction(run: Run) -> list[Run]:
    plan, made = run
    return [run, (plan, changed(made, doubled))]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("records of another guest", _other_guest),
        ("another case of the same name", _other_case),
        ("copies that contradict each other", _contradiction),
    ],
)
def test_what_does_not_belong_together_is_refused(
    name: str, change: Callable[[Run], list[Run]], tmp_path: Path, keep: Keep
) -> None:
    """No table is made of it at all."""
    runs = change(measured(tmp_path, planned()))
    with pytest.raises(StackraceError) as caught:
        merge(runs)
    shown = shorten(caught.value.what, _SHOWN)
    keep("R12", name, bound="refused", found=shown, size="one race of 6 rounds")


def _swapped(made: Record) -> Record:
    """The arms' names exchanged, as by an edit."""
    other = {FAST: SLOW, SLOW: FAST}[made.arm.environment]
    return msgspec.structs.replace(made, arm=msgspec.structs.replace(made.arm, environment=other))


def _foreign(made: Record) -> Record:
    """A record of another run, under the same key."""
    return msgspec.structs.replace(doubled(made), run_id="run9")


@pytest.mark.parametrize(
    ("name", "change"), [("swapped arms", _swapped), ("records of another run", _foreign)]
)
def test_what_was_put_into_a_folder_is_refused(
    name: str, change: Callable[[Record], Record], tmp_path: Path, keep: Keep
) -> None:
    """A record that is not the plan's is named, and nothing is compared."""
    measured(tmp_path, planned())
    folder = RunFolder.open(tmp_path / "run0")
    for made in folder.records():
        path = folder.record_path(made.key, made.attempt)
        path.write_bytes(codec.encode(change(made)))
    with pytest.raises(StackraceError) as caught:
        folder.records()
    _, told = caught.value.what.split(" does not ")
    shown = shorten(f"does not {told}", _SHOWN)
    keep("R12", name, bound="refused", found=shown, size="one race of 6 rounds")
