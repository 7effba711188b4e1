"""Compares every pair of cells that can be compared, and accounts for every job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from packaging.version import Version

from orchestrator.model.comparison import BETWEEN_ARMS, ENOUGH_BLOCKS, Comparison, Contrast
from orchestrator.paired import blocks, families, intervals
from orchestrator.paired.cells import NO_HOST, read
from orchestrator.verdict import account, caveats, judge, outputs, paths
from orchestrator.verdict.contrasts import check_reference, pairings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from orchestrator.model.comparison import Gap, Side
    from orchestrator.model.names import ContrastKind
    from orchestrator.paired.cells import Cells
    from orchestrator.verdict.contrasts import Pairing


def compare(
    frame: pd.DataFrame,
    *,
    environments: Sequence[str],
    threshold: float,
    reference: str | None = None,
    kinds: Collection[ContrastKind] | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Every contrast of a merged table, judged.

    `environments`: identifiers in the order of the plan. `reference`: one of them (the first when
    None), or an arm's name: then every other arm is compared with that arm. `threshold`: the
    practical threshold as a fraction. `kinds`: only these. Raises UsageError for a reference that
    the table does not have.
    """
    cells = read(frame)
    reference = check_reference(cells, environments, reference)
    pairs = pairings(cells, environments=environments, reference=reference, kinds=kinds)
    gaps = account.gaps(frame)
    judged = _Judged(cells, pairs, threshold=threshold, alpha=alpha)
    sides = account.sides(cells)
    spreads = [side.spread for side in sides if side.spread is not None]
    return Comparison(
        run_ids=tuple(frame["run_id"].drop_duplicates()),
        reference=reference,
        threshold=threshold,
        alpha=alpha,
        contrasts=judged.contrasts(sides, {(gap.arm, gap.case): gap for gap in reversed(gaps)}),
        gaps=gaps,
        detectable=judged.detectable(),
        spread=(min(spreads), max(spreads)) if spreads else None,
        jobs=account.jobs(frame),
        measuring_s=float((frame["ended_s"] - frame["started_s"]).sum()),
        warnings=account.warnings(frame),
        cells=tuple(sides),
    )


class _Judged:
    """The numbers of all contrasts at once, then their words one by one."""

    def __init__(
        self, cells: Cells, pairs: Sequence[Pairing], *, threshold: float, alpha: float
    ) -> None:
        self.ways = paths.Ways(cells)
        self.cells, self.pairs, self.threshold, self.alpha = cells, pairs, threshold, alpha
        candidates = np.array([pair.candidate for pair in pairs], dtype=np.intp)
        references = np.array([pair.reference for pair in pairs], dtype=np.intp)
        self.paired = blocks.valid_pairs(cells, candidates, references)
        ratios = cells.log_s[candidates] - cells.log_s[references]
        self.ratios = np.where(self.paired, ratios, np.nan)
        self.found = intervals.estimate(self.ratios, alpha=alpha)
        self.machines = np.where(self.paired, cells.machine[candidates], NO_HOST)
        several = np.array([len(_kinds(found)) > 1 for found in self.machines], dtype=bool)
        apart = blocks.apart(cells, candidates, references)
        first, alike = _questions(pairs)
        self.agreed = [
            outputs.agreement(cells, pair, paired)
            for pair, paired in zip(pairs, self.paired, strict=True)
        ]
        same = np.array([found.different is None for found in self.agreed], dtype=bool)
        self.tested = (self.found.pairs >= ENOUGH_BLOCKS) & ~apart & same & ~several & first
        names = [pair.family for pair in pairs]
        self.q = families.corrected(self.found, names, self.tested)[alike]

    def detectable(self) -> float | None:
        """The median over the comparisons that were tested."""
        each = intervals.detectable(
            self.found.standard_error,
            self.found.pairs,
            threshold=self.threshold,
            alpha=self.alpha,
        )
        return float(np.median(each[self.tested])) if self.tested.any() else None

    def contrasts(
        self, sides: Sequence[Side], gaps: Mapping[tuple[str, str], Gap]
    ) -> tuple[Contrast, ...]:
        return tuple(
            self._contrast(number, pair, sides, gaps) for number, pair in enumerate(self.pairs)
        )

    def _across(self, number: int) -> str | None:
        """Why there is no verdict over several kinds of machine, with the ratio on each."""
        machines = self.machines[number]
        kinds = _kinds(machines)
        ratios = [float(np.exp(self.ratios[number][machines == kind].mean())) for kind in kinds]
        return judge.across(ratios) if len(ratios) > 1 else None

    def _contrast(
        self,
        number: int,
        pair: Pairing,
        sides: Sequence[Side],
        gaps: Mapping[tuple[str, str], Gap],
    ) -> Contrast:
        candidate, reference = sides[pair.candidate], sides[pair.reference]
        # Cells of two cases meet in a round, not in a block.
        unit = "block" if pair.kind in BETWEEN_ARMS else "round"
        count, ratio = int(self.found.pairs[number]), _number(self.found.ratio[number])
        low, high = _number(self.found.low[number]), _number(self.found.high[number])
        q = _number(self.q[number])
        agreed, paired = self.agreed[number], self.paired[number]
        differing = paths.differing(self.ways, pair, paired)
        state, reason = None, None
        if ratio is None:
            reason = _no_number((candidate, reference), gaps, unit)
        elif agreed.different:
            reason = agreed.different
        elif low is not None and high is not None and q is not None:
            state, reason = judge.state(
                low=low, high=high, q=q, threshold=self.threshold, alpha=self.alpha
            )
        else:
            reason = judge.too_few(count, unit) or self._across(number) or judge.NOT_INTERLEAVED
        return Contrast(
            kind=pair.kind,
            family=pair.family,
            candidate=candidate,
            reference=reference,
            pairs=count,
            ratio=ratio,
            low=low,
            high=high,
            p=_number(self.found.p[number]),
            q=q,
            state=state,
            reason=reason,
            knob=pair.knob,
            paths=differing,
            notes=(
                *judge.notes(self.cells, pair, paired, unit),
                *caveats.notes(self.cells, pair, paired),
                *paths.notes(self.cells, pair, differing),
                *([agreed.unknown] if agreed.unknown else []),
            ),
            origin_percent=None
            if agreed.different
            else _origin_percent(self.cells, pair, candidate, reference),
        )


