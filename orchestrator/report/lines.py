"""The facts around the tables, a line each: what ran, where, how surely, what is missing."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Final

from orchestrator import kernel
from orchestrator.model import phrases
from orchestrator.model.comparison import ENOUGH_BLOCKS
from orchestrator.model.matrix import title
from orchestrator.report import machine, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from orchestrator.model.advice import Advice
    from orchestrator.model.comparison import Comparison, Contrast, Gap
    from orchestrator.model.findings import Broken, Findings
    from orchestrator.model.plan import PlannedEnvironment
    from orchestrator.report.cells import Cell
    from orchestrator.report.context import Context

# Keys of `Comparison.jobs` that are no outcomes.
_SUMS: Final = ("planned", "superseded")
# More cases of one gap than this are counted.
_NAMED: Final = 2
_LONGEST: Final = 86  # a command that a line holds


def versions(context: Context) -> list[str]:
    """`tf114 = TensorFlow 1.14.0, Keras 2.2.5 + pandas`, one an environment."""
    return [
        f"{item.identifier} = {title(item)}" + (f", {found(item)}" if item.source else "")
        for item in context.environments
    ]


def found(item: PlannedEnvironment) -> str:
    """`as in image REF`, `as in /opt/bin/python`: an environment that somebody else made."""
    return f"as in {'image ' if item.backend == 'container' else ''}{item.source}"


def place(cells: Sequence[Cell], comparison: Comparison, context: Context) -> str:
    """`CPU (no GPU asked for), 2 cores, Python 3.7.16 in both, 6 rounds interleaved`."""
    devices = [_device(name, cells) for name in sorted({cell.device for cell in cells})]
    device = "CPU (no GPU asked for)" if devices == ["CPU"] else words.listed(devices)
    cores = phrases.count(context.cores, "core") if context.cores is not None else ""
    if context.pin and cores:
        cores += f" (workers on {kernel.text(context.pin)})"
    tested = any(contrast.q is not None for contrast in comparison.contrasts)
    rounds = phrases.count(context.rounds, "round") + (" interleaved" if tested else "")
    runs = len(comparison.run_ids)
    if runs > 1:  # arms are interleaved within a run, and never paired across runs
        rounds = f"{phrases.count(context.rounds, 'round')} in {runs} runs" + (
            ", interleaved in each" if tested else ""
        )
    parts = (device, cores, _python(context), _containers(context), rounds)
    return ", ".join(part for part in parts if part)


def _containers(context: Context) -> str:
    """`in containers`, or which environments ran in some; nothing where none did."""
    inside = [item.identifier for item in context.environments if item.backend == "container"]
    if len(inside) == len(context.environments):
        return "in containers" if inside else ""
    return f"{words.listed(inside)} in containers" if inside else ""


def _device(name: str, cells: Sequence[Cell]) -> str:
    """`CPU`, `GPU (NVIDIA H200)`."""
    models = sorted({cell.gpu for cell in cells if cell.device == name and cell.gpu})
    return f"{name.upper()} ({'; '.join(models)})" if models else name.upper()


def doubts(cells: Sequence[Cell]) -> str:
    """What the mark behind a time of the GPU means; empty where none has it."""
    arms = list(dict.fromkeys(cell.arm for cell in cells if cell.unproven))
    if not arms:
        return ""
    return (
        f"? not proven to have run on the GPU: {', '.join(arms)}. Nothing showed that these used "
        "it, and nothing that they did not; `proof` in their records says what was looked at."
    )


def pooled(comparison: Comparison) -> str:
    """How times and ratios of several runs, or machines, were made; empty for one of both."""
    if any(side.machines > 1 for side in comparison.cells):
        return (
            f"{words.NOTHING} where processes ran on machines that differ: such times are not put "
            "together; a ratio is taken on one machine, within each block."
        )
    if len(comparison.run_ids) == 1:
        return ""
    return (
        f"Times are medians over the processes of all {len(comparison.run_ids)} runs; a ratio is "
        "taken within each block of one run, so the two may differ where runs do."
    )


def unmeasured(cells: Sequence[Cell], comparison: Comparison) -> str:
    """Why there is no table yet; empty once a cell has a number, or its reason."""
    missing = comparison.jobs.get("missing", 0)
    if not missing or any(cell.processes for cell in cells):
        return ""
    return (
        f"Nothing can be said yet: {missing} of {phrases.count(comparison.jobs['planned'], 'job')} "
        "are missing, and no block is complete. `stackrace run --resume RUN` goes on with it."
    )


def _python(context: Context) -> str:
    by_version: dict[str, list[str]] = {}
    for item in context.environments:
        by_version.setdefault(item.python, []).append(item.identifier)
    if len(by_version) > 1:
        return "Python " + ", ".join(
            f"{key} ({', '.join(names)})" for key, names in by_version.items()
        )
    where = {1: "", 2: " in both"}.get(len(context.environments), " in all")
    return f"Python {next(iter(by_version), 'unknown')}{where}"


def footnote(cells: Sequence[Cell], comparison: Comparison) -> str:
    """What `as installed *` and `ratio` mean in this report; empty without a ratio."""
    if not comparison.contrasts:
        return ""
    environments = list(dict.fromkeys(cell.environment for cell in cells))
    # The times are medians over all processes: their quotient may differ a little from the ratio.
    ratio = "averaged over blocks; above 1 is slower."
    others = [name for name in environments if name != comparison.reference]
    against = any(contrast.kind in {"as_installed", "version"} for contrast in comparison.contrasts)
    if not others or not (against or "/" in comparison.reference):
        return f"ratio = right time / left time, {ratio}"
    if len(others) == 1 and comparison.reference in environments:
        ratio = f"ratio = {others[0]} time / {comparison.reference} time, {ratio}"
    else:
        ratio = f"ratio = time / {comparison.reference} time, {ratio}"
    installed = any(contrast.kind == "as_installed" for contrast in comparison.contrasts)
    if not installed or comparison.reference not in environments:
        return ratio
    native = {cell.environment: cell.mode for cell in cells if cell.native}
    modes = ", ".join(f"{name} {native[name]}" for name in environments if name in native)
    return f"* {modes}. {ratio}"


def notes(cells: Sequence[Cell], comparison: Comparison) -> list[str]:
    """The lines below the tables."""
    told = (footnote(cells, comparison), doubts(cells), pooled(comparison))
    return [line for line in told if line]


def rule(comparison: Comparison) -> str:
    """What a verdict needs, and over how many comparisons it was corrected."""
    families = comparison.tested()
    alpha = f"{comparison.alpha:g}".removeprefix("0")
    need = (
        f"A verdict needs the whole interval beyond {words.percent(comparison.threshold)} "
        f"and q < {alpha}"
    )
    if not families:
        return f"{need}, from {ENOUGH_BLOCKS} blocks on."
    (_, first), *others = sorted(families.items(), key=lambda item: item[0] != "version")
    further = ", ".join(f"{number} {family}" for family, number in others)
    end = f" (other kinds apart: {further})" if further else ""
    return f"{need} over {phrases.count(first, 'comparison')}{end}."


def power(comparison: Comparison) -> str:
    """What this run could have seen, and how much its processes vary."""
    parts = []
    if comparison.detectable is not None:
        parts.append(
            f"This run could see differences of about {words.about(comparison.detectable)}"
        )
    if comparison.spread is not None:
        start = "processes" if parts else "Processes"
        parts.append(f"{start} here vary by {words.span(*comparison.spread)}")
    return "; ".join(parts) + "." if parts else ""


def selftests(findings: Findings) -> list[str]:
    """What the newest selftest of each machine saw, and whether it was calmer then."""
    spreads = [cell.spread for cell in findings.comparison.cells if cell.spread is not None]
    found = []
    machines = {noise.machine for noise in findings.noise}
    for noise in findings.noise:
        where = "this machine" if len(machines) == 1 else f"machine {noise.machine}"
        where = f"the GPU of {where}" if noise.device == "gpu" else where
        rounds = phrases.count(noise.rounds, "round")
        line = f"The selftest of {machine.day(noise)} on {where} "
        if noise.rounds < ENOUGH_BLOCKS:
            line += f"had a spread of {words.about(noise.spread)} in {rounds}"
        else:
            line += (
                f"saw differences of {machine.effect(noise.detectable)} and more in {rounds} "
                f"(spread {words.about(noise.spread)})"
            )
        times = noise.calmer_than(spreads) if len(findings.noise) == 1 else None
        if times is not None and noise.processes is not None:
            line += (
                f"; its processes varied by {words.about(noise.processes)}, those here "
                f"{words.times_as_long(times)} as much: the machine was busier, or these models "
                "are less even"
            )
        found.append(f"{line}.")
    return found


def jobs(comparison: Comparison, context: Context) -> str:
    """`48 of 48 jobs ok, 3 min 26 s measuring, 31 s preparing.`

    Superseded records are of blocks that were cut, or done again.
    """
    numbers = comparison.jobs
    superseded = numbers["superseded"]
    outcomes = [
        f"{number} {words.plain(outcome)}"
        for outcome, number in numbers.items()
        if number and outcome not in {*_SUMS, "ok"}
    ]
    parts = [
        f"{numbers.get('ok', 0)} of {phrases.count(numbers['planned'], 'job')} ok",
        *outcomes,
        *([phrases.count(superseded, "superseded record")] if superseded else []),
        f"{words.duration(comparison.measuring_s)} measuring",
    ]
    if context.preparing_s is not None:
        parts.append(f"{words.duration(context.preparing_s)} preparing")
    return ", ".join(parts) + "."


def gaps(comparison: Comparison) -> list[str]:
    """Every cell without a number; the same cause of one arm is told once for all its cases."""
    groups: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in comparison.gaps:
        groups.setdefault((gap.arm, gap.outcome, gap.reason), []).append(gap)
    found = []
    for (arm, outcome, reason), members in groups.items():
        cases = [gap.case for gap in members]
        where = ", ".join(cases) if len(cases) <= _NAMED else f"{len(cases)} cases"
        number = phrases.count(sum(gap.jobs for gap in members), "job")
        found.append(f"{arm}, {where}: {words.plain(outcome)} ({number}): {reason}")
    return found


def broken(item: Broken) -> str:
    """The line above a traceback of the user's own file."""
    arms = words.listed(item.arms) if len(item.arms) <= _NAMED else f"{len(item.arms)} arms"
    return f"Your workload file failed in {phrases.count(item.jobs, 'job')} of {arms}"


