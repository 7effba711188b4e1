"""Locks pin everything by hash, say nothing of where they were made, and can be made again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import matrix
from orchestrator.environments import locks
from orchestrator.errors import EnvironmentFailedError, StackraceError, UsageError
from orchestrator.process import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Variant

ROWS = matrix.load().rows
EVERY = [(identifier, variant) for identifier, row in ROWS.items() for variant in row.packages]
OF_KERAS = r"tensorflow(-cpu|-gpu)?|keras|tf-keras|torch"  # TensorFlow 2.12 itself needs jax


@pytest.mark.parametrize(("identifier", "variant"), EVERY)
def test_lock_pins_what_its_row_asks_for(identifier: str, variant: Variant) -> None:
    """Every row has a lock for each variant, with exactly its packages."""
    row = ROWS[identifier]
    pins = locks.read(row, variant).pins
    asked = dict(re.sub(r"\[.*\]", "", pin).split("==") for pin in row.packages[variant])
    assert asked == {name: pins.get(name) for name in asked}
    frameworks = {name for name in pins if re.fullmatch(OF_KERAS, name)}
    assert {name for name in asked if re.fullmatch(OF_KERAS, name)} == frameworks


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
            assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*(\[[a-z,-]+\])?==[0-9a-z.+]+ \\", line)
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
        self.excluded: list[str] = []

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
        self.excluded.append(out.with_name("excluded").read_text(encoding="utf-8"))
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


def test_no_second_tensorflow_comes_in() -> None:
    """tf-keras asks for `tensorflow`: no lock has it beside tensorflow-cpu."""
    for identifier in ROWS:
        pins = locks.read(ROWS[identifier], "cpu").pins
        assert not {"tensorflow", "tensorflow-cpu"} <= set(pins)


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        (("tensorflow-cpu==2.18.1", "tf-keras==2.18.0"), "tensorflow"),
        (("tensorflow[and-cuda]==2.15.0",), "tensorrt\ntensorrt-bindings\ntensorrt-libs"),
        (("tensorflow==2.15.0",), ""),
        (("tf-nightly==2.23.0.dev1", "keras==3.15.1"), "keras-nightly"),
        (("tf-nightly==2.23.0.dev1", "keras-nightly==3.16.0.dev1"), ""),
    ],
)
def test_packages_that_share_a_folder_exclude_each_other(
    tmp_path: Path, packages: tuple[str, ...], expected: str
) -> None:
    """What another package asks for under another name is left out when it is resolved."""
    resolver = Resolver()
    row = msgspec.structs.replace(OWN, packages={"cpu": packages})
    locks.read(row, "cpu", own=tmp_path, run=resolver)
    assert [expected] == resolver.excluded


OWN = msgspec.structs.replace(
    ROWS["tf29"],
    identifier="tf2.9.1",
    tensorflow="2.9.1",
    packages={"cpu": ("tensorflow-cpu==2.9.1", "keras==2.9.0")},
    constraints=("protobuf<3.21",),
    spec="tensorflow==2.9.1",
)


def test_an_own_row_is_resolved_once(tmp_path: Path) -> None:
    """The lock of a pair on the fly is made in the user's folder, kept, and used again."""
    resolver, said = Resolver(), list[str]()
    own = tmp_path / "cache" / "locks"
    python = Path("/pythons/3.7")
    first = locks.read(OWN, "cpu", own=own, python=python, say=said.append, run=resolver)
    second = locks.read(OWN, "cpu", own=own, python=python, say=said.append, run=resolver)
    assert first == second
    assert 1 == len(resolver.commands)
    assert ["tf2.9.1: resolving TensorFlow 2.9.1, Keras 2.9.0 for cpu, Python 3.7."] == said
    assert [first.path] == list(own.iterdir())
    assert "tensorflow-cpu==2.9.1\nkeras==2.9.0" in first.text
    assert ["protobuf<3.21"] == resolver.constraints


def test_an_own_row_without_an_interpreter(tmp_path: Path) -> None:
    """A container brings its own Python: its version is enough to resolve for."""
    resolver = Resolver()
    locks.read(OWN, "cpu", own=tmp_path, run=resolver)
    (command,) = resolver.commands
    assert "3.7" == command[command.index("--python-version") + 1]


@pytest.mark.parametrize(
    "change",
    [
        {"python": "3.8"},
        {"constraints": ()},
        {"packages": {"cpu": ("tensorflow==2.9.1",)}},
    ],
)
def test_a_changed_row_gets_another_lock(tmp_path: Path, change: dict[str, object]) -> None:
    """A run that was made with the old lock still finds it."""
    old = locks.read(OWN, "cpu", own=tmp_path, run=Resolver())
    new = locks.read(msgspec.structs.replace(OWN, **change), "cpu", own=tmp_path, run=Resolver())
    assert old.path != new.path
    assert old.path.exists()


