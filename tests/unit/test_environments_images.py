"""Images are copies of virtual environments: probed before they are named, or not made at all."""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import matrix
from orchestrator.environments import bases, context, images
from orchestrator.environments.builder import Job
from orchestrator.environments.cache import Slot
from orchestrator.environments.interpreters import Interpreter
from orchestrator.environments.locks import Lock
from orchestrator.environments.options import Options, Wanted
from orchestrator.errors import EnvironmentFailedError, StorageError
from orchestrator.model.container import Image, State
from orchestrator.model.container_options import ContainerOptions
from orchestrator.process import ToolError
from tests.engines import ABILITIES, FakeEngine, Running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.environments.container import ContainerEnvironment

VERSION = platform.python_version()
MINOR = ".".join(VERSION.split(".")[:2])
BASE = Image(id="sha256:base", tags=("base",), digests=("python@sha256:b",))
RESULT = {"schema": "stackrace.result/1", "outcome": "ok"}


class Bench:
    """A virtual environment that looks finished, and an engine with a base."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.result: Mapping[str, object] = RESULT
        self.pythons = {f"python{MINOR}": VERSION}
        self.engine = FakeEngine(program=self.program, kept_images={"base": BASE})
        self.free = 10**12
        self.slot = Slot(name="tf114-cpu-0", environments=folder, logs=folder)
        packages = self.slot.folder / "lib" / "python3.7" / "site-packages"
        packages.mkdir(parents=True)
        (packages / "example.py").write_text("x = 1\n")
        os.utime(packages / "example.py", (1_000_000_000, 1_000_000_000))
        (self.slot.folder / "bin").mkdir()
        (self.slot.folder / "bin" / "python").symlink_to(sys.executable)
        (self.slot.folder / "pyvenv.cfg").write_text("home = /host\n")
        (self.slot.folder / "lib64").symlink_to("lib")
        (folder / "guest.pyz").write_bytes(b"guest")

    def program(self, container: Running) -> None:
        """A base that has some Pythons, and a guest."""
        program = container.asked.command[0]
        container.state = State(running=False)
        if "-I" not in container.asked.command:
            container.files["/job/out/result.json"] = json.dumps(self.result).encode()
        elif program in self.pythons:
            found = {"version": self.pythons[program], "path": "/usr/local/bin/python3.7"}
            found |= {"program": "/venv/bin/python", "implementation": "CPython"}
            container.output = b"hello\n" + json.dumps(found).encode() + b"\n"
        else:
            container.state = State(running=False, exit_code=127)

    @property
    def job(self) -> Job:
        """The finished virtual environment."""
        row = msgspec.structs.replace(matrix.load().rows["tf114"], python=MINOR)
        lock = Lock(path=self.folder / "lock", text="example==1.0\n")
        interpreter = Interpreter(path=Path(sys.executable), version=VERSION, build="b")
        return Job(row=row, variant="cpu", lock=lock, interpreter=interpreter, slot=self.slot)

    @property
    def options(self) -> Options:
        """Everything in this test's folder."""
        return Options(
            cache=self.folder / "cache",
            interpreters={},
            free_bytes=lambda _: self.free,
            containers=ContainerOptions(bases={"tf114": "base"}),
        )

    def prepare(self, source: str = "") -> ContainerEnvironment:
        """Prepare tf114, or this image for it."""
        job = self.job
        return images.prepare(
            {"tf114": job},
            [Wanted(row=job.row, backend="container", source=source)],
            engine=self.engine,
            guest=self.folder / "guest.pyz",
            options=self.options,
            say=self.said.append,
        )["tf114"]

    @property
    def made(self) -> list[Image]:
        """The images that stackrace made."""
        return images.ours(self.engine)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench in a folder of its own."""
    return Bench(tmp_path)


def test_image_is_made_and_then_found(bench: Bench) -> None:
    """The first prepare builds, probes and names; the second finds it."""
    made = bench.prepare()
    assert made == bench.prepare()
    assert 1 == len(bench.engine.contexts)
    ((tag,),) = [image.tags for image in bench.made]
    assert tag.startswith("stackrace/tf114:")
    assert (VERSION, "sha256:1") == (made.python, made.image_digest)
    assert bench.job.lock.digest == made.lock_digest
    assert [] == [*bench.engine.running, *bench.engine.kept_volumes]


def test_context_is_the_virtual_environment(bench: Bench) -> None:
    """The image gets the same files, with the interpreter of the base for the host's."""
    bench.prepare()
    (files,) = bench.engine.contexts
    assert b"x = 1\n" == files["env/lib/python3.7/site-packages/example.py"]
    assert (
        b"home = /usr/local/bin\ninclude-system-site-packages = false\n" == files["env/pyvenv.cfg"]
    )
    assert not [name for name in files if name.startswith("python/")]
    (arguments,) = bench.engine.arguments
    assert ("base", "python@sha256:b", VERSION, "tf114") == tuple(
        arguments[name] for name in ("BASE_IMAGE", "BASE", "PYTHON", "ENVIRONMENT")
    )


