"""The forms of the data: what an input makes of the same batches."""

from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from workloads.protocol import Stopped


class Arrays(NamedTuple):
    """Rows as arrays: samples (or a dict of them), maybe targets, and maybe a weight a row."""

    x: Any
    y: Any = None
    weight: Any = None

    @property
    def columns(self) -> tuple:
        """Those that are there."""
        return tuple(column for column in self if column is not None)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.x.values())) if isinstance(self.x, dict) else self.x)

    def map(self, function) -> "Arrays":
        """Call it with every array."""
        return Arrays(*(mapped(function, column) for column in self.columns))

    def slices(self, size) -> list:
        """Parts of so many rows; the last may have fewer."""
        starts = range(0, self.size, size)
        return [self.map(lambda c, at=start: c[at : at + size]) for start in starts]


def mapped(function, column):
    """Call it with an array, or with each of a dict of arrays."""
    if isinstance(column, dict):
        return {name: function(item) for name, item in column.items()}
    return function(column)


def joined(batches) -> Arrays:
    """All rows of batches of one shape."""
    return Arrays(*(_concatenated(columns) for columns in zip(*(b.columns for b in batches))))


def _concatenated(columns):
    if isinstance(columns[0], dict):
        return {name: np.concatenate([item[name] for item in columns]) for name in columns[0]}
    return np.concatenate(columns)


def alike(batches) -> bool:
    """Whether all have one shape."""
    shapes = [mapped(lambda array: array.shape, batch.x) for batch in batches]
    return all(shape == shapes[0] for shape in shapes)


def _named(columns) -> dict:
    """Columns as fit and its like call them."""
    return dict(zip(("x", "y", "sample_weight"), columns))


def element(columns):
    """Return what a dataset or generator yields: a tuple, or samples alone."""
    return tuple(columns) if len(columns) > 1 else columns[0]


def _yielded(backend, batch):
    """What a generator or sequence yields of a batch."""
    return element(batch.columns) if backend.takes_bare_samples else batch.columns


def each(function, columns):
    """Call it with every array of what a dataset yields."""
    if isinstance(columns, tuple):
        return tuple(mapped(function, column) for column in columns)
    return mapped(function, columns)


def dataset_of(kind, elements, hold):
    """Return a tf.data.Dataset, whose class is `kind`, of these elements.

    `hold(array)`: the tensor that it slices. Elements of several shapes have no common array.
    """
    if len({str(each(lambda array: array.shape, one)) for one in elements}) == 1:
        return kind.from_tensor_slices(each(hold, _stacked(elements)))
    made = [kind.from_tensors(each(hold, one)) for one in elements]
    whole = made[0]
    for one in made[1:]:
        whole = whole.concatenate(one)
    return whole


def _stacked(elements):
    if isinstance(elements[0], tuple):
        return tuple(map(_stacked, zip(*elements)))
    if isinstance(elements[0], dict):
        return {name: np.stack([one[name] for one in elements]) for name in elements[0]}
    return np.stack(elements)


