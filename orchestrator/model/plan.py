"""The plan (`stackrace.plan/1`): which processes will run, in which order, and why that order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from orchestrator.model.cell import Arm, Case
from orchestrator.model.names import Backend, Device, Mode, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable

PLAN_SCHEMA: Final = "stackrace.plan/1"
ROUNDS_SCHEMA: Final = "stackrace.rounds/1"
ALPHA: Final = 0.05  # of an interval, and of q
# Of a run that widths end, or direct: its intervals are narrow by chance a little too often. At 95%
# up to 6.5% of them exclude the truth, which is where 10 rounds could be the last and 25 are
# needed; at 96% never more than 5.4%. Simulated: normal noise, at least ten rounds.
ALPHA_BY_WIDTH: Final = 0.04
PROFILE_TIMES: Final = 2  # what a timed job may take: a profiler slows down what it looks at
PROFILE_ROUND: Final = 0  # of jobs that are profiled; rounds of timings count from 1


class PlannedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment as the run was planned with: enough to resume and to report without it."""

    identifier: str
    tensorflow: str = ""  # as in a row, one of these three is there
    jax: str = ""
    torch: str = ""
    keras: str
    python: str
    variant: Variant
    native_mode: Mode
    lock_digest: str
    lock: str = ""  # the row whose lock it uses, when it is a copy of one
    spec: str = ""  # how it was asked for, when it is no row of the matrix
    backend: Backend = "venv"
    source: str = ""  # the interpreter or the image that the user named
    image_digest: str | None = None
    extra: tuple[str, ...] = ()  # packages added with --with
    slow_start: bool = False  # its GPU code has to be compiled for this GPU in the first call


class PlannedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A user's own model: a file, or a folder with `workload.py` in it, copied into the run folder.

    `entry`: the file to import, below `workloads/<name>/` of the run folder. `digest`: sha256 over
    the names and bytes of all its files, in order.
    """

    name: str
    entry: str
    digest: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One process: one cell in one round. `key` is a digest of all that defines it."""

    key: str
    arm: Arm
    case: str
    round: int
    slot: int  # position in the block, from 0
    unsupported: str | None = None  # why no process is started, known before the run

    @property
    def is_profile(self) -> bool:
        """Whether it is profiled, and not timed."""
        return self.round == PROFILE_ROUND


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """Every arm of one case, in random order."""

    round: int
    case: str
    jobs: tuple[Job, ...]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long one process may take, in seconds."""

    first_call_s: float  # from its start to the end of the first call (import, build, trace)
    job_s: float  # from there to its end; iterations are cut to fit
    slow_first_call_s: float = 3600.0  # instead of first_call_s, where GPU code is compiled in it


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What decides how many rounds a run has, when their number was not given.

    With both, whichever is reached first ends the run.
    """

    budget_s: float | None = None  # seconds of measuring
    precision: float | None = None  # half-width of every interval, as a fraction: 0.02


def alpha_of(goal: Goal | None) -> float:
    """Intervals of a run with that goal, or without one, are two-sided 1 - alpha ones."""
    return ALPHA if goal is None else ALPHA_BY_WIDTH


class AddedRounds(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks added to a plan while it is measured: `plan.d/0001.json`, append-only.

    A round that was added may have the blocks of some cases only: those whose intervals are wide.
    """

    schema: Literal["stackrace.rounds/1"]
    run_id: str
    number: int  # of the file, from 1
    created: str  # ISO 8601, UTC
    blocks: tuple[Block, ...]
    reason: str  # why these, in words


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run before it is measured. Written once; a resumed run reads it again."""

    schema: Literal["stackrace.plan/1"]
    run_id: str
    created: str  # ISO 8601, UTC
    seed: int
    preset: str
    rounds: int
    threshold: float  # practical threshold as a fraction: 0.02
    reference: str  # an environment's identifier, or an arm's name
    limits: Limits
    guest_digest: str
    gpus: tuple[str, ...] = ()  # UUIDs of those that GPU cases may use
    environments: tuple[PlannedEnvironment, ...]
    cases: tuple[Case, ...]
    blocks: tuple[Block, ...]
    workloads: tuple[PlannedWorkload, ...] = ()
    profiles: tuple[Job, ...] = ()  # profiled, not timed: after the rounds, one a cell, round 0
    goal: Goal | None = None  # rounds may be added until it is reached
    pin: tuple[int, ...] = ()  # cores that workers are bound to; none: as the host may
    selftest: bool = False  # an environment against itself: what it shows is the machine

    @property
    def alpha(self) -> float:
        """Its intervals are two-sided 1 - alpha ones."""
        return alpha_of(self.goal)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Every planned job that is timed, in order."""
        return tuple(job for block in self.blocks for job in block.jobs)

    def grown(self, added: Iterable[AddedRounds]) -> Plan:
        """The same plan with the blocks of these files, in order; `rounds` counts the last one."""
        blocks = (*self.blocks, *(block for item in added for block in item.blocks))
        rounds = max((block.round for block in blocks), default=self.rounds)
        return msgspec.structs.replace(self, blocks=blocks, rounds=max(self.rounds, rounds))

    @property
    def profile_blocks(self) -> tuple[Block, ...]:
        """The profiles as blocks of one job each: nothing of theirs is compared."""
        return tuple(Block(round=job.round, case=job.case, jobs=(job,)) for job in self.profiles)

    def workload_of(self, arm: Arm) -> PlannedWorkload | None:
        """The user's own model that an arm runs: its own, or the run's only one."""
        if arm.workload is None:
            return self.workloads[0] if len(self.workloads) == 1 else None
        return next(item for item in self.workloads if item.name == arm.workload)

    def environment(self, identifier: str) -> PlannedEnvironment:
        """The planned environment of that identifier."""
        return next(item for item in self.environments if item.identifier == identifier)

    def case(self, name: str) -> Case:
        """The planned case of that name."""
        return next(item for item in self.cases if item.name == name)

    def limits_of(self, environment: str, device: Device, *, profile: bool = False) -> Limits:
        """How long a process of this environment may take on this device.

        A profile's iterations are cut to fit the same time; the framework's trace comes after it.
        """
        if profile:
            limits = self.limits_of(environment, device)
            return msgspec.structs.replace(limits, job_s=PROFILE_TIMES * limits.job_s)
        if device == "gpu" and self.environment(environment).slow_start:
            return msgspec.structs.replace(
                self.limits,
                first_call_s=max(self.limits.first_call_s, self.limits.slow_first_call_s),
            )
        return self.limits
