"""What is known of the noise of machines: told before a run, and kept after a selftest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator import control, doctor, gpus, host, log, noise, precision
from orchestrator.config import cache_folder
from orchestrator.errors import StackraceError
from orchestrator.model import codec
from orchestrator.model.health import Facts
from orchestrator.model.plan import alpha_of
from orchestrator.pipeline import health
from orchestrator.report import goals, machine
from orchestrator.store import write_report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import pandas as pd

    from orchestrator.model.health import Check
    from orchestrator.model.names import Device
    from orchestrator.model.noise import Noise
    from orchestrator.model.plan import Goal, Plan

ROUNDS: Final = (6, 10, 20)  # of the presets, and of what a report suggests
FILE: Final = "noise.json"
NOTHING: Final = "it has no two blocks of a case on one machine"


def warn(
    *,
    rounds: int | None,
    threshold: float,
    goal: Goal | None,
    devices: Sequence[Device],
    uuids: Collection[str],
    pin: tuple[int, ...],
    selftest: bool = False,
) -> None:
    """Before a run: say whether its machine is too noisy for its threshold, and what would help.

    Without a selftest of it, or before one, only what would help. `rounds`: how many there will be,
    at most; None when nobody knows. `uuids`: of the run's GPUs.
    """
    lines: list[str] = []
    for device in () if selftest else devices:
        here = health.with_gpus(host.facts(pin=pin), uuids if device == "gpu" else ())
        known = noise.newest(cache_folder(), here.machine, device)
        if known is None or rounds is None:
            continue
        told, noisy = _foretold(known, rounds, threshold, goal)
        if noisy:
            lines.append(told)
        else:
            log.talk(told)
    hints = _hints(pin, uuids, noisy=bool(lines))
    if hints and not lines:
        lines.append("What makes times vary on this machine now:")
    if lines:
        log.warn("\n".join([*lines, *machine.told(hints)]))


def _foretold(known: Noise, rounds: int, threshold: float, goal: Goal | None) -> tuple[str, bool]:
    """What a run of so many rounds, or as many as its precision takes, will see on this machine.

    And whether that is less than the threshold asks for.
    """
    alpha, expected = alpha_of(goal), goal is not None
    if goal is not None and goal.precision is not None:
        rounds = min(rounds, precision.rounds_for(known.spread, goal.precision, alpha=alpha))
    seen = noise.shown(known, rounds, threshold=threshold, alpha=alpha)
    enough = noise.rounds_for(known, threshold, alpha=alpha)
    if enough is not None and enough <= rounds:
        return goals.here(rounds, seen, expected=expected), False
    told = machine.before(
        known, rounds=rounds, threshold=threshold, seen=seen, enough=enough, expected=expected
    )
    return told, True


def known(frame: pd.DataFrame) -> tuple[Noise, ...]:
    """The newest selftest of each machine and device in a merged table; none of its own runs."""
    pairs = frame[["machine", "device"]].dropna().drop_duplicates()
    runs = frozenset(frame["run_id"].unique())
    found = (
        noise.newest(cache_folder(), str(name), device, without=runs)
        for name, device in zip(pairs["machine"], pairs["device"], strict=True)
    )
    return tuple(one for one in found if one is not None)


def controls(found: Sequence[Noise]) -> dict[str, float]:
    """How much the control varies on each machine, where a selftest says so."""
    return {one.machine: one.control for one in found if one.control is not None}


def conclude(frame: pd.DataFrame, plan: Plan, folder: Path, *, as_json: bool) -> None:
    """Say what a selftest shows, and keep it for the runs to come.

    Where it shows nothing: why, as JSON too, so that whoever asked for that gets some.
    """
    found = noise.of(frame, plan, control=control.spread(frame))
    if found is None:
        log.warn(f"This selftest shows nothing: {NOTHING}.")
        if as_json:
            log.data(codec.encode({"run_id": plan.run_id, "reason": NOTHING}).decode().rstrip())
        return
    text = codec.encode(found).decode().rstrip()
    if not as_json:
        enough = noise.rounds_for(found, found.threshold)
        noisy = machine.too_noisy(found, enough)
        text = machine.selftest(
            found,
            shown={
                rounds: noise.shown(found, rounds, threshold=found.threshold) for rounds in ROUNDS
            },
            enough=enough,
            unlikely=noise.unlikely(found),
            hints=_hints(plan.pin, plan.gpus, noisy=True) if noisy else (),
        )
    try:  # before it is written: a full disk must not hide it
        log.data(text)
    finally:  # a stdout that takes nothing must not hide it either
        _keep(found, folder)
    log.talk(f"Its run, with a report like that of any race, is in {folder}.")


def _keep(found: Noise, folder: Path) -> None:
    write_report(folder / FILE, codec.encode(found))
    try:
        noise.keep(found, cache_folder())
    except StackraceError as error:
        log.warn(f"{error.what} Later runs will not know of this selftest.")


def _hints(pin: tuple[int, ...], uuids: Collection[str], *, noisy: bool) -> tuple[Check, ...]:
    """Of other GPUs as well, where the run has some: they share power and heat with its own."""
    facts = Facts(
        host=host.facts(pin=pin),
        load=host.load(),
        surroundings=host.surroundings(),
        pin=pin,
        gpus=tuple(gpu for gpu in gpus.find() if gpu.uuid not in uuids) if uuids else (),
    )
    return doctor.hints(facts, noisy=noisy)
