"""Which devices a run uses, with GPUs that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import config, gpus, matrix
from orchestrator.config import Flags
from orchestrator.environments.options import Wanted
from orchestrator.errors import EnvironmentFailedError, UsageError
from orchestrator.pipeline import devices
from tests.engines import ABILITIES, FakeEngine
from tests.fakes.nvml import FakeNvml, Process, h200, rtx3090

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.names import Backend


def wanted(*names: str, backend: Backend = "venv", source: str = "") -> list[Wanted]:
    """Environments by identifier."""
    rows = matrix.select(matrix.load(), names)
    return [Wanted(row=row, backend=backend, source=source) for row in rows]


def settings(tmp_path: Path, **flags: str) -> config.Config:
    """A configuration with these flags."""
    return config.load(Flags(**flags), folder=tmp_path, variables={})  # type: ignore[arg-type]


def test_without_a_gpu_the_cpu_is_used(tmp_path: Path) -> None:
    """Nothing asked for and no driver: the CPU, and nothing speaks against it."""
    choice = devices.choose(wanted("tf114", "tf218"), settings(tmp_path), nvml=FakeNvml())
    assert (("cpu",), (), {}, "cpu") == (
        choice.devices,
        choice.uuids,
        choice.against,
        choice.variant,
    )


def test_a_gpu_that_fits_every_environment_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default is the GPU where each environment runs on it, and the first line says so."""
    gpu = h200()
    choice = devices.choose(wanted("tf216", "tf218"), settings(tmp_path), nvml=FakeNvml(gpu))
    assert (("gpu",), (gpu.uuid,), {}, "gpu") == (
        choice.devices,
        choice.uuids,
        choice.against,
        choice.variant,
    )
    assert capsys.readouterr().err.startswith("On the GPU 0 (NVIDIA H200)")


def test_one_that_does_not_fit_leaves_all_on_the_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One environment that cannot use the GPU keeps the race on the CPU, with the reason."""
    found = wanted("tf114", "tf218", backend="container")
    choice = devices.choose(found, settings(tmp_path), nvml=FakeNvml(h200()))
    assert ("cpu",) == choice.devices
    assert "On the CPU: No GPU here is free and can run" in capsys.readouterr().err


def test_gpu_asked_for_makes_hopeless_cells_unsupported(tmp_path: Path) -> None:
    """On an H200 TensorFlow 1.14 is refused with the reason, 2.18 is accepted, 2.10 is slow."""
    found = wanted("tf114", "tf210", "tf218", backend="container")
    choice = devices.choose(found, settings(tmp_path, device="gpu"), nvml=FakeNvml(h200()))
    assert [("tf114", "gpu")] == list(choice.against)
    assert "9.0" in choice.against["tf114", "gpu"]
    assert {"tf210"} == choice.slow
    assert choice.hopeless("tf114")
    assert not choice.hopeless("tf218")


def test_both_devices_leave_the_cpu(tmp_path: Path) -> None:
    """With cpu,gpu a pair that no GPU runs is still raced on the CPU."""
    choice = devices.choose(
        wanted("tf20", "tf218", backend="container"),
        settings(tmp_path, device="cpu,gpu"),
        nvml=FakeNvml(rtx3090()),
    )
    assert [("tf20", "gpu")] == list(choice.against)
    assert not choice.hopeless("tf20")


def test_cuda_10_in_a_venv_is_container_only(tmp_path: Path) -> None:
    """A pair whose CUDA is in no wheel says which backend can."""
    with pytest.raises(EnvironmentFailedError, match="Nothing of this can run here") as caught:
        devices.choose(wanted("tf20"), settings(tmp_path, device="gpu"), nvml=FakeNvml(h200()))
    assert "containers only" in caught.value.why or "9.0" in caught.value.why


def test_gpu_without_a_driver_can_run_nothing(tmp_path: Path) -> None:
    """Asked for a GPU where there is none: code 5, the reason, and the doctor."""
    with pytest.raises(EnvironmentFailedError) as caught:
        devices.choose(wanted("tf218"), settings(tmp_path, device="gpu"), nvml=FakeNvml())
    assert 5 == caught.value.exit_code
    assert "no NVIDIA GPU" in caught.value.why
    assert "stackrace doctor tf218" == caught.value.fix


def test_somebodys_own_environment_is_believed(tmp_path: Path) -> None:
    """What an interpreter of the user's was built for is not known here: it may try."""
    found = wanted("tf20", backend="existing", source="/opt/python")
    choice = devices.choose(found, settings(tmp_path, device="gpu"), nvml=FakeNvml(h200()))
    assert {} == choice.against
    with pytest.raises(EnvironmentFailedError):
        devices.choose(found, settings(tmp_path, device="gpu"), nvml=FakeNvml())


def test_named_gpus_mean_the_gpu(tmp_path: Path) -> None:
    """`--gpus 1` without --device races on that GPU; one that is not there is a usage error."""
    nvml = FakeNvml(h200(), rtx3090())
    choice = devices.choose(wanted("tf218"), settings(tmp_path, gpus="1"), nvml=nvml)
    assert (("gpu",), (rtx3090().uuid,)) == (choice.devices, choice.uuids)
    with pytest.raises(UsageError):
        devices.choose(wanted("tf218"), settings(tmp_path, gpus="7"), nvml=nvml)


