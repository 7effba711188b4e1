"""The models that are raced, and how one is made as a request and its knobs want it.

The layers of tiny, small, medium and large are the origin's. They end in global pooling, so that
the number of parameters depends on the channels of the data and never on their length.
"""

import os
import shutil
import tempfile
from typing import Any, Callable, NamedTuple, Optional, Tuple

from workloads import kerases
from workloads.protocol import Stopped

LEARNING_RATE = 1e-4  # of the optimizer
WORDS = 10000  # that an embedding knows
CLASSES = 10  # that its targets name

BINARY = "binary_crossentropy"


class Model(NamedTuple):
    """One model: its layers, and what data and targets fit it.

    `outputs(layers, inputs, dropout)` connects the layers; `dropout(x)` is the one layer of that
    kind, or nothing when the knob leaves it out.
    """

    outputs: Callable[..., Any]
    batch_shape: Tuple[int, ...]  # of its tiny data
    loss: str = BINARY
    words: Optional[int] = None  # x are whole numbers below it; None: x is normal noise
    has_dropout: bool = False


def _tiny(layers, x, dropout):
    """A model that any machine trains in milliseconds: for tests, not for verdicts."""
    x = layers.Conv1D(4, 5)(x)
    x = layers.GlobalAveragePooling1D()(x)
    return layers.Dense(1, activation="sigmoid")(dropout(x))


