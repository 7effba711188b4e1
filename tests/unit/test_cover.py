"""The grid's cover: what it asks for, and how the answers are counted and told."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import cover, grid, matrix
from orchestrator.cover import design
from orchestrator.errors import InputError
from orchestrator.model import codec
from orchestrator.model.coverage import Coverage, Covered, RowCoverage
from orchestrator.model.execution import Beat, Execution, silent
from orchestrator.model.knobs import KNOBS
from orchestrator.model.record import Instant
from orchestrator.model.request import Request, SweepCell
from orchestrator.model.result import RESULT_SCHEMA, Failure, Result, Swept
from orchestrator.pipeline import covering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from orchestrator.model.names import Api, Backend, Mode
    from orchestrator.model.plan import Limits

    Refused = Callable[[SweepCell], bool]

GRID = grid.load({})
DOCUMENT = Path(__file__).parents[2] / "docs" / "grid.md"


def test_every_knob_has_levels_that_it_can_have() -> None:
    """No knob is left out, and each value is one that its pattern takes."""
    assert set(KNOBS) == set(design.LEVELS)
    for name, values in design.LEVELS.items():
        if name != "shape":
            assert all(re.fullmatch(KNOBS[name].pattern, value) for value in values)
    for shapes in design._shapes(GRID).values():
        assert all(re.fullmatch(KNOBS["shape"].pattern, shape) for shape in shapes)


def test_every_word_of_a_closed_knob_is_a_level() -> None:
    """A knob that can only be some words is swept over all of them."""
    for name, knob in KNOBS.items():
        words = knob.pattern.split("|")
        if all(re.fullmatch("[a-z_0-9]+", word) for word in words):
            assert set(words) == set(design.LEVELS[name])


def ran(cells: Iterable[SweepCell], *, refused: Refused = lambda _: False) -> list[Swept]:
    """What a guest says that refuses some of these cells and runs the others."""
    no = Failure(kind="x", message="It has none.")
    return [swept(cell, no if refused(cell) else None) for cell in cells]


@cache
def whole(refused: Refused = lambda _: False) -> tuple[list[SweepCell], list[Swept]]:
    """The three steps of a sweep, each after the one before."""
    asked = list(cover.first(GRID))
    done = ran(asked, refused=refused)
    for step in (cover.second, cover.third):
        cells = step(GRID, done)
        asked += cells
        done += ran(cells, refused=refused)
    return asked, done


def pairs(cell: SweepCell) -> set[frozenset[tuple[str, str]]]:
    """The pairs of values in a cell, beside its input."""
    values = [("method", cell.method), ("model", cell.model), *cell.knobs.items()]
    return {frozenset(pair) for pair in combinations(values, 2)}


def test_all_inputs_meet_all_methods() -> None:
    """On the smallest model and without knobs, in the first step."""
    plain = {
        (cell.input, cell.method)
        for cell in cover.first(GRID)
        if (cell.model, cell.knobs) == ("tiny", {})
    }
    assert set(product(design.INPUTS, design.METHODS)) == plain


def test_every_level_is_asked_alone_first() -> None:
    """Each knob value with a method that it means something for, and each model."""
    cells = cover.first(GRID)
    assert set(GRID.models) == {cell.model for cell in cells}
    assert SweepCell(input="numpy", method="predict", knobs={"compiled": "no"}) in cells
    assert SweepCell(input="numpy", method="fit", knobs={"validation": "0.25"}) in cells
    assert max(len(cell.knobs) for cell in cells) == 1


def test_every_pair_is_there() -> None:
    """Any two knob values, and any knob value with any model, input and method."""
    cells, _ = whole()
    seen = set().union(*map(pairs, cells))
    assert frozenset({("precision", "bfloat16"), ("optimizer", "nadam")}) in seen
    assert frozenset({("precision", "bfloat16"), ("method", "life_cycle")}) in seen
    assert frozenset({("validation", "0.25"), ("method", "predict")}) in seen
    values = [(n, v) for n, vs in design.LEVELS.items() for v in vs if not KNOBS[n].process]
    knobs = [
        frozenset(pair)
        for pair in combinations(values, 2)
        if pair[0][0] != pair[1][0] and "shape" not in dict(pair)
    ]
    assert [] == [pair for pair in knobs if pair not in seen]


def test_the_cover_is_small_and_always_the_same() -> None:
    """Of millions of combinations some hundred; few knobs in each."""
    cells, _ = whole()
    assert len(cells) <= 400
    assert max(len(cell.knobs) for cell in cells) <= design.MOST_KNOBS
    assert whole.__wrapped__()[0] == cells


def test_what_is_refused_alone_is_not_asked_with_others() -> None:
    """A precision that a version does not have would only hide what else there is."""
    cells, _ = whole(lambda cell: cell.knobs.get("precision") == "bfloat16")
    assert [{"precision": "bfloat16"}] == [
        cell.knobs for cell in cells if cell.knobs.get("precision") == "bfloat16"
    ]


def test_a_refused_combination_hides_nothing() -> None:
    """Its pairs run in another one, or alone."""

    def refused(cell: SweepCell) -> bool:
        return {"loaded", "strategy"} <= set(cell.knobs)

    cells, done = whole(refused)
    ok = {i for i, item in enumerate(done) if item.outcome == "ok"}
    seen = set().union(*(pairs(cells[i]) for i in ok))
    alone = [cell.knobs for i, cell in enumerate(cells) if i not in ok and len(cell.knobs) == 2]
    assert {"loaded": "yes", "strategy": "mirrored"} in alone
    for name, values in design.LEVELS.items():
        if not KNOBS[name].process and name not in ("loaded", "strategy", "shape"):
            assert frozenset({("loaded", "yes"), (name, values[0])}) in seen


def test_the_heaviest_model_meets_few_methods() -> None:
    """Its layers are those of smaller models, and take minutes to build."""
    found = {(cell.method, *cell.knobs) for cell in whole()[0] if cell.model == "large"}
    assert {(method,) for method in design.HEAVY["large"]} == found


def test_process_knobs_have_processes_of_their_own() -> None:
    """They are never a cell's; each value of one meets each value of the other, and each method."""
    of_process = {name for name, knob in KNOBS.items() if knob.process}
    assert not any(of_process & set(cell.knobs) for cell in whole()[0])
    assert all(set(knobs) <= of_process for knobs in cover.PROCESSES)
    every = set(product(design.LEVELS["onednn"], design.LEVELS["threads"]))
    assert every <= {(knobs.get("onednn"), knobs.get("threads")) for knobs in cover.PROCESSES}
    assert set(design.METHODS) == {cell.method for cell in cover.beside()}
    assert set(design.INPUTS) == {cell.input for cell in cover.beside()}


