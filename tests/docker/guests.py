"""Programs that run as the guest in a container, and what looks after them."""

from __future__ import annotations

import dataclasses
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.environments import context, reaping
from orchestrator.environments.container import ContainerEnvironment
from orchestrator.model.container import RefusedError
from orchestrator.model.plan import Limits
from orchestrator.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from orchestrator.containers import DockerEngine
    from orchestrator.model.execution import Execution
    from orchestrator.model.names import Device

LIMITS = Limits(first_call_s=120.0, job_s=120.0)

# A guest that leaves what it can see and do as its result.
MIRROR = """
import json, os, sys
def refused(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return type(error).__name__
facts = {
    "uid": os.getuid(), "folder": os.getcwd(), "variables": dict(os.environ),
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line],
    "root": refused("/new"), "python": refused(sys.executable + ".new"),
    "home": refused(os.path.expanduser("~/new")), "tmp": refused("/tmp/new"),
    "capabilities": [line.split()[1] for line in open("/proc/self/status") if "CapEff" in line][0],
    "no_new_privileges": [l.split()[1] for l in open("/proc/self/status") if "NoNewPrivs" in l][0],
}
os.chmod("/tmp/new", 0o755)
json.dump(facts, open(sys.argv[2], "w"))
"""
# Guests that announce a phase, and then do not end by themselves.
ENTER = """
import json, os, sys, threading, time
def enter(name):
    with open(json.load(open(sys.argv[1]))["phase_path"], "a") as file:
        file.write(name + "\\n")
"""
ENDLESS = ENTER + "enter('warmup'); print('last words', flush=True); time.sleep(600)"
STUBBORN = (
    ENTER + "import signal\nsignal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)\n"
    "enter('first_call'); time.sleep(600)"
)
GREEDY = ENTER + "enter('build'); kept = [bytearray(10**7) for _ in range(100)]; time.sleep(600)"
# One that reads a workload beside its parts, and leaves a trace of two folders.
CARRIER = """
import json, os, sys
asked = json.load(open(sys.argv[1]))
place = asked["workload"]
part = os.path.join(os.path.dirname(place), "parts", "a.txt")
folder = os.path.join(asked["trace_folder"], "plugins")
os.makedirs(folder)
open(os.path.join(folder, "trace.pb"), "w").write("a trace")
facts = {"workload": open(place).read(), "part": open(part).read(), "writable": os.access(part, 2)}
json.dump(facts, open(sys.argv[2], "w"))
"""
PACKAGES = """
import glob, json, os, site, sys
(folder,) = site.getsitepackages()
names = [os.path.basename(path) for path in glob.glob(os.path.join(folder, "*.dist-info"))]
json.dump(sorted(names), open(sys.argv[2], "w"))
"""


def on(engine: DockerEngine, image: str, folder: Path, **changes: Any) -> ContainerEnvironment:  # noqa: ANN401
    """An environment of somebody's image."""
    found = engine.image(image)
    assert found is not None
    made = ContainerEnvironment(
        identifier="tf114",
        lock_digest="0",
        python="3.7",
        image=found.id,
        image_digest=found.id,
        interpreter="python3",
        guest=folder / "guest.py",
        engine=engine,
    )
    return dataclasses.replace(made, **changes)


def run(
    environment: ContainerEnvironment,
    folder: Path,
    code: str,
    *,
    limits: Limits = LIMITS,
    device: Device = "cpu",
    beat: Callable[[float], None] = lambda _: None,
    workload: str = "",
    trace_folder: str = "",
) -> Execution:
    """Run this code as the guest, in a container."""
    guest = folder / "guest.py"
    guest.write_text(code, encoding="utf-8")
    work = folder / "work"
    work.mkdir()
    request = Request(
        action="measure",
        environment="tf114",
        phase_path=str(work / "phases"),
        device=device,
        workload=workload,
        trace_folder=trace_folder,
    )
    return dataclasses.replace(environment, guest=guest).run(
        request, work=work, log=folder / "log", limits=limits, beat=beat
    )


def name_bases(folder: Path, bases: Mapping[str, str]) -> None:
    """Settings in the folder of a command that name base images."""
    lines = [f'{name} = "{base}"' for name, base in bases.items()]
    (folder / "stackrace.toml").write_text("\n".join(["[container.bases]", *lines, ""]))


def left(engine: DockerEngine) -> list[str]:
    """Containers and volumes of jobs that are still there."""
    found = [*engine.containers(), *engine.volumes()]
    return [item.id for item in found if reaping.KEEP not in item.labels]


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    for _ in range(2400):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail(f"{what} did not come")


def ours(engine: DockerEngine) -> str:
    """The container of this process that runs now."""
    found: list[str] = []

    def running() -> bool:
        found[:] = running_of(engine, reaping.owner())
        return bool(found)

    wait_for(running, "a container")
    return found[0]


def running_of(engine: DockerEngine, label: str) -> list[str]:
    """The running containers of that owner."""
    found = []
    for item in engine.containers():
        with suppress(RefusedError):  # it is being made, or removed, at this moment
            if item.labels.get(reaping.OWNER) == label and engine.state(item.id).running:
                found.append(item.id)
    return found


def archive_of(dockerfile: str) -> Iterator[bytes]:
    """A build context of one file."""
    return context.stream(iter([context.Entry(name="Dockerfile", raw=dockerfile.encode())]))
