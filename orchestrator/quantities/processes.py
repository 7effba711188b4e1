"""What each process shows by itself, all processes of a table at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.model.cell import split_knobs
from orchestrator.series import spikes, trend

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.series.spikes import Spikes
    from orchestrator.series.trend import Trend


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One process. None where its series is too short to tell, or nobody counted."""

    state: str  # as in the table's `steady_state`
    time: Trend | None
    memory: Trend | None
    spikes: Spikes | None
    turns: bool  # its iterations differ because they were told to
    retraces: int | None
    throttle: str | None


def look(frame: pd.DataFrame) -> list[Shown]:
    """Each row of a table of processes that are `ok`, in order."""
    values = [list(series) for series in frame["values_s"]]
    memory = [list(series) for series in frame["rss_bytes"]]
    return [
        Shown(
            state=state,
            time=time,
            memory=grown,
            spikes=spiky,
            turns=_takes_turns(knobs),
            retraces=None if retraces is None else int(retraces),
            throttle=throttle,
        )
        for state, time, grown, spiky, knobs, retraces, throttle in zip(
            frame["steady_state"],
            trend.of_times(values),
            trend.of_memory(memory, iterations=[len(series) for series in values]),
            spikes.find(values),
            frame["knobs"],
            frame["retraces"].astype(object).where(frame["retraces"].notna(), None),
            frame["throttle"],
            strict=True,
        )
    ]


def _takes_turns(knobs: str) -> bool:
    """Whether batches of several sizes or shapes take turns: then some iterations take longer."""
    told = split_knobs(knobs)
    return any("," in told.get(name, "") for name in ("batch_size", "shape"))
