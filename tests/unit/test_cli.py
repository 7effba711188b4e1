"""The command line: names, messages, exit codes, and what `--help` must not import."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from orchestrator import __main__, cli, grid, workload
from orchestrator.cli import options
from orchestrator.config import Flags
from orchestrator.errors import StackraceError
from orchestrator.model.knobs import KNOBS
from orchestrator.pipeline import reading
from orchestrator.store import RunFolder
from tests import factories

ROOT = str(Path(cli.__file__).parents[2])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in an empty folder, with caches of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STACKRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("STACKRACE_RESULTS", raising=False)
    monkeypatch.delenv(options.NOX_SESSIONS, raising=False)
    monkeypatch.delenv("STACKRACE_PARENT", raising=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rum", "tf114"], "There is no command 'rum'. Did you mean run?"),
        (["run", "tff114"], "There is no environment 'tff114'. Did you mean tf114?"),
        (["run", "tf9*"], "No environment matches 'tf9*'."),
        (["run", "tf114", "--preset", "quik"], "There is no preset 'quik'. Did you mean quick?"),
        (["run", "tf114", "--case", "large-small/*"], "The large model cannot take small data"),
        (["run", "tf114", "--case", "nothing/*"], "No case matches 'nothing/*'."),
        (["run", "tf114", "--case", "*/fit+batchsize=4"], "Did you mean batch_size?"),
        (["run", "tf114", "--workload", "nowhere.py"], "There is no workload nowhere.py."),
        (["run", "tf114", "--with", ""], "--with is empty."),
        (["run", "tf114", "--wait-lock", "3x"], "'3x' is not a number of seconds. Write it as 90s"),
        (["run", "tf114", "--max-job-seconds", "1s2m"], "'1s2m' is not a number of seconds."),
        (["run", "tf114", "--with", "-r"], "--with '-r' is no package."),
        (["run", "--resume", "x", "--profile"], "takes no other option"),
        (["init", "model.txt"], "model.txt ends in neither .py nor .toml."),
        (["init", "nowhere/model.py"], "There is no folder nowhere."),
        (["run", "tf114", "--arm", "keras/eagr"], "No arm matches 'keras/eagr'."),
        (["run", "tf114", "--rounds", "0"], "0 rounds would measure nothing."),
        (["run", "tf114", "--rounds", "many"], "'many' is not a valid integer"),
        (["run", "tf114", "--round", "3"], "--rounds"),
        (["run", "tf114", "--budget", "30"], "'30' is not a budget. Write it as 90s, 30m"),
        (["run", "tf114", "--precision", "2", "--budget", "1h"], "A precision of 2 makes no sense"),
        (["run", "tf114", "--rounds", "6", "--budget", "1h"], "not both"),
        (["run", "--resume", "x", "--budget", "1h"], "takes no other option"),
        (["run", "tf114", "--threshold", "200%"], "must lie between 0% and 100%"),
        (["run", "tf114", "--reference", "tf20"], "The reference 'tf20' is no environment or arm"),
        (["run", "tf114", "--max-job-seconds", "0"], "must be a positive number of seconds"),
        (["run", "tf114", "--max-job-seconds", "3e6"], "at most a week"),
        (["run", "tf114", "--rounds", "100000000"], "No run is that long"),
        (["run", "tf114", "--preset", ""], "--preset is empty."),
        (["run", "tf114", "--reference="], "--reference is empty."),
        (["run", ""], "An argument is empty."),
        (["report", "--results", ""], "--results is empty."),
        (["run"], "Name the environments to race"),
        (["run", "--resume", "x", "--rounds", "3"], "takes no other option"),
        (["run", "--resume", "nowhere"], "nowhere is not a run folder"),
        (["prepare"], "Name an environment"),
        (["status", "nowhere"], "nowhere is not a run folder"),
        (["merge", "nowhere", "-o", "x.csv"], "nowhere is not a run folder"),
        (["merge", "-o", "x.csv"], "Name a run folder"),
        (["compare", "nowhere"], "nowhere is not a run folder"),
        (["compare", "nowhere", "--contrast", "modes"], "'modes' is not one of"),
        (["report"], "There is no run in results."),
        (["report", "nowhere", "--format", "doc"], "There is no report format 'doc'."),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a user mistypes: what is wrong on the first line, exit code 2, no traceback."""
    assert __main__.run(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err.splitlines()[0]
    assert "Traceback" not in shown.err
    assert shown.err.splitlines()[-1] == "stackrace: exit code 2"


def test_unknown_key_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown key of stackrace.toml is named with the nearest valid one."""
    (tmp_path / "stackrace.toml").write_text("[run]\nround = 3\n")
    assert __main__.run(["run", "tf114"]) == 2
    assert "has no key 'round'. Did you mean rounds?" in capsys.readouterr().err


def test_results_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A results folder that is a file is refused before anything is built."""
    (tmp_path / "results").write_text("")
    assert __main__.run(["run", "tf114"]) == 2
    assert "results cannot be written" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def test_init_writes_an_example_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the command that races it, and never overwrites."""
    assert __main__.run(["init"]) == 0
    assert "stackrace run tf114 tf20 --workload my_model.py\n" == capsys.readouterr().out
    (found,) = workload.read([tmp_path / "my_model.py"])
    assert ((32, 64),) == found.shapes
    (tmp_path / "my_model.py").write_text("mine")
    assert __main__.run(["init"]) == 2
    assert "my_model.py exists, and is never overwritten." in capsys.readouterr().err
    assert "mine" == (tmp_path / "my_model.py").read_text()
    assert __main__.run(["init", "other name.py"]) == 0
    assert "--workload 'other name.py'\n" in capsys.readouterr().out


def test_init_writes_settings_that_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example is valid as it is, and so is every line of it that is only shown."""
    assert __main__.run(["init", "stackrace.toml"]) == 0
    assert "stackrace run tf114 tf20\n" == capsys.readouterr().out
    path = tmp_path / "stackrace.toml"
    assert __main__.run(["list"]) == 0
    first, *lines = path.read_text().splitlines()
    shown = [line.removeprefix("# ") if "=" in line or "# [" in line else line for line in lines]
    path.write_text("\n".join([first, *shown]))
    settings = options.configuration(Flags())
    assert ("pandas",) == settings.packages
    assert {"mine"} == set(settings.presets)
    assert {"ours"} == set(settings.rows)
    assert ({}, {"batch_size": "128"}) == settings.presets["mine"].knobs
    capsys.readouterr()
    assert __main__.run(["list"]) == 0
    assert "  mine             what we ship\n" in capsys.readouterr().out


def test_list_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """`list` names every environment, preset, case and arm, in lines that fit."""
    assert __main__.run(["list"]) == 0
    shown = capsys.readouterr().out
    cases = grid.cases(grid.load())
    for word in ("tf114", "tf23", "quick (default)", "seed", "tf.keras/eager", "as_installed"):
        assert word in shown
    for case in cases:
        assert {case.size, case.input, case.method} <= set(re.findall(r"[\w-]+", shown))
    # So the axes say it all.
    sizes = {case.size for case in cases}
    assert len(cases) == len(sizes) * len(grid.INPUTS) * len(grid.METHODS)
    assert set(KNOBS) <= set(re.findall(r"[\w-]+", shown))
    assert "  precision      what the model computes in, instead of float32 (mixed_float16" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_list_as_json_has_every_axis(capsys: pytest.CaptureFixture[str]) -> None:
    """A script reads cases by name, and of a knob what it may be."""
    assert __main__.run(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [case.name for case in grid.cases(grid.load())] == found["cases"]
    knobs = {knob["name"]: knob for knob in found["knobs"]}
    assert list(KNOBS) == list(knobs)
    assert ["yes", "no"] == knobs["jit_compile"]["choices"]
    assert re.fullmatch(knobs["batch_size"]["pattern"], "16,32")


def test_list_shows_the_users_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and presets of stackrace.toml stand in the list like those that ship."""
    (tmp_path / "stackrace.toml").write_text(
        '[environments.ours]\ntensorflow = "2.15.0"\npython = "3.11"\n'
        '[presets.mine]\nsummary = "what we ship"\nrounds = 10\nsizes = ["small-small"]\n'
        'apis = ["tf.keras"]\nmodes = ["eager"]\ninputs = ["dataset"]\nmethods = ["fit"]\n'
    )
    monkeypatch.chdir(tmp_path)
    assert __main__.run(["list"]) == 0
    shown = capsys.readouterr().out
    assert "  ours         TensorFlow 2.15.0, Keras 2.15.0   Python 3.11" in shown
    assert "  mine             what we ship\n" in shown


def test_list_tells_each_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    """What an environment cannot run is named by the parts that matter, and told once for all."""
    assert __main__.run(["list"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"keras3-jax, keras3-torch: not dataset\*?: a tf.data Dataset needs", shown)
    assert "tf220, tf221: not keras/graph, tf.keras/graph: Keras 3 needs eager" in shown
    assert shown.count("Keras 3 needs eager") == 1


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """`list --json` says the same to a script: jobs, time and disk of each preset."""
    assert __main__.run(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    quick = next(preset for preset in found["presets"] if preset["name"] == "quick")
    assert quick["jobs"] == 48
    assert 60 < quick["estimate_s"] < 1200
    assert quick["disk_mb"] > 500


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """`run --help` shows the options, and none that does nothing yet."""
    assert __main__.run(["run", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--preset", "--case", "--arm", "--rounds", "--threshold", "--resume"):
        assert option in shown
    for option in ("--workload", "--with", "--same-weights", "--profile"):
        assert option in shown
    for option in ("--budget", "--precision", "--pin"):
        assert option in shown
    assert "--engine" not in shown


def test_help_has_its_layout(capsys: pytest.CaptureFixture[str]) -> None:
    """The examples in the help stand on lines of their own, without markup left in."""
    assert __main__.run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "\\b" not in shown
    assert "  stackrace run tf114 tf20          which is faster, and how surely\n" in shown
    assert "\n  lock " not in shown


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["report", "{run}", "-o", "/proc/none"], "Name another folder with -o DIR."),
        (["merge", "{run}", "-o", "/proc/none.csv"], "Name another file with -o FILE."),
    ],
)
def test_what_cannot_be_written_names_its_own_option(
    tmp_path: Path, words: list[str], fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The way out is the option that named the place, not another one."""
    plan = factories.plan(rounds=1)
    folder = RunFolder.create(tmp_path, plan)
    for record in factories.measured(plan, lambda _: 0.01):
        folder.write(record)
    assert 2 == __main__.run([word.format(run=folder.path) for word in words])
    shown = capsys.readouterr().err
    assert fix in shown
    assert "--results" not in shown


def test_a_report_is_shown_before_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verdict that cannot be written is seen all the same."""
    plan = factories.plan(rounds=6)
    folder = RunFolder.create(tmp_path, plan)
    for record in factories.measured(plan, lambda _: 0.01):
        folder.write(record)
    (folder.path / "report.md").mkdir()
    with pytest.raises(StackraceError):
        reading.conclude(folder, preparing_s=0.0, more_rounds=None)
    assert "24 of 24 jobs ok" in capsys.readouterr().out


def test_status_counts_in_plain_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One is not many."""
    plan = factories.plan(environments=["tf114"], forms=[("tf.keras", "graph")], rounds=1)
    folder = RunFolder.create(tmp_path, plan)
    assert 0 == __main__.run(["status", str(folder.path)])
    assert [
        "run0  tf114  1 round",
        "1 job planned: none measured yet; 1 job missing",
    ] == capsys.readouterr().out.splitlines()


def test_status_tells_a_block_that_is_going_on_from_superseded_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured of the block that is being measured is superseded by nothing so far."""
    plan = factories.plan(forms=[("tf.keras", "graph")], rounds=2)
    folder = RunFolder.create(tmp_path, plan)
    first, second, third, _ = plan.jobs
    for job, attempt in ((first, 1), (second, 1), (third, 1), (third, 2)):
        folder.write(factories.record(plan, job, attempt=attempt))
    assert 0 == __main__.run(["status", str(folder.path)])
    assert [
        "run0  tf114, tf20  2 rounds",
        (
            "4 jobs planned: 2 ok; 2 jobs missing (1 of these in a block that is not complete); "
            "1 superseded record"
        ),
    ] == capsys.readouterr().out.splitlines()


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the help is shown, and the code is 2."""
    assert __main__.run([]) == 2
    assert "Name a command." in capsys.readouterr().err


def test_hint_repeats_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint for more rounds keeps everything else that was said."""
    more = options.more_rounds(["run", "tf114", "tf20", "--rounds", "3", "--case", "*/fit"])
    assert more(20) == "stackrace run tf114 tf20 --case '*/fit' --rounds 20"
    monkeypatch.setenv(options.NOX_SESSIONS, "bench-tf114 bench-tf20")
    more = options.more_rounds(["run", "tf114", "tf20", "--rounds=3", "--preset", "seed"])
    assert more(20) == "nox -s bench-tf114 bench-tf20 -- --preset seed --rounds 20"
    more = options.more_rounds(["run", "tf114", "tf20", "--budget", "1h", "--precision=2%"])
    assert more(20) == "nox -s bench-tf114 bench-tf20 -- --rounds 20"
    monkeypatch.setenv(options.NOX_SESSIONS, "race")
    more = options.more_rounds(["run", "tf114", "tf20", "--seed", "3"])
    assert more(20) == "nox -s race -- tf114 tf20 --seed 3 --rounds 20"
    monkeypatch.delenv(options.NOX_SESSIONS)
    words = ["run", "tf20", "--workload", "my model.py", "--with", "scipy<1.5", "--profile"]
    more = options.more_rounds([*words, "--case", "*/fit+batch_size=8"])
    assert more(20) == (
        "stackrace run tf20 --workload 'my model.py' --with 'scipy<1.5' --profile "
        "--case '*/fit+batch_size=8' --rounds 20"
    )


def test_hint_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint to go on names the way that the user came."""
    assert options.resume_command(tmp_path) == f"stackrace run --resume {tmp_path}"
    monkeypatch.setenv(options.NOX_SESSIONS, "bench-tf114")
    assert options.resume_command(tmp_path) == f"nox -s race -- --resume {tmp_path}"


def test_a_fault_of_our_own_is_no_regression(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception is shown whole, and never looks like exit code 1."""

    def broken(words: object) -> int:
        raise RuntimeError(words)

    monkeypatch.setattr(cli, "main", broken)
    assert __main__.run(["list"]) == 70
    assert "fault in stackrace itself" in capsys.readouterr().err


def test_full_disk_anywhere_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk is code 5 and a plain message, wherever it is met."""

    def full(_words: object) -> int:
        raise OSError(28, "No space left on device", "some/file")

    monkeypatch.setattr(cli, "main", full)
    assert __main__.run(["list"]) == 5
    assert "The disk is full: some/file" in capsys.readouterr().err


def test_configured_python_that_nothing_uses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interpreter configured under a version that no row has is refused, not ignored."""
    (tmp_path / "stackrace.toml").write_text('[interpreters]\n"3.7.16" = "/usr/bin/python3"\n')
    assert __main__.run(["prepare", "tf114"]) == 2
    assert "3.7.16" in capsys.readouterr().err
