"""A number of a GPU is one of a GPU: watched, not assumed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.conftest import Ended, RunGuest

GPU, CPU = "/job:localhost/replica:0/task:0/device:GPU:0", "/device:CPU:0"


def on_gpu(run_guest: RunGuest, python: Path, **stub: str) -> Ended:
    """A case for the GPU where one is listed."""
    return run_guest(python, {"device": "gpu"}, stub={"device": "GPU", **stub})


def test_statistics_prove_it(python: Path, run_guest: RunGuest) -> None:
    """When the operations of one more step ran on the GPU, that is proven, and how is told."""
    ended = on_gpu(run_guest, python, placed="GPU", ran="GPU")
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    assert ended.phases[-2:] == ["outputs", "proof"]
    assert len(ended.result.values_s) == 25
    proof = ended.result.proof
    assert proof is not None
    assert proof.device == "gpu"
    assert proof.facts["operations"] == {"gpu": 1, "cpu": 0}
    assert proof.facts["weights"] == ["GPU:0"]


def test_a_gpu_case_that_ran_on_the_cpu_is_invalid(python: Path, run_guest: RunGuest) -> None:
    """A GPU that is there and was not used gives no number of a GPU."""
    ended = on_gpu(run_guest, python, placed="GPU", ran="CPU")
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "invalid"
    assert ended.result.failure is not None
    assert ended.result.failure.kind == "device"
    assert "MatMul on the CPU" in ended.result.failure.message


def test_without_information_it_is_unknown(python: Path, run_guest: RunGuest) -> None:
    """Where weights are on the GPU and nothing tells of the step, nothing is claimed."""
    ended = on_gpu(run_guest, python, placed="GPU")
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok"
    assert ended.result.proof is not None
    assert ended.result.proof.device == "unknown"
    assert "keeps no statistics" in ended.result.proof.how


@pytest.fixture(scope="module")
def guest() -> Any:  # noqa: ANN401
    """The guest's pure functions; the host never imports them outside of tests."""
    return importlib.import_module("workloads.proofs")


@pytest.fixture(scope="module")
def xplane() -> Any:  # noqa: ANN401
    """The guest's reader of profiles."""
    return importlib.import_module("workloads.xplane")


class Evidence:
    """What the guest's own evidence has, without numpy, which comes with it."""

    def __init__(self, **given: object) -> None:
        self.weights: tuple[str, ...] = ()
        self.outputs: tuple[str, ...] = ()
        self.operations: list[tuple[str, str]] = []
        self.kernels: int | None = None
        self.source = "a profile of one step"
        vars(self).update(given)


@pytest.mark.parametrize(
    ("evidence", "device"),
    [
        ({"kernels": 12, "weights": (GPU,), "outputs": (GPU,)}, "gpu"),
        ({"kernels": 12, "weights": ("cuda:0",), "outputs": ("cuda:0",)}, "gpu"),
        ({"kernels": 12, "weights": (GPU,)}, "gpu"),
        ({"kernels": None, "weights": (GPU,), "outputs": (GPU,)}, "unknown"),
        ({"kernels": 0, "weights": (GPU,), "outputs": (GPU,)}, "unknown"),
        ({"kernels": 12, "weights": (CPU,), "outputs": (GPU,)}, "unknown"),
        ({"kernels": 12}, "unknown"),
        ({}, "unknown"),
        ({"operations": [(GPU, "Conv2D"), (CPU, "IteratorGetNext")]}, "gpu"),
        ({"operations": [(GPU, "Conv2D"), (CPU, "MatMul")]}, "unknown"),
        ({"operations": [(CPU, "IteratorGetNext")], "weights": (GPU,)}, "unknown"),
    ],
)
def test_what_evidence_proves(guest: Any, evidence: dict[str, object], device: str) -> None:  # noqa: ANN401
    """A GPU is proven by operations, or by kernels together with where the weights are."""
    assert device == guest.of_gpu(Evidence(**evidence))["device"]


@pytest.mark.parametrize(
    "evidence",
    [
        {"operations": [(CPU, "Conv2D"), (GPU, "_Arg")], "weights": (GPU,)},
        {"kernels": None, "weights": (CPU,), "outputs": (CPU,)},
        {"kernels": 0, "weights": (CPU,)},
    ],
)
def test_what_evidence_disproves(guest: Any, evidence: dict[str, object]) -> None:  # noqa: ANN401
    """The model's work on the CPU, or all that it holds there, disproves a GPU."""
    stopped = importlib.import_module("workloads.protocol").Stopped
    with pytest.raises(stopped, match="ran on the CPU") as caught:
        guest.of_gpu(Evidence(**evidence))
    assert caught.value.outcome == "invalid"


def field(number: int, value: bytes | int) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def plane(name: bytes, *events: bytes, line: bytes = b"Stream #7") -> bytes:
    """A plane of a profile with one line of events."""
    metadata = b"".join(
        field(4, field(1, index) + field(2, field(1, index) + field(2, event)))
        for index, event in enumerate(events, start=1)
    )
    timed = b"".join(field(4, field(1, index)) for index in range(1, len(events) + 1))
    return field(1, field(2, name) + field(3, field(2, line) + timed) + metadata)


@pytest.mark.parametrize(
    ("raw", "kernels"),
    [
        (plane(b"/host:CPU", b"MatMul"), None),
        (plane(b"/host:CPU") + plane(b"/device:GPU:0", b"sgemm", b"MemcpyH2D", b"relu"), 2),
        (plane(b"/device:GPU:0", b"MemcpyH2D"), 0),
        (plane(b"/device:GPU:0", b"a step", line=b"Steps"), 0),
        (b"", None),
    ],
)
def test_kernels_in_a_profile(xplane: Any, raw: bytes, kernels: int | None) -> None:  # noqa: ANN401
    """Kernels of GPU streams are counted; transfers, sums and the host's events are not."""
    assert kernels == xplane.kernels(raw)


@pytest.mark.parametrize("raw", [b"\x0a\xff", b"\x0f", b"\x80"])
def test_a_broken_profile_is_an_error(xplane: Any, raw: bytes) -> None:  # noqa: ANN401
    """What is no profile is not taken for one without kernels."""
    with pytest.raises(ValueError, match="profile"):
        xplane.kernels(raw)
