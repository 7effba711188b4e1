"""A race on a GPU, from plan to report: what ran elsewhere is no number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pynvml
import pytest

from orchestrator import record, run
from orchestrator.engines import local
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model import attempts, codec
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.model.record import Instant, Load
from orchestrator.model.result import Proof
from orchestrator.pipeline import health, reading
from orchestrator.store import RunFolder
from tests import factories
from tests.fakes import nvml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.model.names import Backend
    from orchestrator.model.plan import Job, Limits
    from orchestrator.model.record import Record
    from orchestrator.model.request import Request

LOAD = Load(load_1m=0.1, available_bytes=2**33)
AT = Instant(wall=1.0, monotonic=1.0)


@dataclass
class Environment:
    """Says where it ran, and does to the GPU what a job does to it."""

    identifier: str
    proof: Proof | None
    meanwhile: Callable[[], None] = lambda: None
    told: list[tuple[Request, Limits, Beat]] = field(default_factory=list)
    lock_digest: str = "lock"
    python: str = "3.7.16"
    backend: Backend = "venv"
    image_digest: str | None = None

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """One process that takes no time."""
        assert work.is_dir()
        assert log.is_absolute()
        self.told.append((request, limits, beat))
        self.meanwhile()
        raw = codec.encode(factories.result([0.01, 0.01], proof=self.proof))
        return Execution(start=AT, end=AT, result=raw, exit_code=0)


class Silence:
    """Progress that nobody sees."""

    def start(self, text: str) -> None:
        """Nothing."""

    def advance(self, text: str) -> None:
        """Nothing."""


class Bench:
    """A GPU, and a plan of rounds that race tf210 against tf218 on it."""

    def __init__(self, folder: Path) -> None:
        self.device = nvml.h200("GPU-1")
        self.nvml = nvml.FakeNvml(self.device)
        self.said: list[str] = []
        self.plan = factories.plan(
            environments=[
                factories.environment("tf210", variant="gpu", slow_start=True),
                factories.environment("tf218", variant="gpu", image_digest="sha256:1"),
            ],
            cases=[factories.case(device="gpu")],
            forms=[("tf.keras", "eager")],
            rounds=2,
            gpus=("GPU-1",),
        )
        self.folder = RunFolder.create(folder, self.plan)

    def race(self, *environments: Environment) -> dict[str, list[Record]]:
        """Race them, and return the counting records by environment."""
        prepared = {environment.identifier: environment for environment in environments}
        machine = health.with_gpus(factories.HOST, self.plan.gpus, self.nvml)

        def measure(job: Job, *, attempt: int) -> Record:
            case = self.plan.case(job.case)
            execution = local.execute(
                job,
                case,
                plan=self.plan,
                attempt=attempt,
                folder=self.folder,
                environments=prepared,
                say=self.said.append,
                nvml=self.nvml,
            )
            return record.make(
                job,
                case,
                execution,
                plan=self.plan,
                attempt=attempt,
                host=machine,
                before=LOAD,
                after=LOAD,
                engine=local.FACTS,
            )

        records = attempts.by_key(self.folder.records())
        run.work_through(self.plan.blocks, self.folder, records, measure, Silence())
        found: dict[str, list[Record]] = {}
        for made in self.folder.records():
            found.setdefault(made.arm.environment, []).append(made)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """One race in a folder of its own."""
    return Bench(tmp_path)


def on(device: str, how: str = "kernels") -> Proof:
    """A guest's proof."""
    return Proof(device=device, how=how)  # type: ignore[arg-type]


def test_what_ran_on_the_cpu_is_no_gpu_number(bench: Bench) -> None:
    """A GPU case that silently ran on the CPU is invalid, in the records and in the report."""
    found = bench.race(
        Environment("tf210", on("cpu", "no kernel ran on a GPU")), Environment("tf218", on("gpu"))
    )
    assert ["invalid", "invalid"] == [made.outcome for made in found["tf210"]]
    failure = found["tf210"][0].failure
    assert failure is not None
    assert ("device", "It was to run on the GPU, and ran on the CPU: no kernel ran on a GPU") == (
        failure.kind,
        failure.message,
    )
    assert not found["tf210"][0].redoable
    assert ["ok", "ok"] == [made.outcome for made in found["tf218"]]
    assert {"invalid": 2, "ok": 2} == reading.status(bench.folder.path).outcomes
    comparison = reading.compare([bench.folder.path], reference=None, threshold=None).comparison
    assert [None] == list({item.ratio for item in comparison.contrasts})
    assert ["invalid"] == [gap.outcome for gap in comparison.gaps]


