"""What the time is made of: planted sleeps are found again, and the parts add up."""

from __future__ import annotations

import cProfile
import importlib
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.model.result import Profile
    from tests.contract.conftest import RunGuest

FILE = """
import time

def build_model(keras, batch_shape):
    time.sleep({build})
    class Slow(keras.models.Model):
        def train_on_batch(self, x, y):
            time.sleep(0.01)
            return super().train_on_batch(x, y)
    model = Slow(keras.layers.Input(), keras.layers.Dense())
    model.compile(keras.optimizers.Adam(1e-4), "binary_crossentropy")
    return model

def make_data(batch_shape, rng):
    return rng.randn(*batch_shape), rng.randn(batch_shape[0], 1)
"""


@pytest.fixture
def profile(python: Path, run_guest: RunGuest, weird_path: Path) -> Profile:
    """A profile of 20 steps of 10 ms, of a model that took 0.3 s to build."""
    file = weird_path / "mine.py"
    file.write_text(FILE.format(build=0.3), encoding="utf-8")
    asked = {"action": "profile", "workload": str(file), "input": "given", "iterations": 20}
    ended = run_guest(python, asked)
    assert ended.result is not None, ended.log
    assert ended.result.outcome == "ok", ended.result.failure
    assert ended.result.profile is not None
    assert (ended.result.values_s, ended.result.timing) == ((), None)
    return ended.result.profile


def test_parts_add_up(profile: Profile) -> None:
    """Everything but the build adds up to the whole."""
    whole = profile.data + profile.training + profile.other + profile.unattributed
    assert whole == pytest.approx(100, abs=1)
    assert profile.iterations == 20
    assert profile.notes == ()


def test_planted_sleeps_are_found(profile: Profile) -> None:
    """What was planted in the build and in the step is there, within five points."""
    slept = {
        root: 100
        * sum(f.own_s for f in profile.functions if "sleep" in f.name and f.root == root)
        / profile.run_s
        for root in ("build", "training", "data", "other")
    }
    assert slept["training"] == pytest.approx(profile.training, abs=5)
    assert 100 * 0.3 / profile.run_s - 5 < slept["build"] < profile.build + 5
    assert (slept["data"], slept["other"]) == (0, 0)


def test_the_top_functions_are_told(profile: Profile) -> None:
    """At most twenty, in the order of their own time, by file and name."""
    own = [function.own_s for function in profile.functions]
    assert sorted(own, reverse=True) == own
    assert len(own) <= 20
    assert any(function.name.startswith("mine.py:") for function in profile.functions)
    assert all(function.total_s >= function.own_s - 1e-9 for function in profile.functions)


def test_a_profile_has_no_build_of_the_warm_up(profile: Profile) -> None:
    """The first call is part of the build; what is repeated after it is not."""
    steps = 0.01 * 100 / profile.run_s
    assert profile.build < 100 * 0.3 / profile.run_s + 30 * steps


# In the form of cProfile: calls without recursion, calls, own seconds, all seconds, callers.
LOOP = ("/x/workloads/methods.py", 1, "call")
STEP = ("/x/keras/trainer.py", 1, "train_step")
DATA = ("/x/keras/data_adapter.py", 1, "get")
THEIRS = ("/x/mine.py", 1, "rows")
SLEEP = ("~", 0, "<built-in method time.sleep>")
STRAY = ("/x/json.py", 1, "dump")


@pytest.fixture(scope="module")
def attribution() -> Any:  # noqa: ANN401
    """The guest's side, which the host never imports outside of tests."""
    return importlib.import_module("workloads.attribution")


def test_time_counts_to_the_innermost_root(attribution: Any) -> None:  # noqa: ANN401
    """A function has its own time divided by callers, and they by theirs."""
    stats = {
        LOOP: (1, 1, 0.0, 10.0, {}),
        STEP: (1, 1, 1.0, 7.0, {LOOP: (1, 1, 1.0, 7.0)}),
        DATA: (1, 1, 0.5, 3.0, {LOOP: (1, 1, 0.5, 3.0)}),
        THEIRS: (1, 1, 0.5, 2.5, {DATA: (1, 1, 0.5, 2.5)}),
        SLEEP: (2, 2, 8.0, 8.0, {STEP: (1, 1, 6.0, 6.0), THEIRS: (1, 1, 2.0, 2.0)}),
        STRAY: (1, 1, 0.25, 0.25, {}),
    }
    seconds = attribution.own_seconds(stats, attribution.shares(stats))
    assert seconds == pytest.approx({"data": 3.0, "training": 7.0, "other": 0.25})


def test_circles_belong_to_who_entered_them(attribution: Any) -> None:  # noqa: ANN401
    """Functions that call each other are shared out as those that called them from outside."""
    there, back = ("/x/a.py", 1, "there"), ("/x/b.py", 1, "back")
    stats = {
        LOOP: (1, 1, 0.0, 4.0, {}),
        there: (1, 9, 2.0, 4.0, {LOOP: (1, 1, 0.0, 4.0), back: (8, 8, 2.0, 90.0)}),
        back: (1, 8, 2.0, 4.0, {there: (8, 8, 2.0, 90.0)}),
    }
    seconds = attribution.own_seconds(stats, attribution.shares(stats))
    assert seconds == pytest.approx({"data": 0.0, "training": 4.0, "other": 0.0})


def work(depth: int) -> int:
    """Call itself, and C functions, at a known number of times."""
    return depth and work(depth - 1) + len(str(depth))


def test_one_threads_profiler_counts_as_cprofile_does() -> None:
    """Calls, and calls without recursion, are those of cProfile; so are the callers."""
    profilers = importlib.import_module("workloads.profilers")
    counts = []
    for profiler in (profilers._OneThread(), cProfile.Profile()):
        profiler.runcall(work, 5)
        time.sleep(0)
        stats = profilers.stats_of(profiler)
        key = next(key for key in stats if key[2] == "work")
        called = next(key for key in stats if "len" in key[2])
        counts.append((stats[key][:2], stats[called][:2], list(stats[called][4]) == [key]))
        assert 0 <= stats[key][2] <= stats[key][3]
    assert counts[0] == counts[1] == ((1, 6), (5, 5), True)
