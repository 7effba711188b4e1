"""From the names on a command line to environments that can run workers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec

from orchestrator import environments, guest, host, kernel, log, matrix
from orchestrator.config import Source
from orchestrator.environments import interpreters
from orchestrator.environments.options import Options, Wanted
from orchestrator.model.plan import PlannedEnvironment
from orchestrator.pipeline import catalogue, choosing, devices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.config import Config
    from orchestrator.model.execution import Environment
    from orchestrator.model.matrix import Row
    from orchestrator.model.names import Variant
    from orchestrator.model.plan import Plan
    from orchestrator.pipeline.devices import Choice


def prepare(settings: Config) -> dict[str, Environment]:
    """Build the environments of a configuration, or find them in the cache."""
    host.check_cpu()
    zipapp = guest.build(settings.cache / "guest")
    found = wanted(settings, settings.environments, zipapp)
    choice = devices.choose(found, settings)
    return build(found, settings, zipapp, variant=choice.variant, gpus=choice.uuids)


def wanted(settings: Config, names: Sequence[str], zipapp: guest.Guest) -> tuple[Wanted, ...]:
    """The environments that the names, and the user's own interpreters and images, stand for.

    A name is an identifier of the matrix or of stackrace.toml, a glob, or a pair such as
    `tensorflow==2.9.1`; in the order given, a name given again as a copy.
    """
    described = {
        name: _describe(name, source, settings, zipapp)
        for name, source in settings.sources.items()
        if name in names
    }
    rows = [
        msgspec.structs.replace(row, extra=settings.packages)
        for row in choosing.rows(settings, names, described=described)
    ]
    return tuple(_wanted(row, settings) for row in rows)


def build(
    found: Sequence[Wanted],
    settings: Config,
    zipapp: guest.Guest,
    *,
    variant: Variant,
    gpus: Sequence[str] = (),
) -> dict[str, Environment]:
    """Prepare them, in parallel; by identifier, in order."""
    versions = matrix.pythons(matrix.load()) | {item.row.python for item in found}
    interpreters.check_configured(settings.interpreters, versions=versions)
    return environments.prepare(
        found, variant=variant, guest=zipapp.path, options=options(settings, gpus), say=log.talk
    )


def options(settings: Config, gpus: Sequence[str] = ()) -> Options:
    """What the environments stage is told."""
    return Options(
        cache=settings.cache,
        interpreters=settings.interpreters,
        gpus=tuple(gpus),
        cores=settings.pin,
        containers=msgspec.structs.replace(settings.containers, cpus=kernel.text(settings.pin))
        if settings.pin
        else settings.containers,
    )


def planned(
    item: Wanted, prepared: Mapping[str, Environment], choice: Choice
) -> PlannedEnvironment:
    """What the plan keeps of an environment; one that can run nothing here was never prepared."""
    row, environment = item.row, prepared.get(item.row.identifier)
    return PlannedEnvironment(
        identifier=row.identifier,
        tensorflow=row.tensorflow,
        jax=row.jax,
        torch=row.torch,
        keras=row.keras,
        python=environment.python if environment else row.python,
        variant=choice.variant,
        native_mode=row.native_mode,
        lock_digest=environment.lock_digest if environment else "",
        lock=row.lock or "",
        spec=row.spec,
        backend=item.backend,
        source=item.source,
        image_digest=environment.image_digest if environment else None,
        extra=row.extra,
        slow_start=row.identifier in choice.slow,
    )


def again(plan: Plan, settings: Config, zipapp: guest.Guest) -> tuple[Wanted, ...]:
    """The environments that a plan was made with, for the rest of its run.

    Those that could run nothing here were never prepared, and are left out.
    """
    asked = [item for item in plan.environments if item.lock_digest]
    told = msgspec.structs.replace(
        settings,
        packages=asked[0].extra if asked else (),  # the same for all of a run
        backend=next((item.backend for item in asked if not item.source), settings.backend),
        sources={
            item.lock or item.identifier: Source(backend=item.backend, place=item.source)
            for item in asked
            if item.source
        },
    )
    names = [name_of(item) for item in asked]
    return tuple(
        dataclasses.replace(
            found,
            row=msgspec.structs.replace(
                found.row, identifier=item.identifier, lock=item.lock or None
            ),
        )
        for item, found in zip(asked, wanted(told, names, zipapp), strict=True)
    )


def name_of(item: PlannedEnvironment) -> str:
    """What names it on a command line: a copy is its row named again.

    One that somebody else made has its own name, whatever it was made from.
    """
    name = item.lock or item.identifier
    return name if item.source else item.spec or name


def _wanted(row: Row, settings: Config) -> Wanted:
    source = settings.sources.get(row.lock_name)
    if source is None:
        return Wanted(row=row, backend=settings.backend)
    return Wanted(row=row, backend=source.backend, source=source.place)


def _describe(name: str, source: Source, settings: Config, zipapp: guest.Guest) -> Row:
    """The row of an environment that somebody else made: what is really in it."""
    log.talk(f"{name}: looking what is in {source.place}.")
    every = catalogue.every(settings).rows
    row = environments.describe(
        source.place,
        source.backend,
        identifier=name,
        guest=zipapp.path,
        options=options(settings),
        known=every.values(),
        say=log.talk,
    )
    log.talk(f"{name} = {row.title}, Python {row.python}")
    if name in every:
        for line in environments.differences(every[name], row):
            log.warn(f"{name}: {line}")
    return row