CELLS = tuple(SweepCell(input="numpy", method=method) for method in design.METHODS[:4])


def swept(cell: SweepCell, failure: Failure | None = None) -> Swept:
    """A cell that ran, or that was refused."""
    return Swept(
        model=cell.model,
        input=cell.input,
        method=cell.method,
        knobs=cell.knobs,
        outcome="ok" if failure is None else "unsupported",
        failure=failure,
    )


def ended(result: Result | None = None, *, signal: int | None = None) -> Execution:
    """A process that left this result, or none."""
    now = Instant(wall=0.0, monotonic=0.0)
    raw = None if result is None else codec.encode(result)
    code = None if signal else 0
    return Execution(start=now, end=now, result=raw, exit_code=code, signal=signal)


class Guest:
    """An environment whose worker dies when one of its cells is `deadly`."""

    identifier = "tf20"
    lock_digest = "0" * 64
    python = "3.7.16"
    backend: Backend = "venv"
    image_digest: str | None = None

    def __init__(self, deadly: Callable[[SweepCell], bool]) -> None:
        self.deadly = deadly
        self.asked: list[Request] = []

    def run(
        self, request: Request, *, work: Path, log: Path, limits: Limits, beat: Beat = silent
    ) -> Execution:
        """Die, or run every cell."""
        del work, log, limits, beat
        self.asked.append(request)
        if any(self.deadly(cell) for cell in request.cells):
            return ended(signal=11)
        found = tuple(swept(cell) for cell in request.cells)
        return ended(Result(schema=RESULT_SCHEMA, outcome="ok", sweep=found))


def outcomes(guest: Guest, cells: Sequence[SweepCell] = CELLS) -> list[str]:
    """What a sweep of these cells says."""
    row = matrix.load().rows["tf20"]
    sweep = covering.Sweeper(environment=guest, row=row, api="tf.keras", mode="eager")
    found = sweep(cells, {"threads": "1"})
    assert [(cell.method, cell.input) for cell in cells] == [(i.method, i.input) for i in found]
    return [item.outcome for item in found]


def test_one_process_asks_for_all_cells() -> None:
    """With the process's own knobs, at its api and mode."""
    guest = Guest(lambda _: False)
    assert ["ok"] * 4 == outcomes(guest)
    (request,) = guest.asked
    assert ("sweep", "tf.keras", "eager") == (request.action, request.api, request.mode)
    assert {"threads": "1"} == request.knobs
    assert CELLS == request.cells


def test_the_cell_that_ends_its_process_is_found() -> None:
    """The others are asked again without it, and have their outcomes."""
    guest = Guest(lambda cell: cell.method == CELLS[2].method)
    assert ["ok", "ok", "crashed", "ok"] == outcomes(guest)