def _small(layers, x, dropout):
    """One wide convolution and two dense layers."""
    x = layers.Conv1D(128, 40, strides=4, padding="same")(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(64, activation="relu")(dropout(x))
    return layers.Dense(1, activation="sigmoid")(x)


def _medium(layers, x, dropout):
    """Six convolutions and a dense head."""
    for filters in (64, 128, 256, 256, 128, 64):
        x = layers.Conv1D(filters, 20, padding="valid")(x)
    return _dense_head(layers, x, dropout)


def _large(layers, x, dropout):
    """Forty-five convolutions and a dense head; the data must be longer than `small`."""
    conv = layers.Conv1D
    x = conv(64, 400, strides=4, padding="valid")(x)
    x = conv(128, 200, padding="valid")(x)
    for _ in range(40):
        x = conv(256, 12, padding="same")(x)
    x = conv(512, 20, strides=2, padding="valid")(x)
    x = conv(1028, 10, strides=2, padding="valid")(x)
    x = conv(256, 1, padding="valid")(x)
    return _dense_head(layers, x, dropout)


def _dense_head(layers, x, dropout):
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dense(128, activation="relu")(dropout(x))
    x = layers.Dense(64, activation="relu")(x)
    return layers.Dense(1, activation="sigmoid")(x)


def _mlp(layers, x, dropout):
    """Three dense layers."""
    x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(dropout(x))
    return layers.Dense(1, activation="sigmoid")(x)


def _lstm(layers, x, _):
    """One LSTM, as it comes: whatever kernel the version takes."""
    return layers.Dense(1, activation="sigmoid")(layers.LSTM(32)(x))


def _gru(layers, x, _):
    """One GRU, as it comes."""
    return layers.Dense(1, activation="sigmoid")(layers.GRU(32)(x))


def _embedding(layers, x, _):
    """Words, whose gradients are sparse, and classes by number as targets."""
    x = layers.GlobalAveragePooling1D()(layers.Embedding(WORDS, 16)(x))
    return layers.Dense(CLASSES, activation="softmax")(x)


def _conv2d(layers, x, dropout):
    """Two convolutions over images."""
    x = layers.Conv2D(16, 3, activation="relu")(x)
    x = layers.Conv2D(32, 3, activation="relu")(layers.MaxPooling2D(2)(x))
    return layers.Dense(1, activation="sigmoid")(dropout(layers.GlobalAveragePooling2D()(x)))


def _conv3d(layers, x, _):
    """Two convolutions over volumes."""
    x = layers.Conv3D(8, 3, activation="relu")(x)
    x = layers.Conv3D(16, 3, activation="relu")(x)
    return layers.Dense(1, activation="sigmoid")(layers.GlobalAveragePooling3D()(x))


def _identity(layers, x, _):
    """Answers with its input, so all of its time is overhead.

    To be trained it needs something to train: one number, the slope on the negative side, which
    starts at 1.
    """
    shared = list(range(1, len(x.shape)))
    return layers.PReLU(alpha_initializer="ones", shared_axes=shared)(x)


MODELS = {
    "tiny": Model(_tiny, (8, 20, 30), has_dropout=True),
    "small": Model(_small, (8, 20, 30), has_dropout=True),
    "medium": Model(_medium, (2, 115, 30), has_dropout=True),
    "large": Model(_large, (1, 1344, 30), has_dropout=True),
    "mlp": Model(_mlp, (8, 16), has_dropout=True),
    "lstm": Model(_lstm, (8, 10, 8)),
    "gru": Model(_gru, (8, 10, 8)),
    "embedding": Model(_embedding, (8, 10), loss="sparse_categorical_crossentropy", words=WORDS),
    "conv2d": Model(_conv2d, (8, 12, 12, 3), has_dropout=True),
    "conv3d": Model(_conv3d, (4, 6, 6, 6, 1)),
    "identity": Model(_identity, (8, 16), loss="mean_squared_error"),
}


class _Layers:
    """A Keras's layers; one that it does not have is a reason, not an error."""

    def __init__(self, backend):
        self._backend = backend

    def __getattr__(self, name):
        found = getattr(self._backend.keras.layers, name, None)
        if found is None:
            backend = self._backend
            raise Stopped(
                "unsupported",
                "layer",
                f"{backend.api} of {backend.title} {backend.version} has no layer {name}.",
            )
        return found


def first(backend, batch_shape):
    """Return the tiny model, compiled as it comes, for the first step of an environment."""
    return _compiled(backend, _connected(backend, MODELS["tiny"], batch_shape), BINARY, {})


def build(backend, request, knobs, batch_shape, make=None):
    """Build the model that the request names, compiled as the knobs say, for such batches.

    `make`: a user's own build_model(keras, batch_shape), instead of one of these. Stopped
    (`unsupported`) for a knob that this model, Keras or mode does not have.
    """
    with backend.scope(knobs.strategy, request):
        if make is not None:
            return _of_user(backend, request, knobs, make(backend.keras, batch_shape))
        kind = MODELS[request.model]
        if not (knobs.dropout or kind.has_dropout):
            raise _unsupported("dropout", f"The model {request.model} has no dropout.")
        backend.check_model(request, has_dropout=kind.has_dropout and knobs.dropout)
        model = _connected(backend, kind, _axes(batch_shape, knobs), dropout=knobs.dropout)
        if not knobs.compiled:
            return _loaded(backend, model, compiled=False) if knobs.loaded else model
        settings = _settings(backend, model, request, knobs)
        model = _compiled(backend, model, kind.loss, settings, knobs.optimizer)
        if not knobs.loaded:
            return model
        model = _loaded(backend, model)
        # Saving does not keep how a model is run.
        return (
            _compiled(backend, model, kind.loss, settings, knobs.optimizer) if settings else model
        )


def _of_user(backend, request, knobs, model):
    """A user's model, with what can be turned on a model that is compiled already."""
    for name in ("optimizer", "metrics", "compiled", "jit_compile", "dropout"):
        if getattr(knobs, name) != getattr(type(knobs)(), name):
            raise _unsupported(
                name,
                f"The knob {name} is the workload file's own: it makes and compiles its model.",
            )
    if knobs.loaded:
        model = _loaded(backend, model)
    if request.mode == "run_eagerly":
        model.run_eagerly = True
    return model


def _connected(backend, kind, batch_shape, *, dropout=True):
    layers = _Layers(backend)
    dtype = {} if kind.words is None else {"dtype": "int32"}
    inputs = layers.Input(batch_shape=batch_shape, **dtype)
    drop = layers.Dropout(0.5) if dropout and kind.has_dropout else lambda x: x
    return backend.keras.models.Model(inputs, kind.outputs(layers, inputs, drop))


def _axes(batch_shape, knobs) -> tuple:
    """The batch shape, open where sizes vary, or where validation has a rest of a batch."""
    axes = list(batch_shape)
    if len(knobs.batch_size) > 1 or knobs.validation:
        axes[0] = None
    for shape in knobs.shape[1:]:
        for axis, (size, other) in enumerate(zip(knobs.shape[0], shape), start=1):
            if size != other:
                axes[axis] = None
    return tuple(axes)


def _settings(backend, model, request, knobs) -> dict:
    """What compile() is told besides optimizer and loss."""
    settings = {}
    if knobs.metrics:
        settings["metrics"] = list(knobs.metrics)
    if request.mode == "run_eagerly":
        settings["run_eagerly"] = True
    if knobs.jit_compile is not None:
        backend.check_jit(model)
        settings["jit_compile"] = knobs.jit_compile
    return settings


def _compiled(backend, model, loss, settings, optimizer="adam"):
    model.compile(backend.optimizer(optimizer, LEARNING_RATE), loss, **settings)
    return model


def _loaded(backend, model, *, compiled=True):
    """The model, saved and loaded; compiled again by loading it, unless it never was."""
    folder = tempfile.mkdtemp(prefix="stackrace-model-")
    try:
        is_three = kerases.release(kerases.version(backend.keras)) >= kerases.THREE
        path = os.path.join(folder, "model.keras" if is_three else "model.h5")
        model.save(path)
        return backend.keras.models.load_model(path, **({} if compiled else {"compile": False}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unsupported(kind, why) -> Stopped:
    return Stopped("unsupported", kind, why)


def kernel(model, device) -> Optional[str]:
    """Which implementation a model's first recurrent layer runs with; None where it has none.

    Judged from the layer's class, from whether its settings allow cuDNN's kernel, and from the
    device: inside a graph it is TensorFlow that picks one of the two, by the device.
    """
    layer = next((item for item in model.layers if hasattr(item, "cell")), None)
    if layer is None:
        return None
    fused = getattr(layer, "could_use_cudnn", getattr(layer, "_could_use_gpu_kernel", False))
    how = "a loop of its own" if fused else "a loop over its cell"
    if device == "gpu" and (fused or getattr(layer, "use_cudnn", False)):
        how = "cuDNN"
    return f"{how} ({kerases.class_path(layer)})"