def test_another_base_is_another_image(bench: Bench) -> None:
    """What decides what is in an image makes its name."""
    job, file = bench.job, images.dockerfile("cpu")
    names = {
        images.Plan(job=job, base=base, dockerfile=raw).name
        for base in ("one", "two")
        for raw in (file, file + b"\n")
    }
    assert 4 == len(names)


def test_failed_probe_leaves_no_image(bench: Bench) -> None:
    """An image in which the guest does not work gets no name, and is removed."""
    failure = {"kind": "import", "message": "libcudart.so.10.0 is missing"}
    bench.result = {**RESULT, "outcome": "failed", "failure": failure}
    with pytest.raises(EnvironmentFailedError, match="libcudart"):
        bench.prepare()
    assert bench.made == []


def test_base_is_pulled_when_absent(bench: Bench) -> None:
    """A base that the engine lacks is fetched, and that is said."""
    bench.engine.kept_images.clear()
    bench.engine.registry["base"] = BASE
    bench.prepare()
    assert "base: pulling." in bench.said


def test_base_that_cannot_be_had(bench: Bench) -> None:
    """A base that no registry serves: the message shows how to name another."""
    bench.engine.kept_images.clear()
    with pytest.raises(EnvironmentFailedError, match="base cannot be had: manifest") as caught:
        bench.prepare()
    assert "[container.bases]" in caught.value.fix


def test_full_disk_is_seen_before_anything_is_sent(bench: Bench, tmp_path: Path) -> None:
    """An image that would not fit is not begun."""
    bench.engine.found = msgspec.structs.replace(ABILITIES, root=str(tmp_path))
    bench.free = 1
    with pytest.raises(StorageError, match="where Docker keeps images"):
        bench.prepare()
    assert bench.engine.contexts == []


def test_engine_on_another_machine(bench: Bench) -> None:
    """An engine on ARM is refused before anything is made."""
    bench.engine.found = msgspec.structs.replace(ABILITIES, machine="aarch64")
    with pytest.raises(EnvironmentFailedError, match="runs on aarch64"):
        bench.prepare()


def test_engine_that_goes_away(bench: Bench) -> None:
    """A daemon that stops while images are prepared is named."""
    bench.engine.lost = 1
    with pytest.raises(EnvironmentFailedError, match="went away while images"):
        bench.prepare()


def test_image_as_it_is(bench: Bench) -> None:
    """Somebody's image is not built on: its Python runs as the image starts it."""
    bench.pythons = {"python3": "3.6.9"}
    made = bench.prepare(source="base")
    assert bench.engine.contexts == []
    assert ("/venv/bin/python", "3.6.9", "python@sha256:b", "base") == (
        made.interpreter,
        made.python,
        made.image_digest,
        made.lock_digest,
    )


def test_image_without_python(bench: Bench) -> None:
    """An image that has no Python says so."""
    bench.pythons = {}
    with pytest.raises(EnvironmentFailedError, match="No Python runs in the image base"):
        bench.prepare(source="base")


def test_image_is_described_as_a_row(bench: Bench) -> None:
    """What the guest finds in somebody's image becomes a row of its name."""
    bench.pythons = {"python3": "3.6.9"}
    facts = {
        "framework": {"name": "tensorflow", "version": "1.14.0"},
        "apis": {"tf.keras": "2.2.4-tf"},
        "packages": {"tensorflow": "1.14.0"},
    }
    bench.result = {**RESULT, "metadata": facts}
    row = images.describe(
        "base",
        identifier="mine",
        engine=bench.engine,
        guest=bench.folder / "guest.pyz",
        options=bench.options,
        say=bench.said.append,
    )
    assert ("mine", "1.14.0", "3.6.9", ("tf.keras",)) == (
        row.identifier,
        row.tensorflow,
        row.python,
        row.apis,
    )


