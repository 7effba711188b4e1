"""`status`, `merge`, `compare` and `report`: what recorded runs say."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from orchestrator import advice, control, log, quantities, reproducibility
from orchestrator.errors import (
    InputError,
    StackraceError,
    UsageError,
    nearest,
    worst_exit_code,
)
from orchestrator.interrupt import Stopped
from orchestrator.merge import differences, export
from orchestrator.model import attempts, codec
from orchestrator.model.advice import Advice
from orchestrator.model.findings import Findings
from orchestrator.model.names import FAILED_OUTCOMES
from orchestrator.model.phrases import count
from orchestrator.model.status import Status
from orchestrator.model.summary import SUMMARY_SCHEMA, Summary
from orchestrator.pipeline import asking, beside, machines, recorded, rounds
from orchestrator.report import goals, markdown, terminal, words
from orchestrator.report.context import Context
from orchestrator.store import (
    NAME_RESULTS,
    PLAN,
    REPORTS,
    SUMMARY,
    RunFolder,
    storage_errors,
    write_report,
)
from orchestrator.verdict import compare as judge

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    import pandas as pd

    from orchestrator.model.comparison import Comparison
    from orchestrator.model.names import ContrastKind
    from orchestrator.model.plan import Plan
    from orchestrator.model.record import Record

FAILED = 3
MORE_ROUNDS = 20  # what a report suggests when it is unclear


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What recorded runs say, ready to be shown."""

    frame: pd.DataFrame
    findings: Findings
    context: Context
    failed_profiles: int = 0  # or missing: no verdict depends on them

    @property
    def comparison(self) -> Comparison:
        """How everything compares."""
        return self.findings.comparison

    @property
    def text(self) -> str:
        """The report as a terminal shows it."""
        return terminal.render(
            self.frame,
            self.findings,
            self.context,
            width=log.width(),
            colour=log.shows_colour(),
        )

    @property
    def markdown(self) -> str:
        """The report as a Markdown page."""
        return markdown.render(self.frame, self.findings, self.context)

    @property
    def exit_code(self) -> int:
        """0, or 3 when jobs failed or are missing."""
        jobs = self.comparison.jobs
        failed = sum(jobs.get(outcome, 0) for outcome in (*FAILED_OUTCOMES, "missing"))
        return FAILED if failed or self.failed_profiles else 0


@dataclass(frozen=True, kw_only=True)
class Written:
    """A report, and the files that it stands in."""

    text: str
    files: tuple[Path, ...]
    exit_code: int


def conclude(
    folder: RunFolder,
    *,
    preparing_s: float,
    more_rounds: Callable[[int], str] | None,
    as_json: bool = False,
) -> int:
    """Report on a run that has just ended: into its folder and onto the terminal.

    Of a selftest, what it shows of the machine is told instead, `as_json` where that was asked for.
    """
    found = _read((folder.path,))
    more = max(MORE_ROUNDS, 2 * found.context.rounds)
    context = replace(
        found.context,
        folder=folder.path,
        preparing_s=preparing_s,
        command=more_rounds(more) if more_rounds else None,
        command_s=found.comparison.measuring_s / found.context.rounds * more,
    )
    found = replace(found, context=context)
    plan, code = folder.plan(), found.exit_code
    try:  # before it is written: a full disk must not hide it
        if plan.selftest:
            machines.conclude(found.frame, plan, folder.path, as_json=as_json)
        else:
            log.data(found.text)
    except (Stopped, StackraceError) as cut:
        code = worst_exit_code((code, cut.exit_code))
        raise
    finally:  # a stdout that takes nothing must not hide it either
        _write(found, folder.path, ("md", "parquet"), exit_code=code)
    return code


def summarise(folder: RunFolder, *, exit_code: int) -> None:
    """Leave summary.json on a run that was cut."""
    _write(_read((folder.path,)), folder.path, (), exit_code=exit_code)


