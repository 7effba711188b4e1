"""What is checked besides time: what came out, and whether the pair works."""

import hashlib
import os
import shutil
import tempfile

import numpy as np

from workloads import kerases, models, protocol

# Of what a model computes, so many numbers are kept for a comparison.
_KEPT = 64


def outputs(model, x, *, half=False) -> dict:
    """What the model computes on a batch, dropout off: a digest, a summary, the first numbers.

    `half`: it computes in half precision, so the numbers are compared less strictly.
    """
    values = _flat(model.predict_on_batch(x))
    summary = {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
    }
    return {
        "digest": hashlib.sha256(values.tobytes()).hexdigest(),
        "summary": summary,
        "values": [float(value) for value in values[:_KEPT]],
        "half": half,
    }


def _flat(found):
    """All numbers of an answer, one output after the other, as float32."""
    if isinstance(found, dict):
        found = [found[name] for name in sorted(found)]
    if not isinstance(found, (list, tuple)):
        found = [found]
    arrays = [np.ascontiguousarray(np.asarray(array), dtype="<f4").ravel() for array in found]
    return np.concatenate(arrays)


def train_once(backend, batch_shape):
    """Train a tiny model for one step; return it, and the samples it was trained with."""
    x = np.random.randn(*batch_shape)  # noqa: NPY002 (as everywhere in the guest)
    y = np.random.randint(0, 2, (batch_shape[0], 1))  # noqa: NPY002
    model = models.first(backend, batch_shape)
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