def failures(frame: pd.DataFrame, comparison: Comparison) -> list[str]:
    """Jobs without a number in cells that have one from other rounds."""
    empty = {(gap.arm, gap.case) for gap in comparison.gaps}
    lost = frame[frame["counts"].to_numpy(dtype=bool) & (frame["outcome"] != "ok").to_numpy()]
    counted = Counter(
        (arm, case, words.plain(outcome), phrases.first_line(reason))
        for arm, case, outcome, reason in zip(
            lost["arm"], lost["case"], lost["outcome"], lost["reason"], strict=True
        )
        if (arm, case) not in empty
    )
    return [
        f"{arm}, {case}: {outcome} ({phrases.count(number, 'job')}): {reason}"
        for (arm, case, outcome, reason), number in counted.items()
    ]


def changed(findings: Findings) -> str:
    """Blocks during which the machine itself changed its speed; empty where none did."""
    blocks = findings.changed
    if not blocks:
        return ""
    worst = max(blocks, key=lambda block: max(block.ratio, 1 / block.ratio))
    return (
        f"the machine changed its speed in {phrases.count(len(blocks), 'block')}: a fixed piece of "
        f"work took up to {words.times_as_long(worst.ratio)} its usual time (round {worst.round}, "
        f"{worst.case}); ratios within blocks are less affected than times"
    )