def status(path: Path) -> Status:
    """How far a run is."""
    folder = RunFolder.open(path)
    plan = folder.plan()
    records = list(folder.each_record(plan))
    by_key = attempts.by_key(records)
    outcomes: Counter[str] = Counter()
    missing = begun = 0
    for block in (*plan.blocks, *plan.profile_blocks):
        attempt = attempts.counting_attempt(block, by_key)
        if attempt is None:
            missing += len(block.jobs)
            last = max((max(by_key[job.key]) for job in block.jobs if job.key in by_key), default=0)
            begun += sum(last in by_key.get(job.key, {}) for job in block.jobs)
        else:
            outcomes.update(by_key[job.key][attempt].outcome for job in block.jobs)
    return Status(
        run_id=plan.run_id,
        created=plan.created,
        environments=tuple(item.identifier for item in plan.environments),
        rounds=plan.rounds,
        goal=plan.goal,
        planned=len(plan.jobs) + len(plan.profiles),
        outcomes=dict(outcomes),
        missing=missing,
        begun=begun,
        superseded=len(records) - outcomes.total() - begun,
    )


def status_text(found: Status) -> str:
    """The status in a few lines."""
    ended = ", ".join(f"{number} {outcome}" for outcome, number in found.outcomes.items())
    state = "complete" if not found.missing else f"{count(found.missing, 'job')} missing"
    return (
        f"{found.run_id}  {', '.join(found.environments)}  "
        f"{count(found.rounds, 'round')}{goals.so_far(found.goal, ended=not found.missing)}\n"
        f"{count(found.planned, 'job')} planned: {ended or 'none measured yet'}; {state}"
        + (f" ({found.begun} of these in a block that is not complete)" if found.begun else "")
        + (f"; {count(found.superseded, 'superseded record')}" if found.superseded else "")
    )


def merge_to(paths: Sequence[Path], output: Path) -> int:
    """Merge runs into one file; returns its number of rows."""
    frame = recorded.read(paths).frame
    export(frame, output, fix="Name another file with -o FILE.")
    return len(frame)


def compare(
    paths: Sequence[Path],
    *,
    reference: str | None = None,
    threshold: float | None = None,
    kinds: Collection[ContrastKind] = (),
) -> Reading:
    """The verdict on recorded runs."""
    return _read(paths, reference=reference, threshold=threshold, kinds=kinds)


def report(
    paths: Sequence[Path],
    *,
    formats: Sequence[str],
    output: Path | None = None,
    reference: str | None = None,
    threshold: float | None = None,
) -> Written:
    """Write the report on recorded runs into `output`, by default the run's own folder."""
    _check_target(paths, output)
    for name in formats:
        if name not in REPORTS:
            raise UsageError(f"There is no report format {name!r}. {nearest(name, REPORTS)}")
    target = output or paths[0]
    found = _read(paths, reference=reference, threshold=threshold)
    if "md" in formats:
        found = replace(found, context=replace(found.context, folder=target))
    fix = "Name another folder with -o DIR."
    with storage_errors(target, fix=fix):
        target.mkdir(parents=True, exist_ok=True)
    files = _write(found, target, formats, exit_code=found.exit_code, fix=fix)
    return Written(text=found.text, files=files, exit_code=found.exit_code)


def _check_target(paths: Sequence[Path], output: Path | None) -> None:
    """UsageError where a report would take the place of that of another run, or of one of these."""
    if output is None and len(paths) > 1:
        raise UsageError(
            f"A report on {count(len(paths), 'run')} belongs in none of their folders.",
            fix="Say where with -o DIR, or see it with: stackrace compare RUN...",
        )
    own = {os.path.realpath(path) for path in paths} if len(paths) == 1 else set()
    # Asked of `os`, which has an answer for names that are too long, too.
    taken = output is not None and os.path.exists(output / PLAN)  # noqa: PTH110
    if output is not None and taken and os.path.realpath(output) not in own:
        raise UsageError(
            f"{output} is the folder of a run, which has a report of its own.",
            fix="Name another folder with -o DIR.",
        )


def newest(results: Path) -> Path:
    """The run that was started last in a results folder."""
    runs = [path.parent for path in results.glob("*/plan.json")]
    if not runs:
        raise InputError(
            f"There is no run in {results}.", fix="Start one with: stackrace run tf114 tf20"
        )
    return max(runs, key=lambda run: run.name)


