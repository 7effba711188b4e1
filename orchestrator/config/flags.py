"""What the command line said."""

from __future__ import annotations

from pathlib import Path

import msgspec

from orchestrator.model.names import Backend


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said; None or empty where it said nothing."""

    environments: tuple[str, ...] = ()
    preset: str | None = None
    cases: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    rounds: int | None = None
    budget: float | None = None  # seconds
    precision: float | None = None
    threshold: float | None = None
    reference: str | None = None
    max_job_seconds: float | None = None
    seed: int | None = None
    results: Path | None = None
    backend: Backend | None = None
    pythons: tuple[str, ...] = ()  # NAME=PATH
    images: tuple[str, ...] = ()  # NAME=REF, or REF for the only environment
    device: str | None = None  # cpu,gpu
    gpus: str | None = None
    memory: str | None = None
    cpus: str | None = None
    shm_size: str | None = None
    wait_lock: float | None = None
    pin: str | None = None  # 0-3,8
    workloads: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()
    same_weights: bool = False
    profile: bool = False
