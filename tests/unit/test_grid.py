"""Selecting cases and arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from orchestrator import grid, matrix
from orchestrator.errors import UsageError
from orchestrator.model.plan import Limits
from orchestrator.model.workload import Workload

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+batchsize=64", "There is no knob 'batchsize'. Did you mean batch_size?"),
        ("+batch_size=0", "batch_size cannot be '0': rows of a batch; several take turns."),
        ("+validation=0.0", "validation cannot be '0.0': fit also evaluates this share"),
        ("+compiled=yes", "compiled cannot be 'yes': it is no."),
        ("+precision=float8", "it is mixed_float16 or mixed_bfloat16 or"),
        ("+compiled", "'compiled' is not knob=value."),
        ("+", "'' is not knob=value."),
        ("+batch_size=1+batch_size=2", "turns batch_size twice."),
        ("+shape=28x28x1", "Samples of the small model have 2 dimensions, such as 140x30."),
    ],
)
def test_knobs_are_checked(text: str, message: str) -> None:
    """What cannot be turned, or not so far, is an error before anything is built."""
    with pytest.raises(UsageError) as caught:
        select("quick", case_globs=[f"small-small/numpy/fit{text}"])
    assert message in str(caught.value)


def test_knobs_make_cases_of_their_own() -> None:
    """Behind a glob they turn what it picks; plain cases of other globs stay beside them."""
    chosen = select(
        "quick",
        case_globs=[
            "small-small/numpy/predict*",
            "small-small/numpy/predict+compiled=no",
            "small-small/numpy/predict+dropout=no+compiled=no",
        ],
    )
    assert [
        "small-small/numpy/predict",
        "small-small/numpy/predict+compiled=no",
        "small-small/numpy/predict+compiled=no+dropout=no",
        "small-small/numpy/predict_on_batch",
    ] == [case.name for case in chosen.cases]


def test_the_same_case_asked_for_twice_is_one() -> None:
    """However its knobs are ordered."""
    globs = ["*/numpy/fit+dropout=no+loaded=yes", "*/numpy/fit+loaded=yes+dropout=no"]
    assert len(select("quick", case_globs=globs).cases) == 1


def test_other_shapes_have_other_parameters() -> None:
    """What a model must have is not known for shapes of the user's; other knobs change nothing."""
    globs = ["*/numpy/fit", "*/numpy/fit+shape=50x8", "*/numpy/fit+batch_size=8+optimizer=sgd"]
    found = {case.name: case.parameters for case in select("quick", case_globs=globs).cases}
    assert {
        "small-small/numpy/fit": 162_049,
        "small-small/numpy/fit+shape=50x8": None,
        "small-small/numpy/fit+batch_size=8+optimizer=sgd": 162_049,
    } == found


def test_shapes_leave_out_models_that_cannot_take_them() -> None:
    """A glob over several models picks those that the shape fits."""
    chosen = select("full", case_globs=["*-small/numpy/predict+shape=32x32x3"])
    assert ["conv2d-small/numpy/predict+shape=32x32x3"] == [case.name for case in chosen.cases]
    with pytest.raises(UsageError, match="at least 115 steps, not 100"):
        select("quick", case_globs=["medium-medium/numpy/fit+shape=100x30"])


def test_no_glob_is_dropped_in_silence() -> None:
    """Where one of two asks for nothing but what its model cannot take, that is said."""
    globs = ["small-small/numpy/fit", "medium-medium/numpy/fit+shape=10x3"]
    with pytest.raises(UsageError, match="at least 115 steps, not 10"):
        select("quick", case_globs=globs)


def test_a_case_may_be_named_with_its_device() -> None:
    """As reports call it; without one it is a case on every device of the run."""
    globs = ["small-small/numpy/fit@gpu+batch_size=64", "small-small/numpy/fit"]
    chosen = select("quick", case_globs=globs, devices=["cpu", "gpu"])
    assert [
        "small-small/numpy/fit@gpu+batch_size=64",
        "small-small/numpy/fit",
        "small-small/numpy/fit@gpu",
    ] == [case.name for case in chosen.cases]


@pytest.mark.parametrize(("device", "fix"), [("gpu", "--device gpu"), ("tpu", "@gpu or @cpu")])
def test_a_case_on_another_device_is_no_case_of_the_run(device: str, fix: str) -> None:
    """The message says how to ask for that device."""
    with pytest.raises(UsageError, match=f"names the device '{device}'") as caught:
        select("quick", case_globs=[f"small-small/numpy/fit@{device}"])
    assert fix in str(caught.value.fix)


def test_a_preset_may_turn_knobs() -> None:
    """Each of its sets makes its own cases; a wrong one is named with the preset."""
    tables = {
        "mine": msgspec.structs.replace(
            grid.preset(grid.load(), "smoke"), knobs=({}, {"optimizer": "sgd"})
        )
    }
    every = grid.load(tables)
    assert [
        "tiny-tiny/numpy/train_on_batch",
        "tiny-tiny/numpy/train_on_batch+optimizer=sgd",
    ] == [case.name for case in grid.select(every, every.presets["mine"]).cases]
    bad = {"mine": msgspec.structs.replace(tables["mine"], knobs=({"optimiser": "sgd"},))}
    with pytest.raises(UsageError, match=r"\[presets.mine\]: There is no knob 'optimiser'"):
        grid.load(bad)
    for change in ({"inputs": ("given",)}, {"methods": ("step",)}):
        with pytest.raises(UsageError, match="which only a workload file has"):
            grid.load({"mine": msgspec.structs.replace(tables["mine"], **change)})


