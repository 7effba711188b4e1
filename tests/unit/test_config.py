"""Flags, variables and stackrace.toml."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator import config
from orchestrator.config import Flags
from orchestrator.errors import InputError, UsageError
from orchestrator.model.plan import Goal


def load(
    folder: Path, text: str = "", flags: Flags | None = None, **variables: str
) -> config.Config:
    """The configuration with this stackrace.toml."""
    if text:
        (folder / "stackrace.toml").write_text(text, encoding="utf-8")
    return config.load(flags or Flags(), folder=folder, variables=variables)


def test_defaults(tmp_path: Path) -> None:
    """Without anything said: quick, 2%, the preset's rounds, ./results."""
    found = load(tmp_path)
    assert ("quick", 0.02, None, Path("results")) == (
        found.preset,
        found.threshold,
        found.rounds,
        found.results,
    )


def test_flags_win_over_variables_over_the_file(tmp_path: Path) -> None:
    """Flags, then variables, then stackrace.toml."""
    text = '[run]\npreset = "seed"\nrounds = 7\nresults = "from-file"\nthreshold = "5%"\n'
    found = load(tmp_path, text, Flags(rounds=3), STACKRACE_RESULTS="from-variable")
    assert ("seed", 3, Path("from-variable"), 0.05) == (
        found.preset,
        found.rounds,
        found.results,
        found.threshold,
    )
    flags = Flags(results=Path("from-flag"))
    assert load(tmp_path, text, flags, STACKRACE_RESULTS="v").results == Path("from-flag")


def test_interpreters_come_from_the_file(tmp_path: Path) -> None:
    """A configured interpreter is an absolute path."""
    found = load(tmp_path, '[interpreters]\n"3.7" = "/opt/python3.7/bin/python"\n')
    assert {"3.7": Path("/opt/python3.7/bin/python")} == found.interpreters


def test_cache_can_be_moved(tmp_path: Path) -> None:
    """STACKRACE_CACHE names the cache folder."""
    assert load(tmp_path, STACKRACE_CACHE=str(tmp_path / "c")).cache == tmp_path / "c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[run]\nround = 3\n", "[run] has no key 'round'. Did you mean rounds?"),
        ("[rum]\nrounds = 3\n", "has no key 'rum'. Did you mean run?"),
        ('[run]\nrounds = "three"\n', "Expected `int | null`, got `str`"),
        ("[run\n", "is not TOML"),
        ("[run]\nrounds = 0\n", "0 rounds would measure nothing"),
        ("[run]\nrounds = -4\n", "-4 rounds would measure nothing"),
        ('[run]\nthreshold = "many"\n', "'many' is not a threshold"),
        ("[run]\nthreshold = 2.0\n", "between 0% and 100%"),
        ("[run]\nmax-job-seconds = 0\n", "must be a positive number"),
        ("[run]\nmax-job-seconds = nan\n", "must be a positive number"),
        ('[interpreters]\n"3.7" = "python3.7"\n', "is not an absolute path"),
    ],
)
def test_bad_files_are_usage_errors(tmp_path: Path, text: str, message: str) -> None:
    """Whatever is wrong with stackrace.toml is one clear line and exit code 2."""
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)
    assert message in caught.value.what
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 100_000, "cannot be read"),
        ("x = " + "9" * 5000, "cannot be read"),
        ('[run]\nreference = ""\n', r"\[run\] reference is empty"),
        ('[run]\nmax-job-seconds = "x"\n', "max-job-seconds"),
    ],
)
def test_absurd_files_are_bad_input(tmp_path: Path, text: str, message: str) -> None:
    """What parsers stumble over, and what is empty, ends with code 2 and the file's name."""
    with pytest.raises((UsageError, InputError), match=message) as caught:
        load(tmp_path, text)
    assert "stackrace.toml" in caught.value.what


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("x/" + "y" * 256, "has a part of more than 255 bytes"),
        ("x/" + "\N{SNOWMAN}" * 86, "has a part of more than 255 bytes"),
        ("a\udcffb", "is not UTF-8"),
        ("a\0b", "holds a zero byte"),
        ("~nosuchuser/x", "begins with the name of no user"),
    ],
)
def test_impossible_paths_are_usage_errors(tmp_path: Path, path: str, problem: str) -> None:
    """A folder that cannot be is refused wherever it was named."""
    with pytest.raises(UsageError, match=f"path for results, .* {problem}"):
        load(tmp_path, flags=Flags(results=Path(path)))
    with pytest.raises(UsageError, match=f"path for results, .* {problem}"):
        load(tmp_path, STACKRACE_RESULTS=path)
    with pytest.raises(UsageError, match=f"path for cache, .* {problem}"):
        load(tmp_path, STACKRACE_CACHE=path)


