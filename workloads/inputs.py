"""The data: random batches, drawn as the origin draws them, or those of a user's make_data."""

from typing import Any, Callable, Dict, NamedTuple

import numpy as np

from workloads import forms, models
from workloads import knobs as turned
from workloads.forms import Arrays
from workloads.protocol import Stopped

LIFE_CYCLE_STEPS = 10


class Feed(NamedTuple):
    """What a method is fed with.

    `first`: the first batch as arrays, whatever the method takes. `form`: the data in the form
    that the input names: `form.next()` are the arguments of train_on_batch, `form.whole(steps)`
    those of fit, which goes through `steps` batches where the form is `in_steps`, else through
    `form.batches`. `epoch`: batches after which fit ends where the data has no end, 0 = as it
    likes. `renew()`: the same feed, made again after the graph was cleared.
    """

    first: Arrays
    form: Any
    renew: Callable[[], "Feed"]
    epoch: int = 0
    validation: Callable[[], Dict[str, Any]] = dict

    @property
    def batch_shape(self):
        """Shape of a batch's x; a dict of shapes for a dict of inputs."""
        return forms.mapped(lambda array: tuple(array.shape), self.first.x)


def make(backend, request, knobs, arrays=None) -> Feed:
    """Draw the data that the request names, or take `arrays`: what a user's make_data returned.

    Stopped (`unsupported`) for a knob that this input, method or data does not have.

    A dataset is made before the model: in TensorFlow 2's graph mode a session that ran between a
    model's forward and backward half cannot be extended with the latter.
    """
    turned.check(request, knobs)
    if arrays is not None:
        return _given(backend, request, knobs, arrays)
    kind = models.MODELS[request.model]
    if kind.words and knobs.dtype != "float64":
        raise Stopped("unsupported", "dtype", f"The data of {request.model} are whole numbers.")
    shapes = turned.batch_shapes(request, knobs)
    number = _how_many(backend, request, knobs, len(shapes))
    batches = _drawn(kind, shapes, number, knobs)
    held_out = None
    if knobs.validation:
        rows = max(1, round(knobs.validation * sum(batch.size for batch in batches)))
        held_out = _batch(kind, (rows, *shapes[0][1:]), knobs)
    return _formed(backend, request, knobs, batches, held_out=held_out)


def _how_many(backend, request, knobs, turns) -> int:
    """Distinct batches: a multiple of the shapes that take turns."""
    is_rows = request.input in ("numpy", "tensor")
    is_many = knobs.batches or request.method == "life_cycle"
    if turns > 1 and is_many and is_rows and request.method in (*turned.WHOLE, "life_cycle"):
        raise Stopped(
            "unsupported",
            "batches",
            f"{request.method} takes arrays of one shape, and one batch size, in a call: several "
            "that take turns are a call each.",
        )
    wanted = knobs.batches or (1 if is_rows else request.batches)
    if request.method == "life_cycle" and (request.input != "tensor" or backend.slices_tensors):
        wanted = LIFE_CYCLE_STEPS
    forms.refuse_many(backend, request, knobs.batches or 1)
    return -(-wanted // turns) * turns


def _drawn(kind, shapes, number, knobs) -> list:
    """`number` batches. Of one shape they are drawn at once, as the origin does."""
    if len(shapes) == 1 and number > 1:
        drawn = _batch(kind, (number, *shapes[0]), knobs, leading=2)
        return [drawn.map(lambda array, at=turn: array[at]) for turn in range(number)]
    return [_batch(kind, shapes[turn % len(shapes)], knobs) for turn in range(number)]


def _batch(kind, shape, knobs, leading=1) -> Arrays:
    """Samples of this shape, and targets and weights for the rows that its leading axes count."""
    rows = shape[:leading]
    random = np.random  # the global generator, as the origin seeds it
    x = random.randint(0, kind.words, shape) if kind.words else random.randn(*shape)
    if kind.words:
        y = random.randint(0, models.CLASSES, (*rows, 1))
    elif kind.loss == models.BINARY:
        y = random.randint(0, 2, (*rows, 1))
    else:
        y = random.randn(*shape)
    if knobs.dtype != "float64":
        x = x.astype(knobs.dtype)
    return Arrays(x, y, random.uniform(0.5, 1.5, rows) if knobs.sample_weight else None)


def _formed(backend, request, knobs, batches, *, rows=None, held_out=None) -> Feed:
    """Batches, and the rows of a validation, in the form of the request's input."""

    def parts(of):
        return [Arrays(part.x) for part in of] if request.method in turned.INFERENCE else of

    if rows is not None:
        (rows,) = parts([rows])
    validation = dict
    if held_out is not None:
        slices = held_out.slices(batches[0].size)
        if request.input == "tensor" and not backend.slices_tensors:
            slices = [held_out]
        validation = _validating(forms.of(backend, request.input, slices, held_out), len(slices))
    return Feed(
        first=batches[0].map(np.copy),
        form=forms.of(backend, request.input, parts(batches), rows),
        renew=lambda: _formed(backend, request, knobs, batches, rows=rows, held_out=held_out),
        epoch=len(batches) if knobs.batches or held_out else 0,
        validation=validation,
    )


def _validating(form, steps):
    """What fit is told of the data that it validates with, each time anew."""

    def validation():
        data = form.whole(steps)
        limit = {"validation_steps": data["steps"]} if "steps" in data else {}
        columns = tuple(data[name] for name in ("x", "y", "sample_weight") if name in data)
        return dict(limit, validation_data=forms.element(columns))

    return validation


def _given(backend, request, knobs, found) -> Feed:
    """A user's own data: arrays, of which a batch is the request's first rows, or a dataset."""
    if not isinstance(found, (tuple, list)):
        return _given_dataset(backend, request, knobs, found)
    rows = Arrays(*found).map(np.asarray)
    if knobs.dtype != "float64":
        rows = rows._replace(x=forms.mapped(lambda x: _cast(x, knobs.dtype), rows.x))
    if knobs.sample_weight:
        weight = np.random.uniform(0.5, 1.5, rows.size)  # noqa: NPY002
        rows = rows._replace(weight=weight)
    size = min(rows.size, turned.batch_shapes(request, knobs)[0][0])
    batches = [part for part in rows.slices(size) if part.size == size]
    held_out = None
    if knobs.validation:
        held_out = rows.slices(max(1, round(knobs.validation * rows.size)))[-1]
    return _formed(backend, request, knobs, batches, rows=rows, held_out=held_out)


def _cast(array, dtype):
    return array.astype(dtype) if array.dtype.kind == "f" else array


def _given_dataset(backend, request, knobs, dataset) -> Feed:
    for name in ("batch_size", "dtype", "sample_weight", "validation"):
        if getattr(knobs, name) != getattr(turned.Knobs(), name):
            raise Stopped(
                "unsupported",
                name,
                f"The knob {name} is the workload file's own: its make_data returns a dataset.",
            )
    first = backend.first_of(dataset)
    plain = not isinstance(first, (tuple, list))
    first = Arrays(first) if plain else Arrays(*first)
    if request.method in turned.INFERENCE and not plain:
        dataset, plain = dataset.map(lambda *columns: columns[0]), True

    def formed():
        form = forms.Dataset(backend, dataset.repeat(), plain)
        return Feed(first=first.map(np.asarray), form=form, renew=formed)

    return formed()
