"""Locks pin everything by hash, say nothing of where they were made, and can be made again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator import matrix
from orchestrator.environments import locks
from orchestrator.errors import EnvironmentFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.model.names import Variant

ROWS = matrix.load().rows
EVERY = [(identifier, variant) for identifier in ROWS for variant in locks.VARIANTS]


@pytest.mark.parametrize(("identifier", "variant"), EVERY)
def test_lock_pins_what_its_row_asks_for(identifier: str, variant: Variant) -> None:
    """Every row has a lock for each variant, with exactly its packages."""
    row = ROWS[identifier]
    pins = locks.read(row, variant).pins
    assert set(row.packages[variant]) <= {f"{name}=={pins[name]}" for name in pins}
    frameworks = {name for name in pins if re.fullmatch(r"tensorflow(-cpu|-gpu)?|keras", name)}
    assert {pin.split("==")[0] for pin in row.packages[variant]} == frameworks


@pytest.mark.parametrize(("identifier", "variant"), EVERY)
def test_every_line_is_a_pin_or_a_hash(identifier: str, variant: Variant) -> None:
    """Behind one line of ours, a lock holds pins with hashes, and no index, host or path."""
    header, *lines = locks.read(ROWS[identifier], variant).text.splitlines()
    row = ROWS[identifier]
    expected = f"# {row.title}, {variant}, Python {row.python}. Made by `nox -s lock`."
    assert expected == header
    for line, following in zip(lines, [*lines[1:], "end==0"], strict=True):
        if line.startswith(" "):
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line)
        else:
            assert re.fullmatch(r"[a-z0-9][a-z0-9-]*==[0-9a-z.]+ \\", line)
            assert following.startswith("    --hash=")


def test_all_pins_are_read() -> None:
    """A lock's pins are all its packages, whatever characters their names have."""
    lock = locks.Lock(path=Path("x"), text="a-b.c==1.0 \\\n    --hash=sha256:00\nd==2\n")
    assert {"a-b.c": "1.0", "d": "2"} == lock.pins


def test_digest_follows_the_text() -> None:
    """The digest is over the text alone: the same from every clone."""
    digests = {
        locks.Lock(path=Path(path), text=text).digest
        for path, text in (("x", "a==1"), ("y", "a==1"), ("x", "a==2"))
    }
    assert 2 == len(digests)


def test_a_copy_of_a_row_reads_the_rows_lock() -> None:
    """Racing an environment against itself needs no second lock."""
    row, copy = matrix.select(matrix.load(), ["tf114", "tf114"])
    assert locks.read(row, "cpu") == locks.read(copy, "cpu")


def test_missing_lock_says_how_to_make_it(tmp_path: Path) -> None:
    """A row without a lock is an error that names the command."""
    with pytest.raises(EnvironmentFailedError, match="tf114 has no lock for cpu") as caught:
        locks.read(ROWS["tf114"], "cpu", locks=tmp_path)
    assert "nox -s lock" in caught.value.fix


class Resolver:
    """Stands in for uv: writes what it was asked for, pinned, and remembers the old pins."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.constraints: list[str] = []
        self.old: list[str] = []

    def __call__(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        """Resolve nothing, hash nothing."""
        del env, log, timeout_s, cwd
        words = [str(word) for word in command]
        out = Path(words[words.index("--output-file") + 1])
        wanted = out.with_name("in")
        self.commands.append(words)
        self.old.append(out.read_text(encoding="utf-8") if out.exists() else "")
        self.constraints.append(out.with_name("constraints").read_text(encoding="utf-8"))
        out.write_text(wanted.read_text(encoding="utf-8"), encoding="utf-8")
        return ""


def compile_tf20(folder: Path, resolver: Resolver) -> list[Path]:
    """Make both locks of tf20 in `folder`."""
    return locks.compile_locks(
        [ROWS["tf20"]],
        interpreter=lambda version: Path(f"/pythons/{version}"),
        say=lambda _: None,
        locks=folder,
        run=resolver,
    )


def test_locks_are_compiled_for_both_variants(tmp_path: Path) -> None:
    """A lock is resolved for the row's Python, under its constraints, with hashes."""
    resolver = Resolver()
    changed = compile_tf20(tmp_path, resolver)
    assert ["tf20-cpu.txt", "tf20-gpu.txt"] == [path.name for path in changed]
    assert "tensorflow-gpu==2.0.0\nkeras==2.3.1" in changed[1].read_text(encoding="utf-8")
    assert ["\n".join(ROWS["tf20"].constraints)] * 2 == resolver.constraints
    for command in resolver.commands:
        assert "--generate-hashes" in command
        assert "/pythons/3.7" == command[command.index("--python") + 1]


def test_locks_keep_what_holds(tmp_path: Path) -> None:
    """Made again, a lock starts from its old pins, and an unchanged one is not touched."""
    compile_tf20(tmp_path, Resolver())
    old = (tmp_path / "tf20-cpu.txt").read_text(encoding="utf-8")
    resolver = Resolver()
    assert [] == compile_tf20(tmp_path, resolver)
    assert old == resolver.old[0]