@pytest.mark.parametrize("command", [Flags(), Flags(environments=("tf114",))])
def test_interpreters_are_named_on_the_command_line(tmp_path: Path, command: Flags) -> None:
    """A file that says `existing` for all would leave open which interpreters are meant."""
    with pytest.raises(UsageError, match="does not say which interpreters"):
        load(tmp_path, '[run]\nbackend = "existing"\n', command)


@pytest.mark.parametrize("text", ["tf114=", "=image:1", "="])
def test_half_an_image_is_refused(tmp_path: Path, text: str) -> None:
    """A variable that is not set in `--image tf114=$REF` is no image."""
    with pytest.raises(UsageError, match="is not NAME=REF"):
        load(tmp_path, flags=Flags(environments=("tf114",), images=(text,)))


def test_file_that_is_not_text(tmp_path: Path) -> None:
    """A binary stackrace.toml is a usage error too."""
    (tmp_path / "stackrace.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "value"), [("2%", 0.02), ("0.02", 0.02), (" 12.5 % ", 0.125), (".5", 0.5)]
)
def test_thresholds(text: str, value: float) -> None:
    """Percent and fractions are both read."""
    assert value == pytest.approx(config.parse_threshold(text))


@pytest.mark.parametrize("text", ["2", "0", "100%", "-1%", "", "%", "2%%", "nan"])
def test_thresholds_that_make_no_sense(text: str) -> None:
    """A threshold lies strictly between 0 and 100%."""
    with pytest.raises(UsageError):
        config.parse_threshold(text)


def test_devices_are_left_open_unless_said(tmp_path: Path) -> None:
    """Nothing said means the GPU where that is possible; a flag wins over the file."""
    assert load(tmp_path).devices is None
    text = '[run]\ndevice = "cpu,gpu"\n'
    assert ("cpu", "gpu") == load(tmp_path, text).devices
    assert ("cpu",) == load(tmp_path, text, Flags(device="cpu")).devices


def test_own_interpreters_are_environments(tmp_path: Path) -> None:
    """`--python NAME=PATH` enters NAME, behind the environments that were named, once."""
    flags = Flags(environments=("tf114", "b"), pythons=("a=/opt/a/python", "b=/opt/b=c/python"))
    found = load(tmp_path, flags=flags)
    assert ("tf114", "b", "a") == found.environments
    assert {
        "a": config.Source(backend="existing", place="/opt/a/python"),
        "b": config.Source(backend="existing", place="/opt/b=c/python"),
    } == found.sources