def test_a_copy_of_an_own_row_shares_its_lock(tmp_path: Path) -> None:
    """A pair raced against itself is resolved once."""
    copy = msgspec.structs.replace(OWN, identifier="tf2.9.1-2", lock="tf2.9.1")
    resolver = Resolver()
    first = locks.read(OWN, "cpu", own=tmp_path, run=resolver)
    assert first == locks.read(copy, "cpu", own=tmp_path, run=resolver)


def test_a_row_without_a_build_says_so(tmp_path: Path) -> None:
    """A row of the user's may have no GPU build."""
    with pytest.raises(EnvironmentFailedError, match=r"tf2\.9\.1 has no build for gpu"):
        locks.read(OWN, "gpu", own=tmp_path, run=Resolver())


def test_versions_that_do_not_fit_together(tmp_path: Path) -> None:
    """What uv answers is told as a cause, its words stay in a log, and no lock is left."""

    def conflict(
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        del command, env, timeout_s, cwd
        said = (
            "error: No solution found when resolving dependencies\n"
            "  cause: Because tf-keras==2.18.0 depends on numpy<2 and you require numpy>=2"
        )
        log.write_text(said, encoding="utf-8")
        raise ToolError(["uv"], "ended with exit code 1", said)

    with pytest.raises(EnvironmentFailedError, match="do not fit together") as caught:
        locks.read(OWN, "cpu", own=tmp_path, run=conflict)
    assert "(tf-keras==2.18.0)" in caught.value.what
    (log,) = tmp_path.iterdir()
    assert str(log) in caught.value.fix


def test_the_newest_of_a_package(tmp_path: Path) -> None:
    """A nightly's version is what the index resolves it to today."""
    pins = locks.newest("tf-nightly==1", python=Path("/p"), folder=tmp_path, run=Resolver())
    assert {"tf-nightly": "1"} == pins


def with_extra(*extra: str, row: str = "tf20") -> Row:
    """A row with packages of the user's."""
    return msgspec.structs.replace(ROWS[row], extra=extra)


def test_added_packages_change_no_pin(tmp_path: Path) -> None:
    """The lock of a row with more in it asks for every pin of the row's, and for what is added."""
    resolver = Resolver()
    said: list[str] = []
    found = locks.read(
        with_extra("pandas", "scipy<1.5"), "cpu", own=tmp_path, say=said.append, run=resolver
    )
    plain = locks.read(ROWS["tf20"], "cpu")
    assert plain.pins.items() <= found.pins.items()
    assert {"pandas", "scipy<1.5"} <= set(found.text.splitlines())
    assert plain.digest != found.digest
    assert found.path.parent == tmp_path
    assert found.text.startswith("# TensorFlow 2.0.0, Keras 2.3.1 + pandas + scipy<1.5, cpu, ")
    assert ["tf20: adding pandas, scipy<1.5."] == said


def test_added_packages_are_resolved_once(tmp_path: Path) -> None:
    """Their lock is kept; others are others, and so are those of a row with another lock."""
    resolver = Resolver()
    for row in (
        with_extra("pandas"),
        with_extra("pandas"),
        with_extra("xarray"),
        with_extra("pandas", row="tf21"),
    ):
        locks.read(row, "cpu", own=tmp_path, run=resolver)
    assert 3 == len(resolver.commands)
    assert 3 == len(list(tmp_path.iterdir()))


UNSOLVED = """\
error: No solution found when resolving dependencies
  cause: Because you require numpy==1.21.0
      and numpy<1.17, it is unsatisfiable.

hint: more
"""
OFFLINE = """\
error: No solution found when resolving dependencies:
  cause: Because x was not found in the cache, it is unsatisfiable.

hint: Packages were unavailable because the network was disabled.
"""


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (UNSOLVED, UsageError, "--with numpy==1.21.0 does not fit tf20."),
        (OFFLINE, EnvironmentFailedError, "The package index could not be reached"),
    ],
)
def test_packages_that_do_not_fit(
    tmp_path: Path, said: str, kind: type[StackraceError], message: str
) -> None:
    """What uv says of it is told, but for a network that is not there: that is another matter."""

    def refuse(
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        del env, timeout_s, cwd
        log.write_text(said, encoding="utf-8")
        raise ToolError([str(word) for word in command], "failed", said)

    with pytest.raises(kind, match=message) as caught:
        locks.read(with_extra("numpy==1.21.0"), "cpu", own=tmp_path, run=refuse)
    if kind is UsageError:
        told = "Because you require numpy==1.21.0 and numpy<1.17, it is unsatisfiable.\n"
        assert told in caught.value.why