def test_record_says_what_the_gpu_did(bench: Bench) -> None:
    """GPU, state before and after, memory of the job, backend and image stand in the record."""

    def hold() -> None:
        bench.device.processes = [nvml.Process(9, nvml.GIB)]

    found = bench.race(
        Environment("tf210", on("gpu")), Environment("tf218", on("gpu"), meanwhile=hold)
    )
    made = found["tf218"][0]
    assert ("NVIDIA H200", "GPU-1") == (made.host.gpus[0]["name"], made.host.gpus[0]["uuid"])
    assert "free_bytes" not in made.host.gpus[0]
    (seen,) = made.engine["gpus"]
    assert ("GPU-1", [], 31, 31) == (
        seen["uuid"],
        seen["throttle"],
        seen["before"]["temperature_c"],
        seen["after"]["temperature_c"],
    )
    assert ("local", "venv", nvml.GIB) == (
        made.engine["name"],
        made.engine["backend"],
        made.engine["gpu_bytes"],
    )
    assert "sha256:1" == made.image_digest


@pytest.mark.parametrize("proof", [None, on("unknown", "nothing was seen")])
def test_unproven_stays_unproven(bench: Bench, proof: Proof | None) -> None:
    """It counts, and is kept as unknown, with the memory that was not seen."""
    found = bench.race(Environment("tf210", proof), Environment("tf218", on("gpu")))
    made = found["tf210"][0]
    assert "ok" == made.outcome
    assert made.result is not None
    assert made.result.proof is not None
    assert ("unknown", 0) == (
        made.result.proof.device,
        made.result.proof.facts["gpu_bytes"],
    )


def test_throttled_gpu_is_measured_again(bench: Bench) -> None:
    """Heat makes a number invalid and its block is redone; what is at its power limit counts."""
    hot = [pynvml.nvmlClocksEventReasonHwThermalSlowdown, 0]

    def heat() -> None:
        bench.device.throttle = hot.pop(0) if hot else pynvml.nvmlClocksEventReasonSwPowerCap

    found = bench.race(
        Environment("tf210", on("gpu"), meanwhile=heat), Environment("tf218", on("gpu"))
    )
    outcomes = [(made.round, made.attempt, made.outcome) for made in found["tf210"]]
    assert [(1, 1, "invalid"), (1, 2, "ok"), (2, 1, "ok")] == sorted(outcomes)


def test_gpu_that_is_lost_in_the_middle(bench: Bench) -> None:
    """What was measured whole is kept, no other job is started, and the run stops with code 5."""

    def lose() -> None:
        bench.device.lost = True

    first = bench.plan.jobs[0].arm.environment
    other = {"tf210": "tf218", "tf218": "tf210"}[first]
    with pytest.raises(EnvironmentFailedError, match="GPU-1 does not answer") as caught:
        bench.race(Environment(first, on("gpu"), meanwhile=lose), Environment(other, on("gpu")))
    assert 5 == caught.value.exit_code
    assert 1 == len(bench.folder.records())


def test_slow_start_has_a_limit_and_a_heartbeat(bench: Bench) -> None:
    """Where the driver compiles, the first call may take an hour, and says that it lives."""
    slow, quick = Environment("tf210", on("gpu")), Environment("tf218", on("gpu"))
    bench.race(slow, quick)
    _, limits, beat = slow.told[0]
    assert 3600.0 == limits.first_call_s
    for seconds in (1.0, 30.0, 61.0, 100.0, 245.0):
        beat(seconds)
    assert [
        "tf210/tf.keras/eager: compiling for this GPU, 1 min so far, limit 60 min.",
        "tf210/tf.keras/eager: compiling for this GPU, 4 min so far, limit 60 min.",
    ] == bench.said
    _, limits, beat = quick.told[0]
    assert (60.0, silent) == (limits.first_call_s, beat)