def test_an_image_belongs_to_the_only_environment(tmp_path: Path) -> None:
    """`--image REF` needs no name where one environment is named."""
    reference = "registry.example/tf:1@sha256:ab"
    found = load(tmp_path, flags=Flags(environments=("tf115",), images=(reference,)))
    assert {"tf115": config.Source(backend="container", place=reference)} == found.sources
    with pytest.raises(UsageError, match="for which environment"):
        load(tmp_path, flags=Flags(environments=("a", "b"), images=(reference,)))


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("rounds = 0", Flags(rounds=0)),
        ('with = ["-r"]', Flags(packages=("-r",))),
        ('workload = "a\\u0000b"', Flags(workloads=(Path("a\0b"),))),
        ('results = "a\\u0000b"', Flags(results=Path("a\0b"))),
        ('wait-lock = "3x"', Flags(wait_lock=-1)),
        ('[container]\nmemory = "lots"', Flags(memory="lots")),
        ('[container]\nshm-size = "lots"', Flags(shm_size="lots")),
        ('[container]\ncpus = "all"', Flags(cpus="all")),
        ('pin = "3-1"', Flags(pin="3-1")),
        ('device = "tpu"', Flags(device="tpu")),
        ("wait-lock = -1.0", Flags(wait_lock=-1.0)),
        ("max-job-seconds = 0", Flags(max_job_seconds=0)),
        ("first-call-seconds = -5", None),
        ('budget = "soon"', None),
        ('precision = "0.001%"', None),
    ],
)
def test_what_the_file_says_wrongly_is_told_with_its_name(
    tmp_path: Path, text: str, flags: Flags | None
) -> None:
    """Nobody looks into a file for what stands on the command line, nor the other way round."""
    with pytest.raises(UsageError, match=r"^\S*stackrace\.toml: (?!.*--)"):
        load(tmp_path, f"[run]\n{text}\n")
    if flags is not None:
        with pytest.raises(UsageError) as raised:
            load(tmp_path, f"[run]\n{text}\n", flags)
        assert "stackrace.toml" not in raised.value.what


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (Flags(pythons=("mine",)), "not NAME=PATH"),
        (Flags(pythons=("mine=",)), "not NAME=PATH"),
        (Flags(pythons=("=path",)), "not NAME=PATH"),
        (Flags(pythons=("Mine=/p",)), "is not a name"),
        (Flags(pythons=("a=/p",), images=("a=ref",)), "named twice"),
        (Flags(environments=("tf114",), backend="existing"), "where tf114 is"),
        (Flags(cpus="all"), "not a CPU set"),
        (Flags(cpus="3-1"), "not a CPU set"),
        (Flags(wait_lock=-1.0), "wait-lock"),
        (Flags(wait_lock=float("nan")), "wait-lock"),
        (Flags(memory="much"), "not a size"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, flags: Flags, message: str) -> None:
    """Options that contradict each other, or say nothing, are usage errors."""
    with pytest.raises(UsageError, match=message):
        load(tmp_path, flags=flags)


def test_containers_come_from_flags_and_the_file(tmp_path: Path) -> None:
    """Flags win; bases are named in the file only."""
    text = '[container]\nmemory = "4g"\ncpus = "0-1"\nbases = {tf114 = "local/python:3.7"}\n'
    found = load(tmp_path, text, Flags(memory="2g", shm_size="1g")).containers
    assert (2**31, "0-1", 2**30, {"tf114": "local/python:3.7"}) == (
        found.memory_bytes,
        found.cpus,
        found.shm_bytes,
        found.bases,
    )


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("tf114", "Name its interpreter: --python tf114=/path/to/bin/python"),
        (
            "tensorflow==2.9.1",
            "Name its interpreter instead of tensorflow==2.9.1: --python mine=/path/to/bin/python",
        ),
    ],
)
def test_proposed_names_can_be_used(tmp_path: Path, name: str, fix: str) -> None:
    """A pair is no name for an interpreter, so none with its letters is proposed."""
    with pytest.raises(UsageError) as caught:
        load(tmp_path, flags=Flags(environments=(name,), backend="existing"))
    assert fix == caught.value.fix


def test_workloads_and_packages(tmp_path: Path) -> None:
    """Both may be repeated, stand in the file as one text or a list, and flags win."""
    text = (
        '[run]\nworkload = "model.py"\nwith = ["pandas", "SciPy < 1.5"]\n'
        "same-weights = true\nprofile = true\n"
    )
    found = load(tmp_path, text)
    assert (Path("model.py"),) == found.workloads
    assert ("pandas", "scipy<1.5") == found.packages
    assert found.same_weights
    assert found.profile
    flags = Flags(workloads=(Path("a.py"), Path("b.py")), packages=("xarray", "x_array", "xarray"))
    found = load(tmp_path, text, flags)
    assert (Path("a.py"), Path("b.py")) == found.workloads
    assert ("x-array", "xarray") == found.packages


