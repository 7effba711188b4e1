"""`stackrace list`: what there is, without importing anything heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestrator import config, grid, matrix
from orchestrator.grid.knobs import choices
from orchestrator.model.catalogue import Catalogue, ListedEnvironment, ListedKnob, ListedPreset
from orchestrator.model.knobs import KNOBS
from orchestrator.model.matrix import Matrix
from orchestrator.model.names import CONTRASTS
from orchestrator.model.plan import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.config import Config
    from orchestrator.model.grid import Grid

PAIR = 2  # estimates are for the usual race: one environment against another


def every(settings: Config) -> Matrix:
    """The matrix, and behind it the rows of stackrace.toml."""
    shipped = matrix.load()

    def complete(table: Mapping[str, Any]) -> Mapping[str, Any]:
        # It takes as long to import as `list` takes for all else, and few have rows of their own.
        from orchestrator import pairs  # noqa: PLC0415

        return pairs.complete(table, matrix=shipped)

    own = matrix.load_user(settings.rows, settings.file, matrix=shipped, complete=complete)
    return Matrix(rows={**shipped.rows, **own})


def catalogue(settings: Config) -> Catalogue:
    """Environments, presets, cases, knobs, arms and contrasts; those of stackrace.toml too."""
    cases = grid.load(settings.presets)
    rows = every(settings).rows.values()
    sizes_mb = sorted(row.size_mb["cpu"] for row in rows)
    size_mb = round(sizes_mb[len(sizes_mb) // 2])
    forms = dict.fromkeys(f"{api}/{mode}" for row in rows for api in row.apis for mode in row.modes)
    return Catalogue(
        environments=tuple(
            ListedEnvironment(
                identifier=row.identifier,
                title=row.title,
                tensorflow=row.tensorflow,
                keras=row.keras,
                python=row.python,
                native_mode=row.native_mode,
                apis=row.apis,
                modes=row.modes,
                size_mb=row.size_mb["cpu"],
                impossible=tuple(f"{rule.what}: {rule.reason}" for rule in row.impossible),
            )
            for row in rows
        ),
        presets=tuple(_preset(cases, name, size_mb) for name in cases.presets),
        cases=tuple(case.name for case in grid.cases(cases)),
        knobs=tuple(
            ListedKnob(name=name, summary=knob.summary, choices=choices(name), pattern=knob.pattern)
            for name, knob in KNOBS.items()
        ),
        arms=tuple(forms),
        contrasts=CONTRASTS,
    )


def _preset(every: Grid, name: str, size_mb: int) -> ListedPreset:
    chosen = grid.preset(every, name)
    selection = grid.select(every, chosen)
    limits = Limits(first_call_s=config.DEFAULT_FIRST_CALL_S, job_s=config.DEFAULT_JOB_S)
    return ListedPreset(
        name=name,
        summary=chosen.summary,
        default=name == config.DEFAULT_PRESET,
        cases=len(selection.cases),
        rounds=selection.rounds,
        jobs=selection.jobs(PAIR),
        estimate_s=grid.estimate_s(every, selection, environments=PAIR, limits=limits),
        disk_mb=size_mb * PAIR,
    )