def hints(findings: Findings, context: Context) -> list[tuple[str, str]]:
    """What to do next: a word, and a command or path."""
    comparison, found = findings.comparison, []
    if context.command is not None and any(map(_open, comparison.contrasts)):
        time = f"  (about {words.roughly(context.command_s)})" if context.command_s else ""
        found.append(("unclear?", f"{context.command}{time}"))
    elif _choosing(findings.advice):
        # A command that names many cells is for report.md.
        steps = [step for step in findings.advice.steps if len(step.command) <= _LONGEST]
        found += [("fastest?", step.command) for step in steps[:1]]
    named = [item.spec or item.identifier for item in context.environments if not item.source]
    # Whoever reads a recorded run again knows it by now.
    if context.preparing_s is not None and named and not context.own_model:
        own = shlex.join(["stackrace", "run", *named, "--workload", "FILE.py"])
        found.append(("your model?", own))
    if context.folder is not None:
        found.append(("report", str(context.folder / "report.md")))
    return found


def _choosing(advice: Advice) -> bool:
    """Something is told from something else, but not yet what is best."""
    return advice.any and not all(item.sure for item in advice.choices)


def _open(contrast: Contrast) -> bool:
    """More rounds could decide it: it is unclear, or has too few blocks for a verdict."""
    few = contrast.state is None and 0 < contrast.pairs < ENOUGH_BLOCKS
    return few or contrast.state == "unclear"