@pytest.mark.parametrize(
    ("package", "message"),
    [
        (" ", "' ' is no package"),
        ("-r requirements.txt", "is no package"),
        ("./wheel.whl", "is no package"),
        ("https://host/x.whl", "is no package"),
        ("x @ https://host/x.whl", "names an address"),
        ("pandas=1", "is no package"),
        ("tensorflow==2.3", "would change what is compared"),
        ("Keras", "would change what is compared"),
        ("keras_nightly", "would change what is compared"),
    ],
)
def test_what_is_no_package(tmp_path: Path, package: str, message: str) -> None:
    """Only names with versions are added: nothing that could change behind the name."""
    with pytest.raises(UsageError, match=message):
        load(tmp_path, flags=Flags(packages=(package,)))


def test_nothing_is_added_to_what_somebody_else_made(tmp_path: Path) -> None:
    """--with and an interpreter of the user's own exclude each other."""
    for flags in (
        Flags(packages=("pandas",), pythons=("mine=/opt/bin/python",)),
        Flags(packages=("pandas",), images=("mine=image",)),
    ):
        with pytest.raises(UsageError, match="--with cannot add to mine"):
            load(tmp_path, flags=flags)


@pytest.mark.parametrize(
    ("text", "flags", "goal"),
    [
        ("", Flags(), None),
        ("", Flags(budget=90.0), Goal(budget_s=90)),
        ("", Flags(budget=90.0, precision=0.02), Goal(budget_s=90, precision=0.02)),
        ('budget = "1h30m"\nprecision = "2%"', Flags(), Goal(budget_s=5400, precision=0.02)),
        ("precision = 0.02", Flags(), Goal(precision=0.02)),
        ('budget = "30m"', Flags(rounds=7), None),
        ("rounds = 7", Flags(precision=0.05), Goal(precision=0.05)),
        ('budget = "30m"', Flags(precision=0.05), Goal(precision=0.05)),
    ],
)
def test_what_decides_the_rounds(
    tmp_path: Path, text: str, flags: Flags, goal: Goal | None
) -> None:
    """The command line, all of it, before the file."""
    assert goal == load(tmp_path, f"[run]\n{text}\n", flags).goal


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("", Flags(rounds=7, budget=90.0), "--rounds, --budget and --precision: "),
        ("", Flags(rounds=7, precision=0.02), "--rounds, --budget and --precision: "),
        ('rounds = 7\nbudget = "30m"', Flags(), r"stackrace.toml: \[run\]: a number of rounds"),
        ('budget = "30"', Flags(), "stackrace.toml: '30' is not a budget"),
        ('precision = "200%"', Flags(), "stackrace.toml: A precision of 200% makes no sense"),
    ],
)
def test_rounds_are_given_or_decided(tmp_path: Path, text: str, flags: Flags, message: str) -> None:
    """Never both in one place; the message names the place."""
    with pytest.raises(UsageError, match=message):
        load(tmp_path, f"[run]\n{text}\n", flags)


def test_seconds_in_the_file_may_have_a_unit(tmp_path: Path) -> None:
    """As those of the options of the same names."""
    found = load(tmp_path, '[run]\nwait-lock = "10m"\nmax-job-seconds = "90s"\n')
    assert (600.0, 90.0) == (found.wait_lock_s, found.limits.job_s)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe of that name, and a link that leads nowhere."""
    path = tmp_path / "stackrace.toml"
    os.mkfifo(path)
    with pytest.raises(UsageError, match=r"stackrace\.toml is not a file"):
        load(tmp_path)
    path.unlink()
    path.symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"stackrace\.toml is not a file"):
        load(tmp_path)