def _kinds(machines: NDArray[np.int64]) -> NDArray[np.int64]:
    """The keys of the machines on which a contrast has pairs."""
    found: NDArray[np.int64] = np.unique(machines[machines != NO_HOST])
    return found


def _questions(pairs: Sequence[Pairing]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which contrasts are the first of their two cells, and for each the place of that first.

    Two environments that start in one mode meet in the same cells as installed and at equal mode:
    counted twice, that one comparison would weaken or strengthen the correction of all others.
    """
    places: dict[tuple[str, int, int], int] = {}
    found = [places.setdefault(pair.question, place) for place, pair in enumerate(pairs)]
    alike = np.array(found, dtype=np.intp)
    return alike == np.arange(len(pairs)), alike


def _number(value: float) -> float | None:
    """None where there is no finite number: JSON has no other way to say it."""
    return float(value) if np.isfinite(value) else None


def _no_number(sides: tuple[Side, Side], gaps: Mapping[tuple[str, str], Gap], unit: str) -> str:
    missing = [gaps[side.arm, side.case] for side in sides if (side.arm, side.case) in gaps]
    if not missing:
        return f"no {unit} in which both have a number"
    gap = missing[0]
    # Where both sides are one arm, the case tells them apart.
    cell = gap.arm if sides[0].arm != sides[1].arm else f"{gap.arm} {gap.case}"
    return f"{cell} {gap.outcome}: {gap.reason}"


def _origin_percent(cells: Cells, pair: Pairing, candidate: Side, reference: Side) -> float | None:
    """(1 - longer / shorter) * 100 of the two times, as a magnitude.

    + when the newer version, or graph against eager, is faster.
    """
    if not candidate.seconds or not reference.seconds:
        return None
    if pair.kind not in {"as_installed", "version", "mode"}:
        return None
    ratio = candidate.seconds / reference.seconds
    magnitude = (max(ratio, 1 / ratio) - 1) * 100
    candidate_wins = ratio < 1
    if pair.kind == "mode":
        modes = [cells.keys[cell].mode for cell in (pair.candidate, pair.reference)]
        if "graph" not in modes:
            return None
        expected_wins = candidate_wins == (modes[0] == "graph")
    else:
        ages = [_age(cells, cell) for cell in (pair.candidate, pair.reference)]
        if ages[0] is None or ages[1] is None:
            return None  # of two frameworks neither is the newer version
        expected_wins = candidate_wins == (ages[0] >= ages[1])
    return magnitude if expected_wins else -magnitude


def _age(cells: Cells, cell: int) -> tuple[Version, Version] | None:
    """Versions of TensorFlow and of the `keras` package, which 2.5 does not have."""
    tensorflow, keras = cells.version[cell]
    return (Version(tensorflow), Version(keras or "0")) if tensorflow else None
