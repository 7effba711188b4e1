"""The data: random batches, drawn as the origin draws them, and the dataset made of them."""

from typing import Any, NamedTuple

import numpy as np


class Arrays(NamedTuple):
    """float64 samples and int64 targets, 0 or 1; a dataset's have a leading axis of batches."""

    x: Any
    y: Any


def one_batch(batch_shape) -> Arrays:
    """One batch: x of `batch_shape`, y of (batch, 1)."""
    x = np.random.randn(*batch_shape)  # noqa: NPY002 (the global generator, as the origin seeds it)
    y = np.random.randint(0, 2, (batch_shape[0], 1))  # noqa: NPY002
    return Arrays(x, y)


def many_batches(batch_shape, count) -> Arrays:
    """`count` distinct batches: x of (count, *batch_shape), y of (count, batch, 1)."""
    x = np.random.randn(count, *batch_shape)  # noqa: NPY002
    y = np.random.randint(0, 2, (count, batch_shape[0], 1))  # noqa: NPY002
    return Arrays(x, y)


class Feed(NamedTuple):
    """What a method is fed with.

    `first` is the first batch as arrays. `dataset` repeats all batches without end; in graph mode
    `tensors` are what its one iterator yields next. Both are None for the input `numpy`.
    """

    first: Arrays
    dataset: Any = None
    tensors: Any = None

    @property
    def batch_shape(self):
        """Shape of a batch's x; a dict of shapes for a dict of inputs."""
        x = self.first.x
        return {name: item.shape for name, item in x.items()} if isinstance(x, dict) else x.shape


def make(backend, request, knobs, arrays=None) -> Feed:
    """Draw the data that the request names, or take `arrays`: what a user's make_data returned.

    A dataset is made before the model: in TensorFlow 2's graph mode a session that ran between a
    model's forward and backward half cannot be extended with the latter.
    """
    del knobs, arrays
    if request.input == "numpy":
        return Feed(one_batch(request.batch_shape))
    batches = many_batches(request.batch_shape, request.batches)
    first = Arrays(batches.x[0].copy(), batches.y[0].copy())
    return Feed(first, *backend.dataset(batches))
