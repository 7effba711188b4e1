"""`stackrace selftest` from its records on: what is printed, kept, and told to later runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import __main__, host, kernel, noise, precision
from orchestrator.model import codec
from orchestrator.model.noise import NOISE_SCHEMA, Noise
from orchestrator.model.plan import ALPHA_BY_WIDTH, Goal
from orchestrator.model.record import Control
from orchestrator.pipeline import machines, reading
from orchestrator.store import RunFolder
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.plan import Job, Plan

CORES = kernel.text(kernel.allowed())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STACKRACE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def selftest(run_id: str = "self") -> Plan:
    """An environment against a copy of itself."""
    copy = factories.environment("tf114-2", lock="tf114")
    return factories.plan(
        environments=["tf114", copy],
        forms=[("tf.keras", "graph")],
        rounds=6,
        run_id=run_id,
        selftest=True,
    )


def measured(folder: Path, plan: Plan) -> RunFolder:
    """Its run folder: times scatter by a few percent, the control's by half a percent."""

    def scattered(job: Job) -> float:
        return 1 + 0.02 * ((job.round * 7 + job.slot * 3) % 5)

    run = RunFolder.create(folder, plan)
    for place, record in enumerate(factories.measured(plan, lambda job: 0.01 * scattered(job))):
        control = Control(
            before_s=0.002 * (1 + 0.001 * (place * 7 % 11)),
            after_s=0.002 * (1 + 0.001 * (place * 5 % 13)),
        )
        run.write(msgspec.structs.replace(record, control=control))
    return run


def stored(cache: Path) -> list[Path]:
    """The selftests in the cache."""
    return sorted(cache.glob("machines/m0-cpu/*.json"))


