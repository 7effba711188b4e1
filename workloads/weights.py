"""The same weights for every version: drawn by shape, set before anything is timed.

Versions of Keras list a model's weights in different orders: kernels before biases or after, those
that are not trained at the end or with their layer. So weights are drawn in an order that none of
that changes: by shape; of one shape by the layer that they belong to, in the model's order; of one
layer by the last part of their name (`beta`, `gamma`), which is the same everywhere. Where one
layer has several of one name and shape, as the two directions of a bidirectional one have, they are
drawn in its own order. The gates of recurrent layers lie in one order in every Keras.

What a layer computes with them may still have changed, and then the outputs tell. The gates of an
LSTM or GRU are a hard sigmoid in Keras 2.2 and in the tf.keras of TensorFlow 1, and a sigmoid from
Keras 2.3 and TensorFlow 2 on; a GRU of TensorFlow 2 also has two biases for one (`reset_after`),
so its weights have other shapes.
"""

from math import sqrt

import numpy as np

_SEED = 4  # after those of numpy, Python and TensorFlow


def set_same(model):
    """Give the model weights that are the same in every version that lays it out alike.

    Kernels are drawn with a deviation of one over the root of what they sum over, all others with
    .1; variances around one.
    """
    listed = list(model.weights)
    random = np.random.RandomState(_SEED)
    values = {}
    for shape, _, name, weight in sorted(_keyed(model, listed), key=lambda entry: entry[:3]):
        values[id(weight)] = _drawn(random, shape, name)
    model.set_weights([values[id(weight)] for weight in listed])


def _keyed(model, listed):
    """Shape, layer, name and weight of each of the model's weights."""
    owners = [*(layer.weights for layer in model.layers), listed]  # the model's own come last
    keyed = {}
    for number, weights in enumerate(owners):
        for weight in weights:
            shape = tuple(int(size) for size in weight.shape)
            # One that layers share is the first one's.
            keyed.setdefault(id(weight), (shape, number, _last_part(weight.name), weight))
    return keyed.values()


def _last_part(name) -> str:
    """`kernel`, out of `lstm/lstm_cell/kernel:0`."""
    return name.rpartition("/")[2].partition(":")[0]


def _drawn(random, shape, name):
    values = random.standard_normal(shape)
    if "variance" in name:
        return 1 + 0.1 * abs(values)
    axes = 2  # of a kernel, at least
    return values / sqrt(np.prod(shape[:-1])) if len(shape) >= axes else values * 0.1