def test_same_weights_turn_the_knob_everywhere() -> None:
    """Every case of the run gets it, beside its own."""
    chosen = select("quick", case_globs=["*/numpy/fit+dropout=no"], same_weights=True)
    assert ["small-small/numpy/fit+dropout=no+weights=same"] == [case.name for case in chosen.cases]


def test_models_with_data_of_their_own() -> None:
    """Each model of the guest has the shapes that it can take."""
    shapes = {case.size: case.batch_shape for case in grid.cases(grid.load())}
    assert (32, 28, 28, 1) == shapes["conv2d-small"]
    assert (4, 6, 6, 6, 1) == shapes["conv3d-tiny"]
    assert (32, 140, 30) == shapes["small-small"]
    assert "mlp-large" not in shapes


def test_inference_and_full_presets() -> None:
    """One asks for the four ways to infer, the other for everything but a workload's own."""
    assert {"predict", "predict_on_batch", "call", "call_function"} == {
        case.method for case in select("inference").cases
    }
    full = select("full")
    assert set(grid.METHODS) == {case.method for case in full.cases}
    assert set(grid.INPUTS) == {case.input for case in full.cases}
    assert set(grid.load().models) - {"tiny", "medium", "large"} == {
        case.model for case in full.cases
    }


def workload(name: str = "mine", **facts: object) -> Workload:
    """A user's file."""
    values = {"name": name, "entry": f"{name}.py", "digest": f"digest-{name}", "files": {}}
    return Workload(**(values | facts))  # type: ignore[arg-type]


def test_a_workload_is_raced_instead_of_the_grid() -> None:
    """One file gives its name to the case; the preset gives the arms and the rounds."""
    chosen = select("quick", workloads=[workload()])
    assert ["mine-default/given/fit"] == [case.name for case in chosen.cases]
    assert (32, 140, 30) == chosen.cases[0].batch_shape
    assert (None,) == chosen.workloads
    assert chosen.jobs(2) == 2 * 2 * 6


def test_a_workload_may_have_the_name_of_a_model() -> None:
    """What that model cannot take says nothing about the file."""
    chosen = select("quick", workloads=[workload("medium")], case_globs=["*/given/fit+shape=10x3"])
    assert ["medium-default/given/fit+shape=10x3"] == [case.name for case in chosen.cases]


def test_a_workloads_own_shapes_and_step() -> None:
    """Each of its shapes is a case, and its step is what runs unless another method is named."""
    own = workload(shapes=((8, 4), (16, 4)), has_step=True)
    assert ["mine-8x4/given/step", "mine-16x4/given/step"] == [
        case.name for case in select("quick", workloads=[own]).cases
    ]
    globs = ["*-8x4/predict", "mine-16x4/numpy/fit+batch_size=4"]
    with pytest.raises(UsageError, match="No case of the workload matches"):
        select("quick", workloads=[own], case_globs=globs)
    globs[0] = "*-8x4/*/predict"
    assert ["mine-8x4/given/predict", "mine-16x4/numpy/fit+batch_size=4"] == [
        case.name for case in select("quick", workloads=[own], case_globs=globs).cases
    ]


def test_several_workloads_are_arms() -> None:
    """The case is then called `workload`, and each file is an arm in every form."""
    chosen = select("quick", workloads=[workload("one"), workload("two", shapes=((8, 4),))])
    assert ["workload-8x4/given/fit"] == [case.name for case in chosen.cases]
    assert ("one", "two") == chosen.workloads
    assert chosen.jobs(1) == 2 * 2 * 6


def test_workloads_that_ask_for_different_things() -> None:
    """A case is what is held equal: shapes and method must be those of all files."""
    with pytest.raises(UsageError, match="BATCH_SHAPES of one, two are not the same"):
        select(
            "quick",
            workloads=[workload("one", shapes=((8, 5),)), workload("two", shapes=((8, 4),))],
        )
    mixed = [workload("one", has_step=True), workload("two")]
    with pytest.raises(UsageError, match=r"one defines step\(model, batch\), and two does not"):
        select("quick", workloads=mixed)
    assert ["workload-default/given/fit"] == [
        case.name for case in select("quick", workloads=mixed, case_globs=["*/fit"]).cases
    ]


def test_estimates_know_what_costs_less_and_more() -> None:
    """Inference costs less than training, a life cycle more, and larger batches more."""
    limits = Limits(first_call_s=600, job_s=120)

    def estimate(glob: str) -> float:
        chosen = select("quick", case_globs=[f"small-medium/numpy/{glob}"])
        return grid.estimate_s(grid.load(), chosen, environments=1, limits=limits)

    assert estimate("call") < estimate("predict") < estimate("fit") < estimate("life_cycle")
    assert estimate("fit") < estimate("fit+batch_size=64") == estimate("fit+shape=2800x30")
    assert estimate("fit+batches=2") == estimate("fit+batch_size=64")
    assert estimate("train_on_batch") == estimate("train_on_batch+batches=2")


def test_a_workload_may_take_all_its_time() -> None:
    """Nobody knows how fast a user's model is: each process may take its limit."""
    limits = Limits(first_call_s=600, job_s=120)
    chosen = select("quick", rounds=1, workloads=[workload()])
    assert 2 * 124 == grid.estimate_s(grid.load(), chosen, environments=1, limits=limits)
    assert {} == grid.too_long(grid.load(), chosen, limits)


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
