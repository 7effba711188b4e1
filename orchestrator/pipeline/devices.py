"""Which devices a run uses: what can run where on this machine, and which GPUs it holds."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from orchestrator import containers, doctor, gpus, log
from orchestrator.errors import EnvironmentFailedError
from orchestrator.model.health import EngineFact, Facts
from orchestrator.pipeline import health

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from orchestrator.config import Config
    from orchestrator.environments.options import Wanted
    from orchestrator.model.container import Engine
    from orchestrator.model.gpu import Gpu
    from orchestrator.model.names import Device, Variant


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The devices of a run.

    `against`: why an environment can run nothing on a device, by identifier and device; such cells
    are `unsupported`. `slow`: identifiers whose GPU code has to be compiled in the first call.
    """

    devices: tuple[Device, ...]
    gpus: tuple[Gpu, ...] = ()
    against: Mapping[tuple[str, Device], str] = field(default_factory=dict)
    slow: frozenset[str] = frozenset()

    @property
    def uuids(self) -> tuple[str, ...]:
        """Of the GPUs, as jobs are given them."""
        return tuple(gpu.uuid for gpu in self.gpus)

    @property
    def variant(self) -> Variant:
        """The build of TensorFlow that serves all these devices: the GPU's runs on both."""
        return "gpu" if "gpu" in self.devices else "cpu"

    def hopeless(self, identifier: str) -> bool:
        """Whether the environment can run on none of the devices."""
        return all((identifier, device) in self.against for device in self.devices)


def choose(
    found: Sequence[Wanted],
    settings: Config,
    *,
    nvml: gpus.Nvml | None = None,
    variables: Mapping[str, str] = os.environ,
    connect: Callable[[], Engine] = containers.connect,
) -> Choice:
    """The devices that were asked for, and what this machine can run on them.

    Without a word about devices: the GPU, where one is free and every environment runs on it, else
    the CPU; why is told. Raises EnvironmentFailedError when nothing of it can run here, UsageError
    for a GPU that is not there.
    """
    survey = granted(
        gpus.survey(nvml),
        variables.get("CUDA_VISIBLE_DEVICES"),
        order=variables.get("CUDA_DEVICE_ORDER"),
    )
    wanted = settings.devices or (("gpu",) if settings.gpus != "auto" else None)
    if wanted is None:
        return _default(found, survey, connect)
    choice = Choice(devices=wanted)
    if "gpu" in wanted and survey.gpus:
        chosen = _chosen(found, survey.gpus, settings.gpus)
        log.talk(f"GPU: {', '.join(_title(gpu) for gpu in chosen)}.")
        choice = replace(choice, gpus=chosen)
    return _judged(found, choice, survey)


def granted(survey: gpus.Survey, visible: str | None, *, order: str | None = None) -> gpus.Survey:
    """Of the GPUs only those that `CUDA_VISIBLE_DEVICES` leaves, as a job system grants them.

    As CUDA reads it: what stands behind a name of no GPU is not read, and numbers are NVML's only
    where GPUs are alike, or `order` (CUDA_DEVICE_ORDER) is PCI_BUS_ID.
    """
    if visible is None or not survey.gpus:
        return survey
    words = [word.strip() for word in visible.split(",") if word.strip()]
    unlike = len({gpu.name for gpu in survey.gpus if gpu.parent is None}) > 1
    if unlike and order != "PCI_BUS_ID" and any(word.isdigit() for word in words):
        problem = (
            f"CUDA_VISIBLE_DEVICES={visible} numbers GPUs that are not alike, which CUDA counts by "
            "speed and nobody else does: name them by UUID (nvidia-smi -L), or set "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID"
        )
        return replace(survey, gpus=(), problem=problem)
    left: set[str] = set()
    for word in words:
        named = {gpu.uuid for gpu in survey.gpus if _is_named(gpu, word)}
        if not named:
            break
        left |= named
    problem = survey.problem
    if not left:
        problem = f"CUDA_VISIBLE_DEVICES={visible} leaves none of the {len(survey.gpus)} GPUs here"
    return replace(
        survey, gpus=tuple(gpu for gpu in survey.gpus if gpu.uuid in left), problem=problem
    )


def _is_named(gpu: Gpu, word: str) -> bool:
    return word == str(gpu.index) or (word[:4] in {"GPU-", "MIG-"} and gpu.uuid.startswith(word))


@contextmanager
def held(
    uuids: Sequence[str], settings: Config, *, nvml: gpus.Nvml | None = None
) -> Iterator[None]:
    """Hold these GPUs against other runs, and refuse them while somebody else is on one."""
    if not uuids:
        yield
        return
    with gpus.lock(uuids, wait_s=settings.wait_lock_s, say=log.talk):
        here = {gpu.uuid: gpu for gpu in gpus.find(nvml)}
        for uuid in uuids:
            if uuid not in here:
                raise EnvironmentFailedError(
                    f"The GPU {uuid} of this run is not here.",
                    why="It was planned on another machine, or the GPU or MIG device is gone.",
                    fix="`nvidia-smi -L` lists what is here. Go on where the run was started.",
                )
        gpus.refuse_busy(here[uuid] for uuid in uuids)
        yield


