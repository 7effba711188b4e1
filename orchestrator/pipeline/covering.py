"""Sweeps the grid: `python -m orchestrator.pipeline.covering docs/grid.md [ENV ...]`.

Per environment, api and mode a few processes run every combination of the cover for two iterations.
The counts are kept beside the document, as JSON, so that environments can be swept one by one; one
that was stopped goes on with the apis and modes that it lacks.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from orchestrator import cover, grid, guest, interrupt, log, matrix, process, store
from orchestrator.config import Flags, load
from orchestrator.errors import EnvironmentFailedError, StorageError
from orchestrator.model import codec
from orchestrator.model.coverage import COVERAGE_SCHEMA, Coverage, RowCoverage
from orchestrator.model.matrix import own_api
from orchestrator.model.plan import Limits
from orchestrator.model.request import Expected, Request, SweepCell
from orchestrator.pipeline import pages, preparing, script

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.model.coverage import Covered
    from orchestrator.model.execution import Environment, Execution
    from orchestrator.model.grid import Grid
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Api, Mode
    from orchestrator.model.request import SweepCell
    from orchestrator.model.result import Swept

BEGIN, END = "<!-- the grid: nox -s cover -->", "<!-- end of the grid -->"
# A process runs some hundred combinations, each of which may build two graphs.
LIMITS = Limits(first_call_s=1800.0, job_s=1800.0)


@dataclass(frozen=True, kw_only=True)
class Sweeper:
    """Runs combinations of one environment, api and mode, many in a process."""

    environment: Environment
    row: Row
    api: Api
    mode: Mode

    def __call__(
        self, cells: Sequence[SweepCell], knobs: Mapping[str, str] = MappingProxyType({})
    ) -> list[Swept]:
        """The outcome of every cell, in order, in a process with these knobs.

        When the process ends before it can tell, its halves are asked in processes of their own,
        until the cell is found that ends them.
        """
        if not cells:
            return []
        found = cover.judge(self._run(cells, knobs), cells)
        if found is not None:
            return found
        middle = len(cells) // 2
        return self(cells[:middle], knobs) + self(cells[middle:], knobs)

    def _run(self, cells: Sequence[SweepCell], knobs: Mapping[str, str]) -> Execution:
        row = self.row
        with tempfile.TemporaryDirectory(prefix="stackrace-cover-") as name:
            work = Path(name) / "work"
            work.mkdir()
            execution = self.environment.run(
                Request(
                    action="sweep",
                    environment=row.identifier,
                    expected=Expected(
                        tensorflow=row.tensorflow, jax=row.jax, torch=row.torch, keras=row.keras
                    ),
                    api=self.api,
                    mode=self.mode,
                    knobs=dict(knobs),
                    cells=tuple(cells),
                    phase_path=str(work / "phases"),
                    budget_s=LIMITS.job_s,
                ),
                work=work,
                log=Path(name) / "log",
                limits=LIMITS,
            )
        if execution.start_error is not None:  # says nothing of any cell
            raise EnvironmentFailedError(execution.start_error)
        return execution


def cover_arm(every: Grid, sweep: Sweeper) -> Covered:
    """The combinations of one api and mode; every pair only where the api is the row's own."""
    done = sweep(cover.first(every))
    if sweep.api == own_api(sweep.row):
        done += sweep(cover.second(every, done))
        done += sweep(cover.third(every, done))
        for knobs in cover.PROCESSES:
            done += [
                msgspec.structs.replace(item, knobs={**knobs, **item.knobs})
                for item in sweep(cover.beside(), knobs)
            ]
    return cover.tally(sweep.api, sweep.mode, done)


def cover_row(every: Grid, sweeps: Sequence[Sweeper], keep: Callable[[Covered], object]) -> None:
    """Every api and mode of one environment, side by side; `keep` gets each when it is done."""

    def covered(sweep: Sweeper) -> Covered:
        row, found = sweep.row, cover_arm(every, sweep)
        counts = ", ".join(f"{number} {name}" for name, number in found.outcomes.items())
        log.talk(f"{row.identifier}/{sweep.api}/{sweep.mode}: {counts}")
        for line in cover.failed(found):
            log.warn(f"{row.identifier}/{line}")
        return found

    # Nothing is timed: processes may run side by side.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            for done in as_completed([pool.submit(covered, sweep) for sweep in sweeps]):
                keep(done.result())
        except interrupt.Stopped:
            process.stop_all()  # or the pool would wait for processes that nobody wants any more
            pool.shutdown(cancel_futures=True)
            raise


