"""What each process shows by itself, all processes of a table at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.model.cell import split_knobs
from orchestrator.series import spikes, trend

if TYPE_CHECKING:
    import pandas as pd

    from orchestrator.series.spikes import Spikes
    from orchestrator.series.trend import Trend

# After so many iterations a process reads its memory, or after the batch in which they end; a life
# cycle, after each.
MEMORY_EVERY: Final = 10


class Shown(NamedTuple):
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
    values, memory = frame["values_s"].tolist(), frame["rss_bytes"].tolist()
    turns = {knobs: _takes_turns(knobs) for knobs in frame["knobs"].unique()}
    batches = [int(batch) for batch in frame["timing_batch"].fillna(1)]
    return [
        Shown(
            state=state,
            time=time and time._replace(an_iteration=time.an_iteration / batch),
            memory=grown,
            spikes=spiky,
            turns=turns[knobs],
            retraces=None if retraces is None else int(retraces),
            throttle=throttle,
        )
        for state, time, batch, grown, spiky, knobs, retraces, throttle in zip(
            frame["steady_state"],
            trend.of_times(values),
            batches,
            trend.of_memory(
                memory,
                iterations=[
                    len(series) * batch for series, batch in zip(values, batches, strict=True)
                ],
                sampled=[
                    1 if method == "life_cycle" else batch * -(-MEMORY_EVERY // batch)
                    for method, batch in zip(frame["method"], batches, strict=True)
                ],
            ),
            # A value that covers several calls shows none of them alone.
            spikes.find(
                [
                    series if batch == 1 else []
                    for series, batch in zip(values, batches, strict=True)
                ]
            ),
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
