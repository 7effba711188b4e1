"""What it costs to read a run: merge, verdict and Markdown against parsing the same bytes.

`python -m benchmarks.merging` prints one JSON object: ratios within this process, the best of
several, by CPU time, because other work on the machine slows down all of them alike.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import multiprocessing
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
import numpy as np

from orchestrator.model import codec
from orchestrator.model.cell import Arm, Case
from orchestrator.model.names import Input, Method, Mode
from orchestrator.model.plan import PLAN_SCHEMA, Block, Job, Limits, Plan, PlannedEnvironment
from orchestrator.pipeline import reading, recorded
from orchestrator.store import KEPT, RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

RECORDS: Final = 10_000
VALUES: Final = 200  # seconds and losses of one record
ROUNDS: Final = 10
REPEATS: Final = 5
SETTLED_S: Final = 3.0  # what was written just now is not kept: it might still change
PACKAGES: Final = 60
MODES: Final[tuple[Mode, ...]] = ("graph", "eager")
METHODS: Final[tuple[Method, ...]] = ("train_on_batch", "fit", "evaluate", "predict", "call")
FAILING: Final = 0.01  # of the jobs
TORN: Final = 0.05  # of the processes, whose losses do not repeat
SPIKES: Final = 0.01  # of the iterations
WARMING: Final = 0.1  # of the processes
DIGEST: Final = "c0ffee" * 10 + "0000"


def make_run(results: Path, records: int, *, seed: int = 7) -> Path:
    """A measured run of about so many records: 10 environments, 2 modes, 10 rounds, many cases."""
    plan = _plan(records)
    folder = RunFolder.create(results, plan)
    rng = np.random.default_rng(seed)
    for place, job in enumerate(plan.jobs):
        path = folder.record_path(job.key, 1)
        # Plainly, not synced one by one as a run does it: that takes minutes.
        path.write_bytes(codec.encode(_record(plan, job, place, rng)))
    return folder.path


def measure(records: int = RECORDS, *, repeats: int = REPEATS) -> dict[str, Any]:
    """Reading and reporting one run of so many records: the least CPU seconds of several times.

    `parse_s`: reading the files and decoding them to plain objects. `merge_s`: the table. `read_s`:
    the table, verdict and all other findings, the report as Markdown. `merge_again_s`, `cached_s`:
    the same of a run that was read before; what is judged is judged again.
    """
    with tempfile.TemporaryDirectory(prefix="stackrace-merging-") as place:
        folder = make_run(Path(place), records)
        files = sorted((folder / "records").iterdir())
        time.sleep(SETTLED_S)
        found: dict[str, list[float]] = {}
        for _ in range(repeats):
            for name, fresh, work in (
                ("parse_s", True, lambda: _parse(files)),
                ("merge_s", True, lambda: recorded.read((folder,))),
                ("merge_again_s", False, lambda: recorded.read((folder,))),
                ("read_s", True, lambda: _report(folder)),
                ("cached_s", False, lambda: _report(folder)),
            ):
                if fresh:
                    shutil.rmtree(folder / KEPT, ignore_errors=True)
                found.setdefault(name, []).append(_cpu_s(work))
        return {
            "records": len(files),
            "bytes": sum(path.stat().st_size for path in files),
            **{name: min(times) for name, times in found.items()},
            "peak_bytes": _in_fresh_process(folder),
        }


def _parse(files: list[Path]) -> None:
    for path in files:
        msgspec.json.decode(path.read_bytes())


def _report(folder: Path) -> str:
    return reading.compare((folder,)).markdown


def _cpu_s(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def _plan(records: int) -> Plan:
    environments = tuple(_environment(number) for number in range(10))
    arms = [
        Arm(environment=item.identifier, api="tf.keras", mode=mode)
        for item in environments
        for mode in MODES
    ]
    cases = _cases(max(1, records // (len(arms) * ROUNDS)))
    blocks = tuple(_block(case, arms, number + 1) for number in range(ROUNDS) for case in cases)
    return Plan(
        schema=PLAN_SCHEMA,
        run_id=f"merging-{records}",
        created="2026-01-02T03:04:05+00:00",
        seed=7,
        preset="full",
        rounds=ROUNDS,
        threshold=0.02,
        reference=environments[0].identifier,
        limits=Limits(first_call_s=600, job_s=120),
        guest_digest=DIGEST,
        environments=environments,
        cases=cases,
        blocks=blocks,
    )


def _environment(number: int) -> PlannedEnvironment:
    return PlannedEnvironment(
        identifier=f"tf2{number}",
        tensorflow=f"2.{number}.0",
        keras="2.3.1",
        python="3.7.16",
        variant="cpu",
        native_mode="eager",
        lock_digest=f"{number:064}",
    )


def _cases(number: int) -> tuple[Case, ...]:
    """The first so many of a grid of methods, inputs, sizes and batch sizes."""
    inputs = get_args(Input)[:5]
    sizes = [(model, data) for model in ("small", "medium") for data in ("small", "large")]
    batches = [{"batch_size": str(2**power)} if power else {} for power in range(12)]
    grid = product(batches, sizes, inputs, METHODS)
    return tuple(
        Case(
            model=model,
            data=data,
            input=name,
            method=method,
            knobs=knobs,
            batch_shape=(32, 140, 30),
            batches=8,
            iterations=VALUES,
            warmup=10,
        )
        for knobs, (model, data), name, method in islice(grid, number)
    )


def _block(case: Case, arms: list[Arm], number: int) -> Block:
    turned = arms[number % len(arms) :] + arms[: number % len(arms)]
    key = hashlib.sha256(f"{case.name} {number}".encode()).hexdigest()[:16]
    return Block(
        round=number,
        case=case.name,
        jobs=tuple(
            Job(key=f"{key}-{slot}", arm=arm, case=case.name, round=number, slot=slot)
            for slot, arm in enumerate(turned)
        ),
    )


def _record(plan: Plan, job: Job, place: int, rng: np.random.Generator) -> dict[str, Any]:
    """As a worker and the host leave it, in plain objects."""
    start = place * 4.0
    failed = rng.random() < FAILING
    failure = {"kind": "exception", "message": "ValueError: it broke", "traceback": "..."}
    return {
        "schema": "stackrace.record/1",
        "run_id": plan.run_id,
        "key": job.key,
        "attempt": 1,
        "arm": job.arm,
        "case": plan.case(job.case),
        "round": job.round,
        "slot": job.slot,
        "outcome": "failed" if failed else "ok",
        "failure": failure if failed else None,
        "start": {"wall": 1.7e9 + start, "monotonic": 1000 + start},
        "end": {"wall": 1.7e9 + start + 3, "monotonic": 1000 + start + 3},
        "result": None if failed else _result(job, rng),
        "exit_code": 0,
        "last_phase": "outputs",
        "host": {
            "machine": "3bec3c961642",
            "node": "fe15a89c570d",
            "cpu": "AMD EPYC",
            "cores": 2,
            "memory_bytes": 25276063744,
            "kernel": "6.18.44",
            "facts": {"threads": {}},
        },
        "before": {"load_1m": 1.2353515625, "available_bytes": 24491651072, "cpu_mhz": 2445.414},
        "after": {"load_1m": 1.1987304687, "available_bytes": 24483602432, "cpu_mhz": 2445.414},
        "control": {
            "before_s": 0.00123 * float(np.exp(0.01 * rng.normal())),
            "after_s": 0.00123 * float(np.exp(0.01 * rng.normal())),
        },
        "guest_digest": DIGEST,
        "lock_digest": plan.environment(job.arm.environment).lock_digest,
        "engine": {"name": "local", "backend": "venv"},
    }


def _result(job: Job, rng: np.random.Generator) -> dict[str, Any]:
    number = int(job.arm.environment[3:])
    seconds = _seconds(0.002 * (1.03**number), rng)
    # Processes of one cell have the same losses, but one in twenty: not every operation repeats.
    losses = np.exp(-np.arange(VALUES + 10) / 80) * (1 + 0.001 * number)
    losses[50:] *= 1 + 1e-6 * (rng.random() < TORN)
    rss = 300_000_000 + rng.integers(0, 2, size=20).cumsum() * 4096
    return {
        "schema": "stackrace.result/1",
        "outcome": "ok",
        "phases_s": {
            "import": 1.6 + 0.01 * rng.random(),
            "data": 0.01 + 0.001 * rng.random(),
            "build": 0.1 + 0.01 * rng.random(),
            "first_call": 0.7 + 0.01 * rng.random(),
        },
        "warmup_s": seconds[:10].tolist(),
        "values_s": seconds[10:].tolist(),
        "timing": {
            "source": "call",
            "clock": "perf_counter",
            "clock_resolution_s": 1e-9,
            "overhead_s": 2.5e-07,
            "batch": 1,
        },
        "iterations": {"asked": VALUES, "done": VALUES},
        "rss_bytes": rss.tolist(),
        "losses": losses[10:].tolist(),
        "outputs": {
            "digest": DIGEST,
            "summary": {"mean": 0.33, "std": 1.08, "min": -1.58, "max": 2.06},
            "values": losses[:32].tolist(),
        },
        "parameters": 162049,
        "dtype": "float32",
        "traces": 2,
        "retraces": 0,
        "executed_as": "function" if job.arm.mode == "eager" else "session",
        "training_loop": "training.fit > training.make_train_function",
        "data_adapter": "TensorLikeDataAdapter",
        "proof": {"device": "cpu", "how": "CUDA_VISIBLE_DEVICES=-1"},
        "diagnostics": {"calls": {"eager": 0}, "peak_rss_bytes": int(rss[-1]) + 2**20},
        "metadata": {
            "framework": {"name": "tensorflow", "version": f"2.{number}.0"},
            "keras": {"api": job.arm.api, "version": "2.3.1", "float": "float32"},
            "devices": ["/physical_device:CPU:0", "/physical_device:XLA_CPU:0"],
            "python": {"version": "3.7.16", "compiler": "GCC 12.2.0"},
            "packages": {f"package-{place}": f"1.{place}.{number}" for place in range(PACKAGES)},
            "cores": 2,
            "flags": {"CUDA_VISIBLE_DEVICES": "-1"},
        },
    }


def _seconds(typical: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """One process: its own level, noise that depends on itself, spikes, a warm-up in a few."""
    noise = 0.03 * rng.normal(size=VALUES + 10)
    noise[1:] += 0.3 * noise[:-1]
    noise += np.where(rng.random(len(noise)) < SPIKES, np.log(1.4), 0.0)
    if rng.random() < WARMING:
        noise[: rng.integers(5, 40)] += 0.2
    found: NDArray[np.float64] = typical * np.exp(0.02 * rng.normal() + noise)
    return found


def _in_fresh_process(folder: Path) -> int:
    """The most memory that a process has which reads and reports on this run, and does no more."""
    shutil.rmtree(folder / KEPT, ignore_errors=True)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_peak_bytes, folder).result()


def _peak_bytes(folder: Path) -> int:
    _report(folder)
    # Not what getrusage() says, which begins with what the parent had when it started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args(arguments)
    print(json.dumps(measure(given.records, repeats=given.repeats)))  # noqa: T201


if __name__ == "__main__":
    main()
