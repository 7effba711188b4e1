"""What releases of TensorFlow 1 end with an error on, as the sweep of the grid found it.

A rule is a pair: whether it holds for what is asked, and why that cannot run.
"""

# Keras trains in these, or takes the whole input in a loop of its own.
TRAINING = ("train_on_batch", "fit", "life_cycle")
OWN_LOOP = ("fit", "evaluate", "predict", "life_cycle")
RECURRENT = ("gru", "lstm")
_TF114 = (1, 14)
_TF115 = (1, 15)


def of_strategy(release, request, *, eagerly):
    """Rules for a model under a strategy of tf.distribute; `release`: as (1, 14)."""
    oldest = release <= _TF114
    looping = oldest and request.method in OWN_LOOP
    return (
        (
            oldest and request.mode == "run_eagerly" and request.knobs.get("compiled") != "no",
            "its compile() takes no run_eagerly under a strategy",
        ),
        (
            looping and request.input in ("generator", "sequence"),
            "its strategies take arrays and datasets, neither generators nor Sequences",
        ),
        (
            looping and eagerly and request.input == "dataset_cached",
            "a strategy reads a cached dataset before it is complete, and ends with an error",
        ),
        (
            release <= _TF115
            and eagerly
            and request.api == "tf.python.keras"
            and request.method in TRAINING,
            "the optimizers of this api cannot be distributed",
        ),
    )


def of_model(release, request, *, eagerly, has_dropout):
    """Rules for a model of ours; `has_dropout`: as it was asked for."""
    training = TRAINING if release <= _TF114 else ("fit", "life_cycle")
    return (
        (
            release <= _TF115
            and request.mode == "eager"
            and request.model in RECURRENT
            and request.method in training
            and request.knobs.get("precision", "float32") != "float32",
            f"its {request.method} adds up gradients of two types in a recurrent layer, and fails",
        ),
        (
            release <= _TF114
            and not eagerly
            and has_dropout
            and request.method in ("fit", "life_cycle")
            and request.input.startswith("dataset")
            and "sample_weight" in request.knobs,
            "fit feeds a dataset's sample weights to what asks whether dropout is on",
        ),
    )
