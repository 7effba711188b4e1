"""What to measure next where the grid does not say enough."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from orchestrator.model import phrases
from orchestrator.model.advice import Step
from orchestrator.model.comparison import ENOUGH_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.advice.choosing import Judged
    from orchestrator.advice.tasks import Grouped
    from orchestrator.model.advice import Asked
    from orchestrator.paired.cells import Cells, Key

ROUNDS: Final = 20
_TOO_MANY: Final = 8  # cells that a command line names one by one


def after(
    cells: Cells, tasks: Sequence[Grouped], judged: Sequence[Judged], asked: Asked
) -> tuple[Step, ...]:
    """The steps that would say more, the cheapest first; none where everything is decided."""
    if not tasks:
        return ()
    alone = [task for task in tasks if len(task.members) == 1]
    if len(alone) == len(tasks):
        return (_wider(cells, tasks, asked),)
    few = [
        group
        for group, item in zip(tasks, judged, strict=True)
        if len(group.members) > 1 and not item.members and _rounds(cells, group) < ENOUGH_BLOCKS
    ]
    if few:
        members = [cell for group in few for cell in group.members]
        return (Step(why="a choice needs more rounds", command=_command(cells, members, asked)),)
    return tuple(
        Step(
            why=f"{phrases.count(len(item.undecided), 'configuration')} may be the fastest for "
            f"{item.choice.task.method} at {item.choice.task.size}",
            command=_command(cells, item.undecided, asked),
        )
        for item in [item for item in judged if len(item.undecided) > 1][:1]
    )


def _rounds(cells: Cells, group: Grouped) -> int:
    return int(cells.measured[list(group.members)].sum(axis=1).max())


def _wider(cells: Cells, tasks: Sequence[Grouped], asked: Asked) -> Step:
    """One configuration each: presets, or all methods of the user's own model, measure others."""
    inference = all(task.task.method in {"predict", "test_on_batch"} for task in tasks)
    environments = dict.fromkeys(cells.keys[task.members[0]].environment for task in tasks)
    preset = ["--preset", "inference" if inference else "seed"]
    selected = ["--case", "*/given/*"] if asked.workloads else preset
    return Step(
        why="one configuration of each task has a number, so that there is nothing to choose from",
        command=shlex.join([*asked.command(environments), *selected]),
    )


def _command(cells: Cells, members: Sequence[int], asked: Asked) -> str:
    """The same cells again, in more rounds."""
    keys = [cells.keys[cell] for cell in members]
    environments = dict.fromkeys(key.environment for key in keys)
    forms = dict.fromkeys(f"{key.api}/{key.mode}" for key in keys)
    cases = list(dict.fromkeys(cells.cases[cell] for cell in members))
    if len(cases) > _TOO_MANY:
        cases = list(dict.fromkeys(map(_whole_size, keys)))
    devices = sorted({key.device for key in keys})
    rounds = max(ROUNDS, 2 * int(cells.measured[list(members)].sum(axis=1).max()))
    words = asked.command(environments)
    words += [] if devices == ["cpu"] else ["--device", ",".join(devices)]
    words += [word for case in cases for word in ("--case", case)]
    words += [word for form in forms for word in ("--arm", form)]
    return shlex.join([*words, "--rounds", str(rounds)])


def _whole_size(key: Key) -> str:
    """`small-small/*+batch_size=64`: every input and method with the same knobs."""
    return f"{key.model}-{key.data}/*{'+' if key.knobs else ''}{key.knobs}"
