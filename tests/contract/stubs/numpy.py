"""As much of numpy as the guest touches, for interpreters that have none."""

import random as _random
import struct
from types import SimpleNamespace
from typing import Any, List, Sequence, Tuple

__version__ = "0.0.stub"


class Array:
    """Numbers in row-major order, and their shape."""

    def __init__(self, values: List[float], shape: Tuple[int, ...], dtype: str = "float64") -> None:
        self.values = values
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        size = len(self.values) // len(self)
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            values = self.values[start * size : stop * size]
            return Array(values, (stop - start, *self.shape[1:]), self.dtype)
        if self.ndim == 1:
            return self.values[index]
        values = self.values[index * size : (index + 1) * size]
        return Array(values, self.shape[1:], self.dtype)

    def copy(self) -> "Array":
        return Array(list(self.values), self.shape, self.dtype)

    def astype(self, dtype: str) -> "Array":
        return Array(list(self.values), self.shape, dtype)

    def ravel(self) -> "Array":
        return Array(self.values, (len(self.values),), self.dtype)

    def tolist(self) -> List[float]:
        assert self.ndim == 1
        return list(self.values)

    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    def std(self) -> float:
        return float(max(self.values) - min(self.values))

    def min(self) -> float:
        return min(self.values)

    def max(self) -> float:
        return max(self.values)

    def tobytes(self) -> bytes:
        return struct.pack(f"<{len(self.values)}f", *self.values)


def _size(shape: Tuple[int, ...]) -> int:
    total = 1
    for length in shape:
        total *= length
    return total


def _randn(*shape: int) -> Array:
    return Array([_random.gauss(0, 1) for _ in range(_size(shape))], shape)


def _randint(low: int, high: int, shape: Tuple[int, ...]) -> Array:
    values = [float(_random.randrange(low, high)) for _ in range(_size(shape))]
    return Array(values, shape, "int64")


def _uniform(low: float, high: float, shape: Tuple[int, ...]) -> Array:
    return Array([_random.uniform(low, high) for _ in range(_size(shape))], shape)


class RandomState:
    """Numbers of its own, by a seed of its own."""

    def __init__(self, seed: int) -> None:
        self._random = _random.Random(seed)

    def randn(self, *shape: int) -> Array:
        return Array([self._random.gauss(0, 1) for _ in range(_size(shape))], shape)


random = SimpleNamespace(
    RandomState=RandomState, seed=_random.seed, randn=_randn, randint=_randint, uniform=_uniform
)


def copy(value: Array) -> Array:
    return value.copy()


def stack(arrays: Sequence[Array]) -> Array:
    values = [number for array in arrays for number in array.values]
    return Array(values, (len(arrays), *arrays[0].shape), arrays[0].dtype)


def concatenate(arrays: Sequence[Array]) -> Array:
    rows = sum(map(len, arrays))
    return Array(stack(arrays).values, (rows, *arrays[0].shape[1:]), arrays[0].dtype)


def asarray(value: Array) -> Array:
    return value


def ascontiguousarray(value: Array, dtype: str) -> Array:
    assert dtype == "<f4"
    return value


def allclose(first: List[float], second: List[float], atol: float) -> Any:
    return all(abs(a - b) <= atol for a, b in zip(first, second))