def main(words: Sequence[str]) -> int:
    """Sweep environments, all by default, into the document. 0, or 1 when a combination failed."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.pipeline.covering")
    parser.add_argument("document", type=Path)
    parser.add_argument("environments", nargs="*", metavar="ENV")
    given = parser.parse_args(words)
    document: Path = given.document
    kept = document.with_suffix(".json")
    rows = matrix.select(matrix.load(), tuple(given.environments) or ("*",))
    _write(document, read(kept))  # what cannot be written is not swept
    bad = False
    for row in rows:

        def keep(found: RowCoverage, row: Row = row) -> None:
            keep_row(kept, row.identifier, found)
            _write(document, read(kept))

        found = prepare_and_cover(row, read(kept).rows.get(row.identifier), keep)
        bad |= any(cover.failed(covered) for covered in found.covered)
    return 1 if bad else 0


def read(path: Path) -> Coverage:
    """What was swept so far; nothing when there is no such file."""
    if not path.exists():
        return Coverage()
    return codec.decode(store.read(path), Coverage, source=path, schema=COVERAGE_SCHEMA)


def renewed(text: str, coverage: Coverage) -> str:
    """The document with the tables between its marks as they are now."""
    before, after = pages.around(text, BEGIN, END, what="the grid")
    return f"{before}\n\n{cover.table(coverage)}\n{after}"


def prepare_and_cover(
    row: Row, known: RowCoverage | None, keep: Callable[[RowCoverage], object]
) -> RowCoverage:
    """Sweep what a row lacks, or all of it; `keep` gets it after each api and mode."""
    settings = load(Flags(environments=(row.identifier,)))
    try:
        prepared = preparing.prepare(settings)
    except (EnvironmentFailedError, StorageError) as error:
        log.warn(f"{row.identifier} cannot be swept here: {error.what}")
        found = RowCoverage(title=row.title, date=_today(), skipped=error.what)
        keep(found)
        return found
    environment = prepared[row.identifier]
    found = RowCoverage(
        title=row.title,
        date=_today(),
        python=environment.python,
        guest_digest=guest.build(settings.cache / "guest").digest,
    )
    left = lacking(row, found, known)
    if known is not None and len(left) < len(row.apis) * len(row.modes):
        found = msgspec.structs.replace(found, covered=known.covered)

    def grow(covered: Covered) -> None:
        nonlocal found
        found = grown(row, found, covered)
        keep(found)

    sweeps = [Sweeper(environment=environment, row=row, api=api, mode=mode) for api, mode in left]
    cover_row(grid.load({}), sweeps, grow)
    return found


def lacking(row: Row, new: RowCoverage, known: RowCoverage | None) -> list[tuple[Api, Mode]]:
    """What is to be swept: all, or what a sweep of the same code that was stopped has not."""
    every = [(api, mode) for api in row.apis for mode in row.modes]
    if known is None or (known.guest_digest, known.python) != (new.guest_digest, new.python):
        return every
    done = {(covered.api, covered.mode) for covered in known.covered}
    return [arm for arm in every if arm not in done] or every


def grown(row: Row, found: RowCoverage, covered: Covered) -> RowCoverage:
    """The row with one more api and mode, in the order of the matrix."""
    arms = {(one.api, one.mode): one for one in (*found.covered, covered)}
    order = [(api, mode) for api in row.apis for mode in row.modes]
    return msgspec.structs.replace(found, covered=tuple(arms[arm] for arm in order if arm in arms))


def keep_row(path: Path, identifier: str, found: RowCoverage) -> None:
    """Put it among what was swept so far, in the order of the matrix."""
    known = {**read(path).rows, identifier: found}
    order = dict.fromkeys((*matrix.load().rows, *known))  # then rows that it has no more
    rows = {name: known[name] for name in order if name in known}
    store.write_report(path, codec.encode(Coverage(rows=rows)), fix=pages.WHERE)


def _write(document: Path, coverage: Coverage) -> None:
    pages.write(document, renewed(store.read_text(document), coverage))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


if __name__ == "__main__":
    script.run(main)
