"""An environment runs a worker in a folder of its own, and says what that left behind."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator import matrix
from orchestrator.environments import builder
from orchestrator.environments.venv import VenvEnvironment
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.execution import Execution
    from orchestrator.model.names import Device

LIMITS = Limits(first_call_s=30.0, job_s=30.0)
# A guest that leaves what it sees of its surroundings as its result.
MIRROR = """
import json, os, sys
request = json.load(open(sys.argv[1]))
facts = {"request": request, "variables": dict(os.environ), "folder": os.getcwd(),
         "home": os.path.isdir(os.environ["HOME"]), "no_user_site": sys.flags.no_user_site}
json.dump(facts, open(sys.argv[2], "w"))
"""
ENTER = """
import sys, json
phases = open(json.load(open(sys.argv[1]))["phase_path"], "a")
def enter(name):
    phases.write(name + "\\n"); phases.flush()
"""


@pytest.fixture(params=["plain", "a b'c\"d\ne"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder for everything, once with a name that shells and parsers trip over."""
    path: Path = tmp_path / request.param
    path.mkdir()
    return path


def environment(folder: Path, code: str) -> VenvEnvironment:
    """This test's own interpreter as an environment, with a script as the guest."""
    binaries = folder / "env" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    guest = folder / "guest.py"
    guest.write_text(code, encoding="utf-8")
    return VenvEnvironment(
        identifier="tf114", lock_digest="0", python="3.7.16", folder=folder / "env", guest=guest
    )


def run(folder: Path, code: str, *, limits: Limits = LIMITS) -> Execution:
    """Run this code as the guest; the work folder is `work`."""
    return start(environment(folder, code), folder, limits=limits)


def start(
    prepared: VenvEnvironment, folder: Path, *, limits: Limits = LIMITS, device: Device = "cpu"
) -> Execution:
    """Run one job in an environment."""
    work = folder / "work"
    work.mkdir()
    request = Request(
        action="measure",
        environment="tf114",
        expected=Expected(tensorflow="1.14.0", keras="2.2.5"),
        phase_path=str(work / "phases"),
        device=device,
    )
    return prepared.run(request, work=work, log=folder / "log", limits=limits)


def mirrored(folder: Path) -> dict[str, Any]:
    """What the mirroring guest saw."""
    execution = run(folder, MIRROR)
    assert execution.result is not None, execution.log_tail
    found: dict[str, Any] = json.loads(execution.result)
    return found


def test_guest_gets_the_request(folder: Path) -> None:
    """The request arrives whole, with the host as the process to die with."""
    request = mirrored(folder)["request"]
    assert ("measure", "tf114") == (request["action"], request["environment"])
    assert os.getpid() == request["parent_pid"]


def test_guest_runs_in_its_own_folder_and_home(folder: Path) -> None:
    """The worker's folder is the job's, and its home is inside: both go when the job has ended."""
    seen = mirrored(folder)
    work = folder / "work"
    assert str(work) == seen["folder"]
    assert seen["variables"]["HOME"].startswith(str(work))
    assert seen["home"]
    assert {"request.json", "result.json", "home"} == {path.name for path in work.iterdir()}


