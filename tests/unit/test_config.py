"""Flags, variables and stackrace.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import config
from orchestrator.config import Flags
from orchestrator.errors import UsageError


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