def test_a_selftest_is_told_and_kept(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words that end with the conclusion; in the run folder and in the cache, the same."""
    run = measured(tmp_path / "results", selftest())
    assert 0 == reading.conclude(run, preparing_s=0.0, more_rounds=None)
    said = capsys.readouterr().out.splitlines()
    assert "tf114 against itself on the CPU, 6 rounds interleaved" == said[0]
    assert said[-1].startswith("This machine can see differences of ")
    assert "(6 rounds). By the same formula " in said[-1]
    (file,) = stored(cache)
    assert "20260102T030405+0000.json" == file.name
    assert file.read_bytes() == (run.path / "noise.json").read_bytes()
    found = codec.decode(file.read_bytes(), Noise, source=file, schema=NOISE_SCHEMA)
    assert ("m0", "self", 6) == (found.machine, found.run_id, found.rounds)
    assert found.control is not None
    assert 0 < found.control < 0.01


def test_the_report_of_a_selftest_is_one(tmp_path: Path) -> None:
    """It says what it is in its title, and advises nothing: a copy is no choice."""
    run = measured(tmp_path / "results", selftest())
    reading.conclude(run, preparing_s=0.0, more_rounds=None)
    page = (run.path / "report.md").read_text(encoding="utf-8")
    assert page.startswith("# Selftest: tf114 against a copy of itself\n")
    assert "## Advice" not in page
    assert "Measure next" not in page


def test_a_selftest_as_json_is_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else goes to stdout; to conclude again rewrites nothing."""
    run = measured(tmp_path / "results", selftest())
    for _ in range(2):
        assert 0 == reading.conclude(run, preparing_s=0.0, more_rounds=None, as_json=True)
        shown = json.loads(capsys.readouterr().out)
        assert json.loads((run.path / "noise.json").read_bytes()) == shown


def test_reports_of_other_runs_have_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the terminal, in report.md and in summary.json; a selftest does not cite itself."""
    tested = measured(tmp_path / "results", selftest())
    reading.conclude(tested, preparing_s=0.0, more_rounds=None)
    capsys.readouterr()
    assert () == reading.compare([tested.path]).findings.noise
    run = measured(tmp_path / "results", factories.plan(rounds=6, run_id="later"))
    reading.conclude(run, preparing_s=0.0, more_rounds=None)
    line = "The selftest of 2026-01-02 on this machine saw differences of "
    assert line in capsys.readouterr().out
    assert line in (run.path / "report.md").read_text(encoding="utf-8")
    (kept,) = json.loads((run.path / "summary.json").read_bytes())["noise"]
    assert "self" == kept["run_id"]


def test_selftests_do_not_cite_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report on several has none of theirs, whichever comes first."""
    runs = [measured(tmp_path / "results", selftest(name)) for name in ("self1", "self2")]
    for run in runs:
        reading.conclude(run, preparing_s=0.0, more_rounds=None)
    capsys.readouterr()
    for paths in (runs, runs[::-1]):
        assert () == reading.compare([run.path for run in paths]).findings.noise


def test_a_selftest_that_failed_says_so(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Jobs that failed show no noise: nothing is kept, and the exit code is that of a run."""
    plan = selftest()
    run = RunFolder.create(tmp_path / "results", plan)
    for job in plan.jobs:
        run.write(factories.record(plan, job, outcome="failed"))
    assert 3 == reading.conclude(run, preparing_s=0.0, more_rounds=None)
    shown = capsys.readouterr()
    assert "" == shown.out
    assert "This selftest shows nothing" in shown.err
    assert 3 == reading.conclude(run, preparing_s=0.0, more_rounds=None, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert {"run_id": "self", "reason": machines.NOTHING} == said
    assert [] == stored(cache)


def warned(
    capsys: pytest.CaptureFixture[str],
    *,
    rounds: int | None,
    threshold: float,
    goal: Goal | None = None,
) -> str:
    """What a run of tf114 on the CPU would be told."""
    machines.warn(rounds=rounds, threshold=threshold, goal=goal, devices=("cpu",), uuids=(), pin=())
    return capsys.readouterr().err


def test_a_run_is_told_what_its_machine_cannot_see(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beforehand, and only where the threshold is too small for its rounds."""
    tested = measured(tmp_path / "results", selftest())
    reading.conclude(tested, preparing_s=0.0, more_rounds=None)
    (file,) = stored(cache)
    here = msgspec.structs.replace(
        codec.decode(file.read_bytes(), Noise, source=file, schema=NOISE_SCHEMA),
        machine=host.facts().machine,
    )
    assert "With 6 rounds" not in warned(capsys, rounds=6, threshold=0.02)
    noise.keep(here, cache)
    told = warned(capsys, rounds=6, threshold=0.02)
    assert "warning: With 6 rounds this machine sees differences of " in told
    needed = noise.rounds_for(here, 0.02)
    assert f"to tell 2% from nothing, it would take about {needed} rounds." in told
    assert "With 6 rounds" not in warned(capsys, rounds=6, threshold=0.5)


def test_a_run_with_a_goal_is_told_what_its_rounds_will_see(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many rounds as the precision takes at this noise, not as many as it may; by 96%."""
    known = Noise(
        machine=host.facts().machine,
        created="2026-11-30T13:15:00+00:00",
        run_id="self",
        environment="tf114",
        rounds=10,
        threshold=0.02,
        spread=0.04,
        detectable=0.06,
    )
    noise.keep(known, cache)
    goal = Goal(precision=0.02)
    rounds = precision.rounds_for(0.04, 0.02)
    assert 10 < rounds < 100
    told = warned(capsys, rounds=100, threshold=0.02, goal=goal)
    assert f"With about {rounds} rounds this machine sees differences of " in told
    needed = noise.rounds_for(known, 0.02, alpha=ALPHA_BY_WIDTH)
    assert f"it would take about {needed} rounds." in told
    told = warned(capsys, rounds=100, threshold=0.1, goal=goal)
    assert f"About {rounds} rounds on this machine can see differences of " in told
    told = warned(capsys, rounds=3, threshold=0.1, goal=Goal(budget_s=60))
    assert "With about 3 rounds there is no verdict (selftest of 2026-11-30); to tell" in told
    assert "selftest of" not in warned(capsys, rounds=None, threshold=0.1, goal=goal)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["selftest"], "Missing argument 'ENV'"),
        (["selftest", "tff114"], "There is no environment 'tff114'. Did you mean tf114?"),
        (["selftest", "tf11*"], "A selftest is of one environment, not of "),
        (["selftest", "tf114", "--device", "cpu,gpu"], "A selftest is of one device."),
        (["selftest", "tf114", "--rounds", "1"], "One round shows no noise."),
        (["selftest", "tf114", "--pin", "9999"], "Core 9999 cannot be had here."),
        (["run", "tf114", "--pin", "9999"], "Core 9999 cannot be had here."),
        (["run", "tf114", "--pin", "3-1"], "pin '3-1' is not a CPU set."),
        (["run", "tf114", "--pin", CORES, "--cpus", "0"], "pin and cpus both say on which cores"),
        (["run", "--resume", "x", "--pin", CORES], "takes no other option"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is built, with code 2."""
    assert 2 == __main__.run(words)
    shown = capsys.readouterr()
    assert "" == shown.out
    assert message in shown.err.splitlines()[0]


def test_a_run_is_resumed_on_its_own_cores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where they are gone, it is refused, and says which there are."""
    run = RunFolder.create(tmp_path / "results", factories.plan(pin=(9999,)))
    assert 2 == __main__.run(["run", "--resume", str(run.path)])
    shown = capsys.readouterr().err
    assert "Core 9999 cannot be had here." in shown
    assert f"Those that it may use: {CORES}." in shown
