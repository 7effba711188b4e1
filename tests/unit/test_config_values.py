"""How durations, sizes, cores and percents are written, and what is refused."""

from __future__ import annotations

import pytest

from orchestrator.cli import options
from orchestrator.config import values
from orchestrator.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64b", 64), ("2k", 2048), ("512m", 2**29), ("8g", 2**33), ("8GiB", 2**33)],
)
def test_sizes_are_written_as_docker_writes_them(text: str, size: int) -> None:
    """A number and a unit, in powers of 1024."""
    assert size == values.parse_size(text, "memory")


@pytest.mark.parametrize("text", ["", "0", "0g", "-1g", "g", "8x", "1.5g", "8 g g", "²g"])
def test_other_sizes_are_refused(text: str) -> None:
    """What is no size says how to write one."""
    with pytest.raises(UsageError, match="is not a size") as caught:
        values.parse_size(text, "memory")
    assert "8g" in caught.value.fix


@pytest.mark.parametrize(
    ("text", "devices"),
    [("cpu", ("cpu",)), ("gpu", ("gpu",)), ("cpu,gpu", ("cpu", "gpu")), ("gpu, gpu", ("gpu",))],
)
def test_devices_are_listed_with_commas(text: str, devices: tuple[str, ...]) -> None:
    """Each device once, in the order given."""
    assert devices == values.parse_devices(text)


@pytest.mark.parametrize("text", ["", "tpu", "cpu,", "GPU"])
def test_other_devices_are_refused(text: str) -> None:
    """A device that does not exist is named."""
    with pytest.raises(UsageError, match="names no devices"):
        values.parse_devices(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), (" 1.5H ", 5400), ("1m30s", 90)],
)
def test_durations_are_written_with_their_units(text: str, seconds: float) -> None:
    """Hours, minutes and seconds, each once at most and in this order."""
    assert seconds == values.parse_duration(text)


@pytest.mark.parametrize(
    "text", ["", " ", "90", "s", "30m1h", "-5m", "0s", "0.5s", "1e3s", "8d", "200h"]
)
def test_other_durations_are_refused(text: str) -> None:
    """Without a unit nobody knows whether it means seconds or minutes."""
    with pytest.raises(UsageError, match="budget") as raised:
        values.parse_duration(text)
    assert "Write it as 90s, 30m, 2h or 1h30m." == raised.value.fix


def test_precisions_that_no_machine_has_are_refused() -> None:
    """Written like a threshold; nothing below a hundredth of a percent."""
    assert 0.0001 == values.parse_precision("0.01%")
    for text in ("0.009%", "0.00001", "0", "2"):
        with pytest.raises(UsageError, match=r"precision of .* makes no sense") as raised:
            values.parse_precision(text)
        assert raised.value.fix


def test_cores_are_named_once() -> None:
    """Who names one twice meant another."""
    assert (0, 1, 2, 8) == values.parse_cores("8,0-2", "pin")
    for text in ("0,0", "0-3,2", "1-2,2-3"):
        with pytest.raises(UsageError, match="more than once") as raised:
            values.parse_cores(text, "pin")
        assert "Name each once" in raised.value.fix


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("120", 120.0), ("2m", 120.0), ("1.5", 1.5), ("0", 0.0), ("0s", 0.0), ("0.5s", 0.5)],
)
def test_seconds_may_have_a_unit(text: str, seconds: float) -> None:
    """Who writes --budget 90s writes --wait-lock 90s as well."""
    assert seconds == options.Seconds().convert(text, None, None)