def test_guest_is_shielded_from_the_users_python(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's PYTHONPATH and user site do not reach the worker; the hash seed is fixed."""
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    seen = mirrored(folder)
    assert "PYTHONPATH" not in seen["variables"]
    assert "0" == seen["variables"]["PYTHONHASHSEED"]
    assert 1 == seen["no_user_site"]


def test_how_it_ended_is_kept(folder: Path) -> None:
    """A worker that dies reports its signal, its last phase and its last words, and no result."""
    code = ENTER + "enter('import'); enter('build'); print('last words', flush=True)\n"
    execution = run(folder, code + "import os; os.kill(os.getpid(), 11)")
    assert (signal.SIGSEGV, "build", None) == (
        execution.signal,
        execution.last_phase,
        execution.result,
    )
    assert "last words" == execution.log_tail


def test_limit_of_the_first_call(folder: Path) -> None:
    """Until the warm-up begins, the limit of the first call holds."""
    code = ENTER + "enter('first_call'); import time; time.sleep(60)"
    execution = run(folder, code, limits=Limits(first_call_s=1.0, job_s=60.0))
    assert ("first_call", "first_call") == (execution.exceeded, execution.last_phase)


def test_limit_of_the_job(folder: Path) -> None:
    """From the warm-up on, the limit of the job holds."""
    code = ENTER + "enter('warmup'); import time; time.sleep(60)"
    execution = run(folder, code, limits=Limits(first_call_s=60.0, job_s=1.0))
    assert ("job", "warmup") == (execution.exceeded, execution.last_phase)


@pytest.mark.parametrize("gone", ["env/bin/python", "guest.py"])
def test_what_vanished_stops_the_run(folder: Path, gone: str) -> None:
    """An environment or a guest that was removed is no outcome of the job: the run can go on."""
    prepared = environment(folder, MIRROR)
    (folder / gone).unlink()
    with pytest.raises(EnvironmentFailedError, match="tf114 cannot run any more") as caught:
        start(prepared, folder)
    assert str(folder / gone) in caught.value.what
    assert "--resume" in caught.value.fix


def test_environment_says_how_it_is_made_again(folder: Path) -> None:
    """Should its imports turn out to be broken, the record can name the folder to delete."""
    assert str(folder / "env") in run(folder, MIRROR).mend


def test_worker_on_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets its GPUs, the environment's own CUDA before the user's, and a lasting cache."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/user/lib")
    prepared = dataclasses.replace(
        environment(folder, MIRROR),
        gpus=("GPU-1", "MIG-GPU-2/1/0"),
        cuda_cache=folder / "cuda" / "tf114-gpu-0",
        variables={"KERAS_BACKEND": "jax"},
    )
    packages = prepared.folder / "lib" / "python3.7" / "site-packages" / "nvidia"
    for name in ("cudnn", "cublas"):
        (packages / name / "lib").mkdir(parents=True)
    execution = start(prepared, folder, device="gpu")
    assert execution.result is not None, execution.log_tail
    variables = json.loads(execution.result)["variables"]
    cache = folder / "cuda" / "tf114-gpu-0" / "GPU-1+MIG-GPU-2_1_0"
    assert {
        "CUDA_VISIBLE_DEVICES": "GPU-1,MIG-GPU-2/1/0",
        "LD_LIBRARY_PATH": f"{packages}/cublas/lib:{packages}/cudnn/lib:/user/lib",
        "CUDA_CACHE_PATH": str(cache),
        "CUDA_CACHE_MAXSIZE": "4294967296",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "KERAS_BACKEND": "jax",
    }.items() <= variables.items()
    assert cache.is_dir()


def test_worker_on_the_cpu_sees_no_gpu(folder: Path) -> None:
    """The same environment's job on the CPU gets none of that."""
    prepared = dataclasses.replace(
        environment(folder, MIRROR), gpus=("GPU-1",), cuda_cache=folder / "cuda"
    )
    execution = start(prepared, folder)
    assert execution.result is not None, execution.log_tail
    variables = json.loads(execution.result)["variables"]
    assert "-1" == variables["CUDA_VISIBLE_DEVICES"]
    assert "CUDA_CACHE_PATH" not in variables
    assert not (folder / "cuda").exists()


def test_libraries_get_the_names_that_are_looked_for(tmp_path: Path) -> None:
    """TensorFlow 2.4 finds the wheels' libcusolver under its own name; on the CPU nothing is."""
    row = matrix.load().rows["tf24"]
    builder.link_libraries(row, tmp_path)
    assert [] == list(tmp_path.iterdir())
    library = tmp_path / "lib/python3.7/site-packages/nvidia/cusolver/lib/libcusolver.so.11"
    library.parent.mkdir(parents=True)
    library.write_text("library")
    builder.link_libraries(row, tmp_path)
    builder.link_libraries(row, tmp_path)
    link = library.with_name("libcusolver.so.10")
    assert ("libcusolver.so.11", "library") == (str(link.readlink()), link.read_text())
