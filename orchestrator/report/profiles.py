"""Where the time of a run went: the profiles, which are never mixed with the timings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.report import words
from orchestrator.report.marks import bullets, grid, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.model.findings import Profiled
    from orchestrator.model.result import Profile

_SHARES: Final = ("build", "data", "training", "other", "unattributed")
_FUNCTIONS: Final = 5
# From here on most of what happened is hidden from a profiler of Python.
_MUCH: Final = 30.0


def section(profiles: Sequence[Profiled]) -> Iterator[str]:
    """Percents a cell, then what its functions took; nothing where nothing was profiled."""
    measured = [(item, item.profile) for item in profiles if item.profile is not None]
    if profiles:
        yield "## Profiles"
    if measured:
        yield (
            "From processes of their own, under a profiler: in % of the run without build, to "
            "which all but build add up. Time counts to the root that it was called from; "
            "unattributed is what no Python function accounts for."
        )
        yield grid(
            ("arm", "case", *(f"{share} %" for share in _SHARES), "run"),
            [
                (
                    item.arm,
                    item.case,
                    *(f"{getattr(profile, share):.1f}" for share in _SHARES),
                    words.seconds(profile.run_s),
                )
                for item, profile in measured
            ],
            left=2,
        )
    for item, profile in measured:
        yield from _functions(item, profile)
    missing = [f"{item.arm}, {item.case}: {item.reason}" for item in profiles if item.reason]
    if missing:
        yield bullets(missing)


def _functions(item: Profiled, profile: Profile) -> Iterator[str]:
    # Build has no part in the run: what it calls comes last.
    functions = sorted(profile.functions, key=lambda found: found.root == "build")
    if functions:
        yield f"### {text(item.arm)}, {text(item.case)}: what takes longest"
        yield grid(
            ("function", "part", "calls", "in itself", "with what it calls"),
            [
                (
                    found.name,
                    found.root,
                    str(found.calls),
                    words.seconds(found.own_s),
                    words.seconds(found.total_s),
                )
                for found in functions[:_FUNCTIONS]
            ],
            left=2,
        )
    facts = list(profile.notes)
    if profile.unattributed > _MUCH and not any("unattributed" in note for note in facts):
        facts.append(
            f"{profile.unattributed:.0f}% is unattributed: threads of C++ and kernels, which a "
            "profiler of Python does not see"
        )
    if profile.trace:
        facts.append(f"the framework's own trace: {item.folder}/{profile.trace}")
    if facts:
        yield bullets(facts)