def _default(found: Sequence[Wanted], survey: gpus.Survey, connect: Callable[[], Engine]) -> Choice:
    on_cpu = _judged(found, Choice(devices=("cpu",)), survey)
    if not survey.gpus:
        if survey.problem:
            log.warn(f"On the CPU: {survey.problem}.")
        return on_cpu
    try:
        chosen = gpus.choose(survey.gpus, against=partial(_first_against, found))
    except EnvironmentFailedError as error:
        why = error.why.splitlines()
        log.talk(f"On the CPU: {error.what} {' '.join(why)} Ask for a GPU with --device gpu.")
        return on_cpu
    if any(item.backend == "container" for item in found):
        engine = health.engine(connect)
        if not (engine.problem or engine.nvidia or engine.cdi):  # a problem is told when it is met
            log.talk(f"On the CPU: {doctor.NO_TOOLKIT}. `stackrace doctor` says how to mend that.")
            return on_cpu
    log.talk(f"On the GPU {_title(chosen[0])}, which every environment runs on.")
    return _judged(found, Choice(devices=("gpu",), gpus=chosen), survey)


def _chosen(found: Sequence[Wanted], here: Sequence[Gpu], named: str) -> tuple[Gpu, ...]:
    """The GPUs for `--gpus`; `auto` is a free one that suits every environment, or else some."""
    if named == "auto":
        for against in (_first_against, _every_against):
            with suppress(EnvironmentFailedError):
                return gpus.choose(here, against=partial(against, found))
    return gpus.choose(here, named)


def _first_against(found: Sequence[Wanted], gpu: Gpu) -> str | None:
    return next((reason for reason in _all_against(found, gpu) if reason), None)


def _every_against(found: Sequence[Wanted], gpu: Gpu) -> str | None:
    reasons = _all_against(found, gpu)
    return None if None in reasons else next(iter(reasons), None)


def _all_against(found: Sequence[Wanted], gpu: Gpu) -> list[str | None]:
    """For each environment, why it cannot run on this GPU, or None."""
    against = _against(found, ("gpu",), _facts(found, (gpu,), ""))
    return [against.get((item.row.identifier, "gpu")) for item in found]


def _judged(found: Sequence[Wanted], choice: Choice, survey: gpus.Survey) -> Choice:
    """The choice with what cannot run; EnvironmentFailedError when that is everything."""
    facts = _facts(found, choice.gpus, survey.problem)
    against = _against(found, choice.devices, facts)
    slow = doctor.slow_starts([item.row for item in found if not item.source], facts)
    # What somebody's own environment has code for is not known: it gets the time in any case.
    own = {item.row.identifier for item in found if item.source and choice.gpus}
    judged = replace(choice, against=against, slow=slow | own)
    names = [item.row.identifier for item in found]
    if found and all(judged.hopeless(name) for name in names):
        raise EnvironmentFailedError(
            "Nothing of this can run here.",
            why="\n".join(
                f"{name} on the {device}: {reason}" for (name, device), reason in against.items()
            ),
            fix=f"stackrace doctor {' '.join(names)}",
        )
    for (name, device), reason in against.items():
        log.warn(f"{name} cannot run on the {device}: {reason}. Its cells are unsupported.")
    for name in sorted(slow):
        log.warn(
            f"{name} has no code for this GPU, and compiles it in its first call: up to half an "
            "hour once, then it is kept."
        )
    return judged


def _against(
    found: Sequence[Wanted], devices: Sequence[Device], facts: Facts
) -> dict[tuple[str, Device], str]:
    against: dict[tuple[str, Device], str] = {}
    for item in found:
        if not item.source:
            against |= doctor.blockers([item.row], devices, item.backend, facts)
            continue
        reason = doctor.elsewhere(item.backend, facts)
        if not reason and not facts.gpus:  # what is in it, only its owner knows
            reason = facts.gpu_problem or doctor.NO_GPU
        if "gpu" in devices and reason:
            against[item.row.identifier, "gpu"] = reason
    return against


def _facts(found: Sequence[Wanted], chosen: Sequence[Gpu], problem: str) -> Facts:
    """What the doctor has to know of GPUs that a run would get."""
    engine = None
    if any(item.backend == "container" for item in found):
        place = containers.elsewhere()
        engine = EngineFact(place=place, elsewhere=bool(place))
    return Facts(gpus=tuple(chosen), gpu_problem=problem, engine=engine)


def _title(gpu: Gpu) -> str:
    return f"{gpu.index} ({gpu.name})"
