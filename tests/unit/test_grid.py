"""Selecting cases and arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator import grid, matrix
from orchestrator.errors import UsageError
from orchestrator.model.plan import Limits

if TYPE_CHECKING:
    from orchestrator.model.grid import Selection


def select(preset: str, **options: object) -> Selection:
    """A selection of the shipped grid."""
    every = grid.load()
    return grid.select(every, grid.preset(every, preset), **options)  # type: ignore[arg-type]


def test_quick_is_two_cases_in_two_forms() -> None:
    """The default preset is the small model by both methods, graph and eager."""
    chosen = select("quick")
    assert ["small-small/numpy/train_on_batch", "small-small/numpy/fit"] == [
        case.name for case in chosen.cases
    ]
    assert (("tf.keras", "graph"), ("tf.keras", "eager")) == chosen.forms
    assert chosen.rounds == 6


def test_seed_is_the_origins_grid() -> None:
    """Eight model-data pairs by two inputs and two methods, in four forms."""
    chosen = select("seed")
    assert len(chosen.cases) == 8 * 2 * 2
    assert len(chosen.forms) == 4
    assert "large-small" not in {case.size for case in chosen.cases}


def test_origins_iterations_and_shapes() -> None:
    """The numbers are the origin's: 200/100/50 iterations, 32 x 140/1400/14000 x 30."""
    cases = select("seed").cases
    assert {("small", 200), ("medium", 100), ("large", 50)} == {
        (case.model, case.iterations) for case in cases
    }
    assert {
        ("small", (32, 140, 30)),
        ("medium", (32, 1400, 30)),
        ("large", (32, 14000, 30)),
    } == {(case.data, case.batch_shape) for case in cases}


def test_glob_keeps_to_the_presets_sizes() -> None:
    """A glob picks among every case of the preset's sizes, other inputs and methods too."""
    chosen = select("quick", case_globs=["*/fit"])
    assert [f"small-small/{given}/fit" for given in grid.INPUTS] == [
        case.name for case in chosen.cases
    ]


def test_glob_may_name_another_size() -> None:
    """A glob that names no case of the preset's sizes picks from the whole grid."""
    chosen = select("quick", case_globs=["tiny-tiny/dataset/*", "medium-small/numpy/fit"])
    assert [
        *(f"tiny-tiny/dataset/{method}" for method in grid.METHODS),
        "medium-small/numpy/fit",
    ] == [case.name for case in chosen.cases]


def test_arm_globs_pick_among_all_arms() -> None:
    """An arm glob is not limited to the preset's api."""
    assert grid.FORMS == select("smoke", arm_globs=["*"]).forms
    assert (("keras", "graph"), ("keras", "eager")) == select(
        "smoke", arm_globs=["keras/graph", "keras/eager"]
    ).forms


def test_what_a_workload_file_brings_is_no_case_of_the_grid() -> None:
    """`given` data and a `step` of its own exist for a user's file alone."""
    cases = grid.cases(grid.load())
    assert not {"given", "step"} & {word for case in cases for word in (case.input, case.method)}
    with pytest.raises(UsageError, match="No case matches"):
        select("quick", case_globs=["small-small/given/fit"])


def test_an_environment_without_the_presets_apis_runs_in_its_own() -> None:
    """Keras 3 on JAX has no tf.keras: beside it, or alone, the preset takes keras too."""
    rows = matrix.load().rows
    smoke = grid.preset(grid.load(), "smoke")
    assert ("tf.keras", "keras") == grid.fitted(smoke, [rows["tf218"], rows["keras3-jax"]]).apis
    assert smoke == grid.fitted(smoke, [rows["tf218"], rows["tf114"]])
    alone = grid.fitted(smoke, [rows["keras3-jax"]])
    chosen = grid.select(grid.load(), alone, existing=[("keras", "eager")])
    assert (("keras", "eager"),) == chosen.forms


def test_nothing_to_run_is_said_before_anything_is_built() -> None:
    """Environments that have no api or mode of the preset are refused, with what they have."""
    with pytest.raises(UsageError, match="No environment here has one of") as caught:
        select("smoke", existing=[("keras", "eager")])
    assert "Name what they have with --arm, such as --arm keras/eager." == caught.value.fix


def test_rounds_override_the_preset() -> None:
    """Rounds given by the user win."""
    assert select("quick", rounds=20).rounds == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"case_globs": ["small-smal/numpy/fit"]}, "Did you mean small-small/numpy/fit?"),
        ({"case_globs": ["large-small/*"]}, "The large model cannot take small data"),
        ({"case_globs": ["large-small/numpy/fit"]}, "at least 1344 steps"),
        ({"arm_globs": ["tf.keras/grap"]}, "Did you mean tf.keras/graph?"),
    ],
)
def test_nothing_matches(options: dict[str, object], message: str) -> None:
    """A glob that matches nothing is an error with the reason or the nearest name."""
    with pytest.raises(UsageError) as caught:
        select("quick", **options)
    assert message in str(caught.value)


def test_unknown_preset_names_the_nearest() -> None:
    """An unknown preset is an error that names the nearest."""
    with pytest.raises(UsageError, match=r"no preset 'quik'\. Did you mean quick\?"):
        grid.preset(grid.load(), "quik")


def test_estimate_grows_with_everything() -> None:
    """The estimate counts cases, forms, environments and rounds."""
    limits = Limits(first_call_s=600, job_s=120)
    one = grid.estimate_s(grid.load(), select("quick", rounds=1), environments=1, limits=limits)
    assert 6 * 2 * one == pytest.approx(
        grid.estimate_s(grid.load(), select("quick"), environments=2, limits=limits)
    )


def test_every_size_has_an_estimate() -> None:
    """No case is estimated at nothing because its size is missing from the table."""
    every = grid.load()
    assert {case.size for case in grid.cases(every)} <= set(every.seconds)


def test_sizes_that_will_not_fit_are_known_before() -> None:
    """What a limit rules out by our own figures is named with the seconds it would need."""
    limits = Limits(first_call_s=600, job_s=120)
    assert {"medium-large": 450.0, "large-large": 2000.0} == grid.too_long(
        grid.load(), select("seed"), limits
    )
    assert {} == grid.too_long(grid.load(), select("quick"), limits)