def test_removing_an_image_removes_its_caches(bench: Bench) -> None:
    """The CUDA caches of an image go with it; others stay."""
    bench.prepare()
    for name, image in {"its": bench.made[0].id, "another's": "sha256:0"}.items():
        labels = {"stackrace": "cuda", "stackrace.keep": "1", "stackrace.image": image}
        bench.engine.make_volume(name, labels)
    images.remove(bench.engine, bench.made)
    assert bench.made == []
    assert ["another's"] == list(bench.engine.kept_volumes)


class Answers:
    """A runner that knows what some interpreters say, and no uv."""

    def __init__(self, prefix: Path, *, standalone: bool) -> None:
        self.said = json.dumps({"prefix": str(prefix), "standalone": standalone})

    def __call__(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        log: Path,
        timeout_s: float,
        cwd: Path | None = None,
    ) -> str:
        """Answer an interpreter; refuse uv."""
        del env, log, timeout_s, cwd
        if "-c" in command:
            return self.said
        raise ToolError([str(word) for word in command], "is not here", "")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A folder that looks like a portable build."""
    folder = tmp_path / "build"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / f"python{MINOR}").write_text("")
    return folder


@pytest.mark.parametrize(
    ("standalone", "inside", "expected"),
    [
        (True, VERSION, ("/opt/stackrace/python/bin", VERSION)),
        (False, VERSION, ("/usr/local/bin", VERSION)),
        (False, f"{MINOR}.999", ("/usr/local/bin", f"{MINOR}.999")),
        (False, "2.7.18", None),
    ],
)
def test_python_of_an_image(
    bench: Bench,
    build: Path,
    *,
    standalone: bool,
    inside: str,
    expected: tuple[str, str] | None,
) -> None:
    """A portable interpreter goes in; else the base's own is used, of the same minor version."""
    bench.pythons = {"python3": inside}
    found = bases.choose(
        bench.engine,
        BASE,
        bench.job.interpreter,
        wanted=MINOR,
        options=bench.options,
        run=Answers(build, standalone=standalone),
    )
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert expected == (found.path.rpartition("/")[0], found.version)


def test_links_of_a_context(tmp_path: Path) -> None:
    """Links inside the tree stay links; what leads out of it is copied; times stay."""
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    tree.mkdir()
    outside.write_text("outside")
    (tree / "file").write_text("a" * 513)
    (tree / "file").chmod(0o600)
    os.utime(tree / "file", (1_000_000_000, 1_000_000_000))
    (tree / "inside").symlink_to("file")
    (tree / "absolute").symlink_to(outside)
    (tree / "up").symlink_to("../outside")
    raw = b"".join(context.stream(context.tree("t", tree)))
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        found = {item.name: item for item in archive.getmembers()}
        copied = archive.extractfile("t/up")
        assert copied is not None
        assert b"outside" == copied.read()
    assert {"t", "t/absolute", "t/file", "t/inside", "t/up"} == set(found)
    assert "file" == found["t/inside"].linkname
    assert found["t/absolute"].isfile()
    assert (1_000_000_000, 0o444, 0) == (
        found["t/file"].mtime,
        found["t/file"].mode,
        found["t/file"].uid,
    )


def test_file_that_changes_meanwhile(tmp_path: Path) -> None:
    """A file that shrinks while it is sent breaks the build off, instead of spoiling the image."""
    path = tmp_path / "file"
    path.write_text("long enough")
    blocks = context.stream(iter([context.Entry(name="file", path=path)]))
    next(blocks)
    path.write_text("short")
    with pytest.raises(OSError, match="changed while it was copied"):
        list(blocks)


def test_packaged_dockerfiles_are_found() -> None:
    """Both kinds are there; only their base, environment and labels vary."""
    for kind in ("cpu", "gpu"):
        text = images.dockerfile(kind).decode()
        assert "FROM ${BASE_IMAGE}" in text
        assert "RUN" not in text
