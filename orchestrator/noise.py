"""How noisy a machine is: read off a selftest, kept in the cache, and asked before other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from orchestrator import log, store
from orchestrator.errors import InputError, StackraceError
from orchestrator.model import codec
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.model.noise import NOISE_SCHEMA, Noise, NoiseCase
from orchestrator.paired import blocks, cells, intervals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.model.names import Device
    from orchestrator.model.plan import Plan
    from orchestrator.paired.cells import Cells

ALPHA: Final = 0.05
MOST_ROUNDS: Final = 2000  # more, nobody waits for
UNLIKELY: Final = 0.05
FOLDER: Final = "machines"


def of(frame: pd.DataFrame, plan: Plan, *, control: float | None = None) -> Noise | None:
    """What a selftest shows of its machine; None without two pairs of a cell on one machine.

    `frame`: its merged table. `control`: standard deviation of the logarithm of the host's control
    readings in it. The spread is pooled over the cases by their degrees of freedom.
    """
    counting = frame[frame["counts"].to_numpy(dtype=bool) & frame["median_s"].notna().to_numpy()]
    machines = counting[["machine", "node"]].drop_duplicates()
    found = cells.read(frame)
    candidates, references = _pairs(found, plan)
    if len(machines) != 1 or not len(candidates):
        return None
    paired = blocks.valid_pairs(found, candidates, references)
    ratios = np.where(paired, found.log_s[candidates] - found.log_s[references], np.nan)
    enough = paired.sum(axis=1) > 1
    if not enough.any():
        return None
    ratios, references = ratios[enough], references[enough]
    estimates = intervals.estimate(ratios, alpha=ALPHA)
    spreads = estimates.standard_error * np.sqrt(estimates.pairs)
    freedom = estimates.pairs - 1
    spread = float(np.sqrt((freedom * spreads**2).sum() / freedom.sum()))
    return Noise(
        schema=NOISE_SCHEMA,
        machine=str(machines["machine"].iloc[0]),
        device=plan.cases[0].device,
        created=plan.created,
        run_id=plan.run_id,
        environment=plan.environments[0].identifier,
        rounds=plan.rounds,
        threshold=plan.threshold,
        spread=spread,
        detectable=_detectable(spread, plan.rounds, plan.threshold),
        control=control,
        processes=_processes(found),
        cases=tuple(
            NoiseCase(
                arm=found.arms[reference],
                case=found.cases[reference],
                pairs=int(estimates.pairs[place]),
                spread=float(spreads[place]),
                ratio=float(estimates.ratio[place]),
                low=float(estimates.low[place]),
                high=float(estimates.high[place]),
                excluded=not estimates.low[place] <= 1 <= estimates.high[place],
            )
            for place, reference in enumerate(references)
        ),
    )


def shown(noise: Noise, rounds: int, *, threshold: float, alpha: float = ALPHA) -> float | None:
    """The smallest ratio - 1 that a run of so many rounds on this machine shows.

    None where they are too few for a verdict: these show no difference, however large.
    """
    if rounds < ENOUGH_BLOCKS:
        return None
    return _detectable(noise.spread, rounds, threshold, alpha=alpha)


def rounds_for(noise: Noise, effect: float, *, alpha: float = ALPHA) -> int | None:
    """The rounds in which a difference of `effect` (0.02: 2%) is told from none in four of five.

    At least as many as a verdict needs; None when it would take more than anybody waits for.
    """
    rounds = np.arange(ENOUGH_BLOCKS, MOST_ROUNDS + 1)
    each = intervals.detectable(noise.spread / np.sqrt(rounds), rounds, threshold=0.0, alpha=alpha)
    enough = np.flatnonzero(each <= effect)
    return int(rounds[enough[0]]) if len(enough) else None


def unlikely(noise: Noise) -> bool:
    """Whether more intervals exclude 1 than chance makes do so in one selftest of twenty."""
    excluded = sum(case.excluded for case in noise.cases)
    by_chance = float(stats.binom.sf(excluded - 1, len(noise.cases), ALPHA))
    return by_chance < UNLIKELY


def keep(noise: Noise, cache: Path) -> bool:
    """Store it for the runs to come; false when that selftest is there already."""
    folder = _folder(cache, noise.machine, noise.device)
    with store.storage_errors(folder, fix=store.NAME_CACHE):
        folder.mkdir(parents=True, exist_ok=True)
    # A name that every file system takes, and that sorts by time: 20261130T131500+0000.json
    name = noise.created.replace(":", "").replace("-", "")
    return store.write_once(folder / f"{name}.json", codec.encode(noise), fix=store.NAME_CACHE)


def newest(
    cache: Path, machine: str, device: Device, *, without: Collection[str] = ()
) -> Noise | None:
    """The newest selftest of this machine on this device; None where there is none.

    `without`: run_ids of those that do not count. What cannot be read is told, and passed over.
    """
    found = [
        noise
        for noise in _stored(_folder(cache, machine, device))
        if (noise.machine, noise.device) == (machine, device) and noise.run_id not in without
    ]
    return max(found, key=lambda noise: noise.created, default=None)


def _stored(folder: Path) -> Iterator[Noise]:
    for path in sorted(folder.glob("*.json")):
        if not path.is_file():  # a pipe would be waited for
            log.warn(f"{path} is not a file. It is passed over.")
            continue
        try:
            found = codec.decode(path.read_bytes(), Noise, source=path, schema=NOISE_SCHEMA)
            if min(found.spread, found.rounds, found.detectable) < 0:
                raise InputError(f"{path} is no selftest: it has numbers below 0.")
            yield found
        except OSError as error:
            log.warn(f"The selftest in {path} cannot be read: {error.strerror}.")
        except StackraceError as error:
            log.warn(f"{error.what} It is passed over.")


def _folder(cache: Path, machine: str, device: Device) -> Path:
    return cache / FOLDER / f"{machine}-{device}"


def _pairs(found: Cells, plan: Plan) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the copy's cells, and of the same cells of the environment that it is a copy of."""
    first = plan.environments[0].identifier
    places = {key: place for place, key in enumerate(found.keys)}
    pairs = [
        (place, places[same])
        for key, place in places.items()
        if key.environment != first and (same := key._replace(environment=first)) in places
    ]
    table = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _processes(found: Cells) -> float | None:
    """The variation of process medians: the median over the cells that have two at least."""
    logs = found.log_s[found.measured.sum(axis=1) > 1]
    return float(np.median(np.nanstd(logs, axis=1, ddof=1))) if len(logs) else None


def _detectable(spread: float, rounds: int, threshold: float, *, alpha: float = ALPHA) -> float:
    pairs = np.array([rounds])
    found = intervals.detectable(spread / np.sqrt(pairs), pairs, threshold=threshold, alpha=alpha)
    return float(found[0])
