"""`stackrace doctor` on machines that lack things: this one, with its tools out of sight."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from orchestrator import config, gpus
from orchestrator.model.container import Abilities, LostError
from orchestrator.pipeline import health, measuring
from tests import factories
from tests.fakes import nvml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.model.container import Engine

ROOT = Path(__file__).parents[2]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The doctor as a user starts it, where no Docker, no pyenv and no other Python is."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", "doctor", *words],
        cwd=folder,
        env={
            "PATH": str(folder / "nothing"),
            "HOME": str(home),
            "PYENV_ROOT": str(folder / "no-pyenv"),
            "DOCKER_HOST": f"unix://{folder}/docker.sock",
            "PYTHONPATH": str(ROOT),
            "UV_PYTHON_INSTALL_DIR": str(folder / "no-uv"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def cells(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """The cells of a JSON answer, by backend and device."""
    found = json.loads(done.stdout)["cells"]
    return {(cell["backend"], cell["device"]): cell for cell in found}


def test_three_plain_answers(tmp_path: Path) -> None:
    """Without Docker, without a driver, without Python 3.7: each is said, with what mends it."""
    found = cells(run(tmp_path, "tf114", "--json"))
    python = found["venv", "cpu"]
    assert ("warning", "Python 3.7 is not here, and will be downloaded", "pyenv install 3.7") == (
        python["level"],
        python["reason"],
        python["fix"],
    )
    docker = found["container", "cpu"]
    assert ("cannot", True) == (docker["level"], "cannot be reached at unix://" in docker["reason"])
    assert "systemctl start docker" in docker["fix"]
    if gpus.survey() != gpus.Survey():
        pytest.skip("this machine has an NVIDIA driver")
    driver = found["venv", "gpu"]
    assert ("cannot", "this machine has no NVIDIA GPU, or no driver for it") == (
        driver["level"],
        driver["reason"],
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 0),
        (("tf114",), 0),
        (("tf114", "--device", "cpu"), 0),
        (("tf114", "--backend", "container"), 5),
        (("tf99",), 2),
        (("tf114", "--device", "tpu"), 2),
    ],
)
def test_exit_code(tmp_path: Path, words: Sequence[str], code: int) -> None:
    """5 only when what was asked for cannot run; nothing named, nothing asked for."""
    done = run(tmp_path, *words)
    assert code == done.returncode, done.stderr


def test_gpu_that_was_asked_for(tmp_path: Path) -> None:
    """`--device gpu` without a GPU cannot run."""
    if gpus.survey() != gpus.Survey():
        pytest.skip("this machine has an NVIDIA driver")
    assert run(tmp_path, "tf114", "--device", "gpu").returncode == 5


def test_text(tmp_path: Path) -> None:
    """The table has a line for the environment and names the reason once."""
    done = run(tmp_path, "tf114")
    assert ["tf114", "warning", "cannot", "cannot", "cannot"] in [
        line.split() for line in done.stdout.splitlines()
    ]
    assert 1 == done.stdout.count("cannot: Docker Engine cannot be reached")


def test_doctor_leaves_nothing_behind(tmp_path: Path) -> None:
    """It looks, and makes nothing: no cache folder, no results."""
    run(tmp_path, "tf114")
    assert [] == [path for path in (tmp_path / "home").rglob("*") if "stackrace" in path.name]
    assert {"home"} == {path.name for path in tmp_path.iterdir()}


def test_doctor_imports_nothing_heavy() -> None:
    """Statistics and tables of a run are not needed to look at a machine."""
    code = (
        "import sys; from orchestrator.pipeline import health; from orchestrator.cli import doctor;"
        "print(sorted({'pandas', 'scipy', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "[]\n" == done.stdout


class FakeEngine:
    """An engine of which only its abilities are asked."""

    def __init__(self, abilities: Abilities | None) -> None:
        self.found = abilities
        self.closed = False

    def close(self) -> None:
        """Note it."""
        self.closed = True

    def abilities(self) -> Abilities:
        """What it can, or that it has gone."""
        if self.found is None:
            raise LostError("connection reset")
        return self.found


def engine_fact(abilities: Abilities | None) -> Any:  # noqa: ANN401 - an EngineFact, or its absence
    """What the doctor makes of an engine."""

    def connect() -> Engine:
        return cast("Engine", FakeEngine(abilities))

    settings = config.load(config.Flags())
    return health.gather(
        [], settings, backends=["container"], nvml=nvml.FakeNvml(), connect=connect
    ).engine


def abilities(**facts: Any) -> Abilities:  # noqa: ANN401
    """Of an engine on another machine, so that nothing is looked for here."""
    defaults = {
        "place": "tcp://there:2375",
        "version": "28.2.2",
        "api": "1.50",
        "cgroup": "2",
        "storage": "overlay2",
        "root": None,
    }
    return Abilities(**(defaults | facts))


def test_abilities_of_the_engine() -> None:
    """Runtime and CDI devices are told apart; neither is assumed."""
    plain = engine_fact(abilities())
    assert ("28.2.2", False, False) == (plain.version, plain.nvidia, plain.cdi)
    assert engine_fact(abilities(runtimes=("nvidia", "runc"))).nvidia
    assert engine_fact(abilities(cdi_devices=("nvidia.com/gpu=0",))).cdi


def test_engine_that_goes_away() -> None:
    """An engine that answers and then does not is a finding like any other."""
    assert "connection reset" in engine_fact(None).problem


def test_gpus_of_a_run_stand_in_its_records() -> None:
    """Only those that the run uses."""
    fake = nvml.FakeNvml(nvml.h200("GPU-1"), nvml.h200("GPU-2"))
    assert () == health.with_gpus(factories.HOST, (), fake).gpus
    (used,) = health.with_gpus(factories.HOST, ("GPU-2",), fake).gpus
    assert "GPU-2" == used["uuid"]


def test_cases_on_the_cpu_are_on_the_machine_without_its_gpus() -> None:
    """So that a selftest on the CPU is theirs too, whatever else their run measures."""
    fake = nvml.FakeNvml(nvml.h200("GPU-1"))
    plan = factories.plan(gpus=("GPU-1",))
    hosts = measuring.hosts_of(factories.HOST, plan, fake)
    assert factories.HOST == hosts["cpu"]
    assert health.with_gpus(factories.HOST, ("GPU-1",), fake) == hosts["gpu"]


def test_what_makes_gpus_alike_is_in_the_key_of_the_machine() -> None:
    """Model, memory, power limit, MIG profile and driver are; UUID and clocks are not."""

    def key(*devices: nvml.Device, uuid: str) -> str:
        return health.with_gpus(factories.HOST, (uuid,), nvml.FakeNvml(*devices)).machine

    usual = key(nvml.h200("GPU-1"), uuid="GPU-1")
    busy = nvml.h200("GPU-2")
    busy.sm_mhz = 345
    assert usual == key(nvml.h200("GPU-1"), busy, uuid="GPU-2")
    limited = nvml.h200("GPU-1")
    limited.power_limit = 350_000
    others = {
        factories.HOST.machine,
        usual,
        key(limited, uuid="GPU-1"),
        key(nvml.a100("GPU-1"), uuid="GPU-1"),
        key(nvml.a100("GPU-1").mig("MIG-1"), uuid="MIG-1"),
    }
    assert 5 == len(others)
