"""Values as users write them: thresholds, sizes, devices, seconds and paths."""

from __future__ import annotations

import math
import re
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

from orchestrator.errors import UsageError
from orchestrator.model.names import Device
from orchestrator.model.plan import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.config.file import RunTable
    from orchestrator.config.flags import Flags

LONGEST_NAME = 255  # bytes, on every file system that Linux has
LONGEST_S = 7 * 24 * 3600.0
SHORTEST_BUDGET_S = 1.0
FINEST_PRECISION = 1e-4

T = TypeVar("T")


def parse_threshold(text: str, what: str = "threshold") -> float:
    """`2%` or `0.02` as a fraction between 0 and 1."""
    number = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if number is None:
        raise UsageError(f"{text!r} is not a {what}.", fix="Write it as 2% or 0.02.")
    value = float(number[1]) / (100 if number[2] else 1)
    if not 0 < value < 1:
        raise UsageError(
            f"A {what} of {text} makes no sense: it must lie between 0% and 100%.",
            fix="2% is written as 2% or 0.02.",
        )
    return value


def parse_seconds(text: str | float, what: str) -> float:
    """A number of seconds, or `90s`, `30m`, `2h`, `1h30m`, in seconds; the caller knows bounds."""
    try:
        return float(text)
    except ValueError:
        return _duration(str(text), what)


def _duration(text: str, what: str) -> float:
    number = r"(\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"\s*(?:{number}h)?(?:{number}m)?(?:{number}s)?\s*", text.lower())
    if not text.strip() or found is None:
        raise UsageError(f"{text!r} is not a {what}.", fix="Write it as 90s, 30m, 2h or 1h30m.")
    parts = [float(part or 0) for part in found.groups()]
    return sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=True))


def parse_duration(text: str, what: str = "budget") -> float:
    """`90s`, `30m`, `2h` or `1h30m` in seconds, of a second at least: a number needs its unit."""
    seconds = _duration(text, what)
    if not SHORTEST_BUDGET_S <= seconds <= LONGEST_S:
        raise UsageError(
            f"A {what} of {text} makes no sense: it must lie between a second and a week.",
            why="One process takes longer, and a verdict takes several of each arm.",
            fix="Write it as 90s, 30m, 2h or 1h30m.",
        )
    return seconds


def parse_precision(text: str) -> float:
    """`2%` or `0.02` as a fraction, of at least a hundredth of a percent."""
    value = parse_threshold(text, "precision")
    if value < FINEST_PRECISION:
        raise UsageError(
            f"A precision of {text} makes no sense: it must be 0.01% at least.",
            why="No machine is so steady, however many rounds there are.",
            fix="2% is written as 2% or 0.02.",
        )
    return value


def parse_devices(text: str) -> tuple[Device, ...]:
    """`cpu`, `gpu` or `cpu,gpu`, each once, in the order given."""
    devices: list[Device] = []
    for word in text.split(","):
        device = next((known for known in get_args(Device) if known == word.strip()), None)
        if device is None:
            raise UsageError(
                f"{text!r} names no devices.", fix="Write cpu, gpu, or cpu,gpu to race both."
            )
        if device not in devices:
            devices.append(device)
    return tuple(devices)


