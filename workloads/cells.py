"""A cell made ready to be called: its data, its model and its method, each timed and checked."""

import os
from typing import Any, NamedTuple

import numpy as np

from workloads import (
    checks,
    frameworks,
    inputs,
    kerases,
    knobs,
    methods,
    models,
    proofs,
    protocol,
    traces,
    user,
    weights,
)


class Cell(NamedTuple):
    """What a request names, ready to be called; `traces` counts from after the build on."""

    backend: Any
    knobs: knobs.Knobs
    feed: inputs.Feed
    model: Any
    method: methods.Method
    traces: traces.Traces


def make(backend, request, phases, result) -> Cell:
    """Make the cell, and leave in the result what is known of it before it runs.

    Stopped (`invalid`) unless versions, Keras, model and device are those that were asked for.
    """
    turned = knobs.of(request)
    frameworks.check_versions(backend, request.expected)
    knobs.after_import(backend, turned)
    result["metadata"] = backend.describe()
    theirs = None
    if request.workload:
        phases.begin("workload")
        theirs = user.load(request.workload)
    with phases.timed("data"):
        backend.seed(request.seeds)
        feed = _feed(backend, request, turned, theirs)

    def build():
        builder = None if theirs is None else user.builder(theirs, backend, request.method)
        return models.build(backend, request, turned, feed.batch_shape, builder)

    with phases.timed("build"):
        model = build()
    _check(backend, model, request, result)
    if turned.weights == "same":
        phases.begin("weights")
        result["outputs_before"] = _same_weights(turned, model, feed)
    counted = traces.Traces()
    counted.start(backend, model if request.method != "life_cycle" else None)
    step = None if theirs is None else theirs.step
    method = methods.bind(backend, model, feed, request, turned, step=step, build=build)
    return Cell(backend, turned, feed, model, method, counted)


def complete(cell, request, result):
    """After the first call: what a model that Keras builds while it runs has only now."""
    _describe(cell.backend, cell.model, result)
    result["kernel"] = models.kernel(cell.model, request.device)


def _feed(backend, request, turned, theirs):
    if theirs is None:
        return inputs.make(backend, request, turned)
    random = np.random.RandomState(request.seeds.numpy)
    found = theirs.make_data(knobs.batch_shapes(request, turned)[0], random)
    return inputs.make(backend, request, turned, user.check_data(found))


def _same_weights(turned, model, feed):
    if not _is_built(model):
        model.predict_on_batch(feed.first.x)
    weights.set_same(model)
    return checks.outputs(model, feed.first.x, half=turned.half)


def _check(backend, model, request, result):
    result["metadata"]["keras"]["optimizer"] = kerases.class_path(getattr(model, "optimizer", None))
    # A user's optimizer may be of their own making: their model was checked by its class.
    frameworks.check_keras(backend, None if request.workload else model)
    _describe(backend, model, result)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "unset")
    look = proofs.of_cpu if request.device == "cpu" else proofs.beforehand
    result["proof"] = look(backend.devices(), visible)
    if request.parameters not in (None, result["parameters"]):
        raise protocol.Stopped(
            "invalid",
            "parameters",
            f"The model has {result['parameters']} parameters where {request.parameters} are "
            "expected: it is not the model that was asked for.",
        )


def _describe(backend, model, result):
    result["parameters"] = int(model.count_params()) if _is_built(model) else None
    held = model.weights if _is_built(model) else ()
    result["dtype"] = _name_of(held[0].dtype) if held else backend.keras.backend.floatx()


def _is_built(model) -> bool:
    """Whether it has its weights: a subclassed model makes them when it is called first."""
    try:
        model.count_params()
    except ValueError:
        return False
    return True


def _name_of(dtype) -> str:
    """`float32`: of TensorFlow's type, or of the text that Keras 3 has instead.

    Asked without running the session: in TensorFlow 2's graph mode one that ran between a model's
    forward and backward half cannot be extended with the latter.
    """
    return getattr(getattr(dtype, "base_dtype", dtype), "name", dtype)