def test_a_process_that_is_refused_refuses_its_cells() -> None:
    """Such as a knob of the whole process that the version does not have."""
    failure = Failure(kind="onednn", message="TensorFlow 1.14.0 has no oneDNN.")
    result = Result(schema=RESULT_SCHEMA, outcome="unsupported", failure=failure)
    found = cover.judge(ended(result), CELLS)
    assert found is not None
    assert [("unsupported", failure)] * 4 == [(item.outcome, item.failure) for item in found]


def test_reasons_are_grouped() -> None:
    """Each once, with how many cells it is the reason of, and the first of them."""
    no = Failure(kind="x", message="It has none.")
    found = cover.tally("keras", "graph", [swept(CELLS[0]), *(swept(c, no) for c in CELLS[1:])])
    assert {"ok": 1, "unsupported": 3} == found.outcomes
    (reason,) = found.reasons
    assert ("It has none.", 3) == (reason.message, reason.cells)
    assert f"tiny/numpy/{CELLS[1].method}" == reason.example


def test_the_table_tells_counts_reasons_and_what_was_skipped() -> None:
    """One line an arm; refusals and failures apart; a row that is not here says why."""
    no = Failure(kind="x", message="It has none.")
    covered = cover.tally("keras", "graph", [swept(CELLS[0]), swept(CELLS[1], no)])
    row = RowCoverage(title="TensorFlow 1.14.0", date="2024-01-01", covered=(covered,))
    skipped = RowCoverage(title="PyTorch", date="2024-01-02", skipped="The disk is too small.")
    text = cover.table(Coverage(rows={"tf114": row, "keras3-torch": skipped}))
    assert "| tf114 | keras | graph | 2 | 1 | 1 | 0 |" in text
    assert "- It has none." in text
    assert "- `keras3-torch` (PyTorch): The disk is too small." in text
    assert "## Failed" not in text
    assert [] == cover.failed(covered)


def test_the_document_is_made_from_its_data() -> None:
    """What is committed is what the counts beside it say; a document without marks is refused."""
    text = DOCUMENT.read_text(encoding="utf-8")
    kept = covering.read(DOCUMENT.with_suffix(".json"))
    assert covering.renewed(text, kept) == text
    with pytest.raises(InputError, match="no place for the grid"):
        covering.renewed("nothing", kept)


def test_a_sweep_that_was_stopped_goes_on_with_what_it_lacks() -> None:
    """Of the same code and Python; a whole one is swept anew, and so is one of other code."""
    row = matrix.load().rows["tf20"]
    every = [(api, mode) for api in row.apis for mode in row.modes]
    new = RowCoverage(title=row.title, date="2026-01-02", python="3.7.16", guest_digest="a")
    assert every == covering.lacking(row, new, None)
    half = new
    for api, mode in every[1::2]:
        half = covering.grown(row, half, cover.tally(api, mode, [swept(CELLS[0])]))
    assert every[::2] == covering.lacking(row, new, half)
    assert every == covering.lacking(row, new, msgspec.structs.replace(half, guest_digest="b"))
    assert every == covering.lacking(row, new, msgspec.structs.replace(half, python="3.6.15"))
    whole = half
    for api, mode in every[::2]:
        whole = covering.grown(row, whole, cover.tally(api, mode, [swept(CELLS[0])]))
    assert every == [(one.api, one.mode) for one in whole.covered]
    assert every == covering.lacking(row, new, whole)


def test_each_api_and_mode_is_kept_when_it_is_done() -> None:
    """Hours of work are not lost with the last of them."""
    row = matrix.load().rows["tf20"]
    arms: list[tuple[Api, Mode]] = [("keras", "graph"), ("tf.keras", "eager")]
    sweeps = [
        covering.Sweeper(environment=Guest(lambda _: False), row=row, api=api, mode=mode)
        for api, mode in arms
    ]
    kept: list[Covered] = []
    covering.cover_row(GRID, sweeps, kept.append)
    assert sorted(arms) == sorted((one.api, one.mode) for one in kept)
    assert all(one.outcomes["ok"] > 50 for one in kept)


def test_nothing_is_swept_for_a_page_that_cannot_take_it(tmp_path: Path) -> None:
    """Found before hours are spent, not after."""
    page = tmp_path / "grid.md"
    with pytest.raises(InputError, match=r"grid\.md cannot be read"):
        covering.main([str(page), "tf20"])
    page.write_text("nothing")
    with pytest.raises(InputError, match="no place for the grid"):
        covering.main([str(page), "tf20"])
    (tmp_path / "grid.json").mkdir()
    with pytest.raises(InputError, match=r"grid\.json is not a file"):
        covering.main([str(page), "tf20"])


def test_rows_that_the_matrix_lost_are_kept(tmp_path: Path) -> None:
    """Their sweep took as long as any."""
    path = tmp_path / "grid.json"
    for name in ("tf20", "tfold", "tf114"):
        covering.keep_row(path, name, RowCoverage(title=name, date="2026-01-02"))
    assert ["tf114", "tf20", "tfold"] == list(covering.read(path).rows)