def parse_size(text: str, what: str) -> int:
    """`8g` or `512m` in bytes, in powers of 1024, as Docker writes sizes."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*([bkmgt]?)(?:i?b)?\s*", text.lower())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{what} {text!r} is not a size.", fix="Write it as 8g or 512m.")
    power = "bkmgt".index(found[2] or "b")
    return int(found[1]) << (10 * power)


def parse_cores(text: str, what: str) -> tuple[int, ...]:
    """Cores, written as Docker and taskset write them: `0-3,8`; in order.

    UsageError for one that is named twice: another was meant.
    """
    ranges: list[list[int]] = []
    if re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text) is not None:
        ranges = [[int(number) for number in part.split("-")] for part in text.split(",")]
    if not ranges or any(ends[0] > ends[-1] for ends in ranges):
        raise UsageError(f"{what} {text!r} is not a CPU set.", fix="Write it as 0-3 or 0,2,4.")
    cores = Counter(core for ends in ranges for core in range(ends[0], ends[-1] + 1))
    core, times = max(cores.items(), key=lambda item: item[1])
    if times > 1:
        raise UsageError(
            f"{what} {text!r} names core {core} more than once.",
            why="A core counts once; perhaps another one was meant.",
            fix="Name each once, such as 0-3 or 0,2,4.",
        )
    return tuple(sorted(cores))


def waiting(value: str | float | None) -> float:
    """Seconds to wait for a GPU, none unless said."""
    seconds = 0.0 if value is None else parse_seconds(value, "wait-lock")
    if not (math.isfinite(seconds) and 0 <= seconds <= LONGEST_S):
        raise UsageError(
            f"wait-lock must be a number of seconds, at most a week, not {value}.",
            fix="600 waits ten minutes, 0 not at all.",
        )
    return seconds


def threshold(value: str | float | None, file: Path) -> float | None:
    """The threshold of stackrace.toml, when it has one."""
    with said_in(file, None):
        return None if value is None else parse_threshold(str(value))


@contextmanager
def said_in(file: Path, flag: object) -> Iterator[None]:
    """Name the file in what is refused, where it is the file that says it and no option does.

    `flag`: the option of the same name; None, or nothing in it, where it was not given.
    """
    try:
        yield
    except UsageError as error:
        if flag not in (None, ()):
            raise
        what = error.what.replace("--", "")  # a key of the file has none
        raise UsageError(f"{file}: {what}", why=error.why, fix=error.fix) from error


def goal(flags: Flags, table: RunTable, file: Path) -> Goal | None:
    """What decides how many rounds there are, unless their number was given.

    The command line wins over stackrace.toml; UsageError where one of them says both.
    """
    for said, where in ((flags, "--rounds, --budget and --precision"), (table, f"{file}: [run]")):
        if said.rounds is not None and (said.budget, said.precision) != (None, None):
            raise UsageError(
                f"{where}: a number of rounds, or a budget and a precision that decide it, "
                "not both.",
                fix="Leave --rounds out, or the others.",
            )
    if flags.rounds is not None:
        return None
    if flags.budget is not None or flags.precision is not None:
        return Goal(budget_s=flags.budget, precision=flags.precision)
    if table.budget is None and table.precision is None:
        return None
    with said_in(file, None):
        return Goal(
            budget_s=None if table.budget is None else parse_duration(table.budget),
            precision=None if table.precision is None else parse_precision(str(table.precision)),
        )


def folder(text: str | Path, what: str) -> Path:
    """A path that a file can have; UsageError where none can."""
    name = str(text)
    try:
        if "\0" in name:
            problem = "holds a zero byte"
        elif max(len(part.encode()) for part in name.split("/")) > LONGEST_NAME:
            problem = f"has a part of more than {LONGEST_NAME} bytes"
        else:
            return Path(name).expanduser()
    except UnicodeEncodeError:
        problem = "is not UTF-8, and would not survive in JSON"
    except RuntimeError:
        problem = "begins with the name of no user of this machine"
    raise UsageError(f"The path for {what}, {name!r}, {problem}.", fix="Name another.")


def interpreter(version: str, path: str, file: Path) -> Path:
    """The path of an interpreter in stackrace.toml."""
    found = folder(path, f"[interpreters] {version}")
    if not found.is_absolute():
        raise UsageError(
            f"{file}: [interpreters] {version} = {path!r} is not an absolute path.",
            fix="Write the whole path of the interpreter, such as /opt/python3.7/bin/python.",
        )
    return found


def positive(value: int | None, what: str) -> int | None:
    """The number, when there is one and it is more than nothing."""
    if value is not None and value < 1:
        raise UsageError(
            f"{value} {what} would measure nothing.",
            fix="A verdict needs at least 5; 10 are better.",
        )
    return value


def seconds(value: str | float | None, default: float, what: str) -> float:
    """The number of seconds, or the default."""
    found = default if value is None else parse_seconds(value, f"{what}-seconds")
    if not (math.isfinite(found) and 0 < found <= LONGEST_S):
        raise UsageError(
            f"{what}-seconds must be a positive number of seconds, at most a week, not {value}.",
            fix=f"Leave it out for {default:g}.",
        )
    return found


def first(*values: T | None) -> T | None:
    """The first value that was said."""
    return next((value for value in values if value is not None), None)


def several(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """A key of stackrace.toml that may hold one text or a list of them."""
    return (value,) if isinstance(value, str) else value
