"""As much of numpy as the guest touches, for interpreters that have none."""

import random as _random
import struct
from types import SimpleNamespace
from typing import Any, List, Tuple

__version__ = "0.0.stub"


class Array:
    """Numbers in row-major order, and their shape."""

    def __init__(self, values: List[float], shape: Tuple[int, ...]) -> None:
        self.values = values
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> "Array":
        size = len(self.values) // len(self)
        return Array(self.values[index * size : (index + 1) * size], self.shape[1:])

    def copy(self) -> "Array":
        return Array(list(self.values), self.shape)

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
    return Array([float(_random.randrange(low, high)) for _ in range(_size(shape))], shape)


random = SimpleNamespace(seed=_random.seed, randn=_randn, randint=_randint)


def asarray(value: Array) -> Array:
    return value


def ascontiguousarray(value: Array, dtype: str) -> Array:
    assert dtype == "<f4"
    return value


def allclose(first: List[float], second: List[float], atol: float) -> Any:
    return all(abs(a - b) <= atol for a, b in zip(first, second))