def test_a_gpu_that_is_free_is_preferred(tmp_path: Path) -> None:
    """`auto` passes over a GPU on which somebody else computes."""
    busy = h200()
    busy.processes.append(Process(pid=4711, usedGpuMemory=2**30))
    free = h200("GPU-22222222-aaaa-4000-8000-000000000200")
    choice = devices.choose(wanted("tf218"), settings(tmp_path), nvml=FakeNvml(busy, free))
    assert (free.uuid,) == choice.uuids


def test_held_gpu_must_be_there_and_free(tmp_path: Path) -> None:
    """A run does not start on a GPU that is gone, or that somebody else took meanwhile."""
    gpu = h200("GPU-33333333-aaaa-4000-8000-000000000200")
    told = settings(tmp_path)
    with devices.held([gpu.uuid], told, nvml=FakeNvml(gpu)):
        pass
    with (
        pytest.raises(EnvironmentFailedError, match="is not here"),
        devices.held([gpu.uuid], told, nvml=FakeNvml()),
    ):
        pass
    gpu.processes.append(Process(pid=4711, usedGpuMemory=2**30))
    with (
        pytest.raises(EnvironmentFailedError, match="4711"),
        devices.held([gpu.uuid], told, nvml=FakeNvml(gpu)),
    ):
        pass


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, [0, 1]),
        ("0,1", [0, 1]),
        ("1", [1]),
        (h200().uuid, [0]),
        (h200().uuid[:12], [0]),
        ("-1", []),
        ("", []),
        ("NoDevFiles", []),
        ("1,-1,0", [1]),
    ],
)
def test_only_granted_gpus_are_taken(visible: str | None, left: list[int]) -> None:
    """What a job system left visible is all there is; why nothing is left is said."""
    survey = gpus.survey(FakeNvml(h200(), rtx3090()))
    found = devices.granted(survey, visible, order="PCI_BUS_ID")
    assert left == [gpu.index for gpu in found.gpus]
    assert bool(left) != ("CUDA_VISIBLE_DEVICES" in found.problem)


def test_numbers_of_unlike_gpus_grant_nothing() -> None:
    """CUDA counts unlike GPUs by speed, so a number may be another GPU; a UUID never is."""
    survey = gpus.survey(FakeNvml(h200(), rtx3090()))
    found = devices.granted(survey, "0")
    assert () == found.gpus
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in found.problem
    assert [0] == [gpu.index for gpu in devices.granted(survey, h200().uuid).gpus]
    alike = gpus.survey(FakeNvml(h200("GPU-1"), h200("GPU-2")))
    assert ["GPU-2"] == [gpu.uuid for gpu in devices.granted(alike, "1").gpus]


@pytest.mark.parametrize("source", ["", "registry.example/mine"])
def test_gpus_of_an_engine_elsewhere_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """The GPUs that NVML shows are this machine's, and not those of a remote Docker Engine."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://gpu-host.example:2376")
    found = wanted("tf218", backend="container", source=source)
    with pytest.raises(EnvironmentFailedError) as caught:
        devices.choose(found, settings(tmp_path, device="gpu"), nvml=FakeNvml(h200()))
    assert "tcp://gpu-host.example:2376 is on another machine" in caught.value.why
    choice = devices.choose(found, settings(tmp_path), nvml=FakeNvml(h200()))
    assert (("cpu",), ()) == (choice.devices, choice.uuids)


@pytest.mark.parametrize(
    ("runtimes", "expected"), [(("runc",), ("cpu",)), (("nvidia", "runc"), ("gpu",))]
)
def test_containers_need_the_toolkit_for_the_default(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    runtimes: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:
    """Where Docker cannot hand out the GPU, containers are raced on the CPU, and why is told."""
    engine = FakeEngine(found=msgspec.structs.replace(ABILITIES, runtimes=runtimes))
    choice = devices.choose(
        wanted("tf218", backend="container"),
        settings(tmp_path),
        nvml=FakeNvml(h200()),
        variables={},
        connect=lambda: engine,
    )
    assert expected == choice.devices
    told = "cannot hand out NVIDIA GPUs" in capsys.readouterr().err
    assert told == (expected == ("cpu",))


def test_somebodys_own_environment_gets_time_to_compile(tmp_path: Path) -> None:
    """Whether it has code for the GPU is not known: its first call may take long, on a GPU only."""
    found = wanted("tf218", backend="existing", source="/opt/python")
    on_gpu = devices.choose(
        found, settings(tmp_path, device="gpu"), nvml=FakeNvml(h200()), variables={}
    )
    assert {"tf218"} == on_gpu.slow
    on_cpu = devices.choose(
        found, settings(tmp_path, device="cpu"), nvml=FakeNvml(h200()), variables={}
    )
    assert set() == on_cpu.slow