@recorded.without_collection()
def _read(
    paths: Sequence[Path],
    *,
    reference: str | None = None,
    threshold: float | None = None,
    kinds: Collection[ContrastKind] = (),
) -> Reading:
    found = recorded.read(paths)
    plans, frame, runs = found.plans, found.frame, found.runs()
    environments = list({item.identifier: item for plan in plans for item in plan.environments})
    compared = partial(
        judge,
        frame,
        environments=environments,
        threshold=threshold or _shared_threshold(plans),
        reference=reference or _shared_reference(plans),
        alpha=min(plan.alpha for plan in plans),
    )
    every = compared()
    selftests = machines.known(frame)
    selftest = all(plan.selftest for plan in plans)
    ending = rounds.ending(plans[0], frame) if len(plans) == 1 else rounds.Ending()
    findings = Findings(
        comparison=compared(kinds=kinds) if kinds else every,
        # Of all kinds: what computes something else is not advised because nobody asked.
        # A copy of an environment is no choice.
        advice=advice.of(frame, every, asking.asked(plans, every.threshold))
        if not selftest
        else Advice(),
        quantities=quantities.of(frame),
        agreements=reproducibility.of(frame),
        changed=control.changed(frame, spreads=machines.controls(selftests)),
        profiles=beside.profiles(runs),
        broken=beside.broken(runs),
        differences=differences(runs),
        noise=selftests,
        precision=ending.precision,
        ended=ending.reason,
    )
    return Reading(
        frame=frame,
        findings=findings,
        context=_context(runs),
        failed_profiles=sum(_failed_profiles(plan, records) for plan, records in runs),
    )


def _context(runs: Sequence[tuple[Plan, list[Record]]]) -> Context:
    hosts = {(record.host.cpu, record.host.cores) for _, records in runs for record in records}
    cpu, cores = hosts.copy().pop() if len(hosts) == 1 else (None, None)
    if len(hosts) > 1:
        cpu = words.listed(sorted(f"{name} ({count(number, 'core')})" for name, number in hosts))
    plans = [plan for plan, _ in runs]
    pins = {plan.pin for plan in plans}
    return Context(
        environments=tuple(
            {item.identifier: item for plan in plans for item in plan.environments}.values()
        ),
        rounds=sum(plan.rounds for plan in plans),
        cpu=cpu,
        cores=cores,
        pin=pins.pop() if len(pins) == 1 else (),
        own_model=any(plan.workloads for plan in plans),
        selftest=all(plan.selftest for plan in plans),
    )


def _failed_profiles(plan: Plan, records: Sequence[Record]) -> int:
    by_key = attempts.by_key(records)
    failed = 0
    for block in plan.profile_blocks:
        attempt = attempts.counting_attempt(block, by_key)
        failed += attempt is None or any(
            by_key[job.key][attempt].outcome in FAILED_OUTCOMES for job in block.jobs
        )
    return failed


def _shared_threshold(plans: Sequence[Plan]) -> float:
    """The threshold the runs were planned with; UsageError when they disagree."""
    thresholds = {plan.threshold for plan in plans}
    if len(thresholds) > 1:
        told = ", ".join(words.percent(value) for value in sorted(thresholds))
        raise UsageError(
            f"These runs were planned with different thresholds: {told}.",
            fix="Say which one counts with --threshold.",
        )
    return thresholds.pop()


def _shared_reference(plans: Sequence[Plan]) -> str | None:
    """The reference the runs were planned with, when they agree on one."""
    references = {plan.reference for plan in plans}
    return references.pop() if len(references) == 1 else None


def _write(
    found: Reading,
    target: Path,
    formats: Collection[str],
    *,
    exit_code: int,
    fix: str = NAME_RESULTS,
) -> tuple[Path, ...]:
    findings = found.findings
    summary = Summary(
        schema=SUMMARY_SCHEMA,
        exit_code=exit_code,
        comparison=findings.comparison,
        advice=findings.advice,
        quantities=findings.quantities,
        agreements=findings.agreements,
        changed=findings.changed,
        profiles=findings.profiles,
        broken=findings.broken,
        differences=findings.differences,
        noise=findings.noise,
        precision=findings.precision,
        ended=findings.ended,
    )
    files = []
    for name in dict.fromkeys(formats):
        path = target / REPORTS[name]
        if name == "md":
            write_report(path, found.markdown.encode(), fix=fix)
        else:
            export(found.frame, path, fix=fix)
        files.append(path)
    write_report(target / SUMMARY, codec.encode(summary), fix=fix)
    return (*files, target / SUMMARY)
