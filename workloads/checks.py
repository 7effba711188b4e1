"""What is checked besides time: what really ran, what came out, and whether the pair works."""

import hashlib
import os
import shutil
import sys
import tempfile

import numpy as np

from workloads import kerases, models, protocol

# The functions of Keras that iterate over data, in whichever `training*` module a version has them.
_LOOPS = frozenset(
    (
        "fit",
        "fit_generator",
        "fit_loop",
        "model_iteration",
        "run_one_epoch",
        "train_on_batch",
    )
)


class Observer:
    """Watches one call from inside the model: `with Observer(...) as seen: call()`.

    It stands in for the last layer's `call` and asks there what is executing, and it notes which
    of Keras's training loops and data adapters are entered. On leaving, both are as before.
    """

    def __init__(self, backend, model):
        self._backend = backend
        self._layer = model.layers[-1]
        self._loops = []
        self._adapters = []
        self.calls = {"eager": 0, "function_graph": 0, "plain_graph": 0}

    def __enter__(self):
        original = self._layer.call

        def observed(inputs):
            self.calls[self._backend.traced(inputs)] += 1
            return original(inputs)

        self._layer.call = observed
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        del self._layer.call

    @property
    def executed_as(self) -> str:
        """`op by op` if the layer ran eagerly; else what has replaced it was built before."""
        if self.calls["eager"]:
            return "op by op"
        return "function" if self._backend.executes_eagerly else "session"

    @property
    def training_loop(self):
        """The loops that were entered, from the user's call inwards; None when none is known."""
        return " > ".join(self._loops) or None

    @property
    def data_adapter(self):
        """The adapters that were made; None in versions that have none."""
        return ", ".join(self._adapters) or None

    def _profile(self, frame, event, _):
        if event != "call":
            return
        module = frame.f_globals.get("__name__") or ""
        name = frame.f_code.co_name
        if name in _LOOPS and (".engine.training" in module or module.endswith(".trainer")):
            _note(self._loops, f"{_last(module)}.{name}")
        elif name == "__init__" and "data_adapter" in module:
            made = type(frame.f_locals.get("self")).__name__
            if made.endswith("Adapter"):  # the module has other classes too
                _note(self._adapters, made)


def _last(module) -> str:
    """The telling end of a module's name: `training_v1`; Keras 3 has a `trainer` a framework."""
    parts = module.split(".")
    return ".".join(parts[-2:] if parts[-1] == "trainer" else parts[-1:])


def _note(seen, name):
    if name not in seen:
        seen.append(name)


def outputs(model, x) -> dict:
    """What the trained model computes on a batch, dropout off: a digest and a summary."""
    values = np.ascontiguousarray(np.asarray(model.predict_on_batch(x)), dtype="<f4")
    summary = {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
    }
    return {"digest": hashlib.sha256(values.tobytes()).hexdigest(), "summary": summary}


def train_once(backend, batch_shape):
    """Train a tiny model for one step; return it, and the samples it was trained with."""
    x = np.random.randn(*batch_shape)  # noqa: NPY002 (as everywhere in the guest)
    y = np.random.randint(0, 2, (batch_shape[0], 1))  # noqa: NPY002
    model = models.tiny(backend.keras, batch_shape, backend.adam(models.LEARNING_RATE))
    model.train_on_batch(x, y)
    return model, x


def probe(backend, batch_shape):
    """Train one step, save the model, load it, and compare what both compute.

    Stopped (`invalid`) when the loaded model computes something else.
    """
    model, x = train_once(backend, batch_shape)
    folder = tempfile.mkdtemp(prefix="stackrace-probe-")
    try:
        is_three = kerases.release(kerases.version(backend.keras)) >= kerases.THREE
        path = os.path.join(folder, "model.keras" if is_three else "model.h5")
        model.save(path)
        loaded = backend.keras.models.load_model(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    before, after = outputs(model, x)["summary"], outputs(loaded, x)["summary"]
    if not np.allclose(list(before.values()), list(after.values()), atol=1e-5):
        raise protocol.Stopped(
            "invalid",
            "saved_model",
            f"A model saved and loaded with {backend.api} computes {after}, not {before}.",
        )