class Rows:
    """Arrays, or tensors of them: fit goes through all rows in a call; shapes take turns."""

    in_steps = False
    symbolic = ()

    def __init__(self, batches, rows, convert=None):
        convert = convert or (lambda array: array)
        size = batches[0].size
        self.next = cycle([batch.map(convert).columns for batch in batches]).__next__
        self.batches = 1
        if rows is None and not alike(batches):
            calls = [(batch.map(convert), batch.size) for batch in batches]
        else:
            rows = rows or joined(batches)
            calls = [(rows.map(convert), size)]
            self.batches = -(-rows.size // size)
        self._turns = cycle([dict(_named(r.columns), batch_size=n) for r, n in calls]).__next__

    def whole(self, steps=None):
        """All rows, or those whose turn it is."""
        del steps
        return dict(self._turns())


class Symbolic:
    """Tensors that Keras takes for those of a graph, computed anew in every step: each a batch."""

    in_steps = False
    batches = 1

    def __init__(self, backend, batches):
        self.symbolic = tuple(batch.map(backend.tensor).columns for batch in batches)
        self.next = self._turns = cycle(self.symbolic).__next__

    def whole(self, steps=None):
        """One batch, in each of so many steps."""
        return dict(_named(self._turns()), steps=steps or 1)


class Generated:
    """A Python generator without end."""

    in_steps = True
    batches = 1
    symbolic = ()

    def __init__(self, backend, batches):
        self._elements = [_yielded(backend, batch) for batch in batches]
        self.next = (batch.columns for batch in cycle(batches)).__next__

    def whole(self, steps=None):
        """A generator from the first batch on, and how many it is asked for."""
        return {"x": (one for one in cycle(self._elements)), "steps": steps}


class Sequenced:
    """A keras.utils.Sequence, which is a PyDataset in Keras 3."""

    in_steps = True
    batches = 1
    symbolic = ()

    def __init__(self, backend, batches):
        elements = [_yielded(backend, batch) for batch in batches]

        class Batches(backend.sequence()):
            def __init__(self, steps):
                super().__init__()
                self._steps = steps

            def __len__(self):
                return self._steps

            def __getitem__(self, index):
                return elements[index % len(elements)]

        self._sequence = Batches
        self._plain = not isinstance(elements[0], tuple)
        self._turns = cycle(range(len(batches))).__next__
        self._endless = Batches(len(batches))

    def next(self):
        """The next of its batches."""
        found = self._endless[self._turns()]
        return (found,) if self._plain else found

    def whole(self, steps=None):
        """One that is so long."""
        return {"x": self._sequence(steps)}


class Dataset:
    """A tf.data.Dataset without end; in graph mode, what its one iterator yields next."""

    in_steps = True
    batches = 1
    symbolic = ()

    def __init__(self, backend, dataset, plain):
        self._backend = backend
        self._dataset = dataset
        self._plain = plain
        if backend.executes_eagerly:
            self._iterator = None
        else:
            tensors = backend.next_of(dataset)
            self.symbolic = ((tensors,) if plain else tuple(tensors),)

    def next(self):
        """The next batch. It is pulled inside the timer: that is a cost of the user's."""
        if self.symbolic:
            return self.symbolic[0]
        if self._iterator is None:
            self._iterator = iter(self._dataset)
        found = next(self._iterator)
        return (found,) if self._plain else found

    def whole(self, steps=None):
        """The dataset, and how many batches it is asked for.

        Stand-alone Keras before 2.4 knows no datasets. It takes the tensors that an iterator
        yields, or, where the user's code has no graph to put these in, a generator.
        """
        if self._backend.fits_datasets:
            return {"x": self._dataset, "steps": steps}
        if self.symbolic:
            return dict(_named(self.symbolic[0]), steps=steps)
        return {"x": (batch for batch in self._dataset), "steps": steps}


def of(backend, source, batches, rows=None):
    """Batches in the form of the input `source`; `rows`: all, where they are more than these.

    Stopped (`unsupported`) where this Keras or framework has no such form.
    """
    if source in ("numpy", "given"):
        return Rows(batches, rows)
    if source == "tensor" and backend.slices_tensors:
        return Rows(batches, rows, backend.tensor)
    if source == "tensor":
        return Symbolic(backend, batches)
    if source == "generator":
        return Generated(backend, batches)
    if source == "sequence":
        return Sequenced(backend, batches)
    elements = [element(batch.columns) for batch in batches]
    dataset = backend.dataset(elements)
    if source == "dataset_cached":
        dataset = dataset.cache()
    dataset = dataset.repeat()
    if source == "dataset_prefetch":
        dataset = dataset.prefetch(2)
    return Dataset(backend, dataset, plain=len(batches[0].columns) == 1)


def refuse_many(backend, request, number):
    """Stopped where a call of fit cannot go through so many tensors of a graph."""
    many = request.method in ("fit", "evaluate", "predict") and number > 1
    if many and request.input == "tensor" and not backend.slices_tensors:
        raise Stopped(
            "unsupported",
            "batches",
            f"Here Keras takes a tensor for one of its graph, which is one batch: every step of "
            f"{request.method} computes all of it.",
        )
