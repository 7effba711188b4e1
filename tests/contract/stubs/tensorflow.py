"""As much of TensorFlow 2.0 as the guest touches."""

import os
import sys
from types import SimpleNamespace
from typing import Any, Iterator, List

import stub_keras  # type: ignore[import-not-found]
from numpy import Array  # type: ignore[attr-defined]

stub_keras.fail_to_import("STUB_IMPORT")

__version__ = os.environ.get("STUB_TENSORFLOW", "2.0.0")

_eager = [True]


class _Dataset:
    def __init__(self, batches: List[Any]) -> None:
        self._batches = batches

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> "_Dataset":
        if isinstance(tensors, Array):
            return cls([tensors[index] for index in range(len(tensors))])
        rows = range(len(tensors[0]))
        return cls([tuple(column[index] for column in tensors) for index in rows])

    @classmethod
    def from_tensors(cls, tensors: Any) -> "_Dataset":
        return cls([tensors])

    def concatenate(self, other: "_Dataset") -> "_Dataset":
        return _Dataset([*self._batches, *other.batches()])

    def batches(self) -> List[Any]:
        return self._batches

    def cache(self) -> "_Dataset":
        return self

    def repeat(self) -> "_Dataset":
        return self

    def prefetch(self, size: int) -> "_Dataset":
        assert size > 0
        return self

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self._batches


def _nothing(*_: Any) -> None:
    """Do nothing."""


def _devices() -> List[Any]:
    kind = os.environ.get("STUB_DEVICE", "CPU")
    return [SimpleNamespace(name=f"/physical_device:{kind}:0", device_type=kind)]


def constant(value: Array, dtype: Any = None) -> Array:
    return value


def _run_metadata() -> Any:
    """Statistics of a step whose operations ran where `STUB_RAN` says."""
    devices = [
        SimpleNamespace(
            device="/job:localhost/replica:0/task:0/device:%s:0" % device,
            node_stats=[
                SimpleNamespace(node_name="MatMul", timeline_label="dense/MatMul = MatMul(x, w)"),
                SimpleNamespace(node_name="_SOURCE", timeline_label="_SOURCE = NoOp()"),
            ],
        )
        for device in os.environ.get("STUB_RAN", "").split()
    ]
    return SimpleNamespace(step_stats=SimpleNamespace(dev_stats=devices))


def executing_eagerly() -> bool:
    return _eager[0]


keras = SimpleNamespace(
    **stub_keras.make(
        "tensorflow.keras",
        "2.2.4-tf",
        os.environ.get("STUB_OPTIMIZERS", "tensorflow.python.keras.optimizer_v2.adam"),
        _nothing,
    )
)
compat = SimpleNamespace(
    v1=SimpleNamespace(
        disable_eager_execution=lambda: _eager.__setitem__(0, False),
        get_default_graph=object,
        reset_default_graph=_nothing,
    )
)
config = SimpleNamespace(
    experimental=SimpleNamespace(list_physical_devices=_devices),
    threading=SimpleNamespace(
        get_intra_op_parallelism_threads=lambda: 0,
        get_inter_op_parallelism_threads=lambda: 0,
    ),
)
data = SimpleNamespace(Dataset=_Dataset)
random = SimpleNamespace(set_seed=_nothing)
sysconfig = SimpleNamespace(get_build_info=lambda: {"cuda_version": "10.0", "cudnn_version": "7"})
test = SimpleNamespace(is_built_with_cuda=lambda: False)
sys.modules["tensorflow.python.eager.context"] = SimpleNamespace(  # type: ignore[assignment]
    enable_run_metadata=_nothing,
    export_run_metadata=_run_metadata,
    disable_run_metadata=_nothing,
)
version = SimpleNamespace(GIT_VERSION="v2.0.0-stub", COMPILER_VERSION="7.3.1")
