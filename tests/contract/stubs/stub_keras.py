"""A Keras that computes nothing: `STUB_BEHAVIOUR` says what its training does instead."""

import builtins
import os
import sys
import time
from types import SimpleNamespace
from typing import Any, Callable, List

from base_layer import Layer  # type: ignore[import-not-found]
from numpy import Array  # type: ignore[attr-defined]

REFUSAL = "tf.placeholder() is not compatible with eager execution."


def fail_to_import(variable: str) -> None:
    """Raise the exception that the variable names, if it does."""
    if variable in os.environ:
        raise getattr(builtins, os.environ[variable])("broken on purpose")


def _train() -> float:
    behaviour = os.environ.get("STUB_BEHAVIOUR", "")
    time.sleep(float(os.environ.get("STUB_SECONDS", "0.0005")))  # no call of a real one is shorter
    if behaviour == "refuse":
        raise RuntimeError(REFUSAL)
    if behaviour == "raise":
        raise ValueError("broken on purpose")
    if behaviour == "gpu_lost":
        raise type("InternalError", (Exception,), {})("CUDA_ERROR_NO_DEVICE: none is detected")
    if behaviour == "gpu_full":
        raise type("InternalError", (Exception,), {})("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
    if behaviour == "no_memory":
        raise MemoryError
    if behaviour == "exit":
        os._exit(3)
    if behaviour == "leave":
        raise SystemExit(4)
    if behaviour == "hang":
        time.sleep(3600)
    return float("nan") if behaviour == "nan" else 0.5


def _device() -> str:
    """Where weights and outputs are, whatever devices are listed."""
    return "/job:localhost/task:0/device:%s:0" % os.environ.get("STUB_PLACED", "CPU")


class _Callback:
    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Nothing."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Nothing."""


class _Model:
    def __init__(self, inputs: Layer, outputs: Layer) -> None:
        self.layers = [inputs, outputs]
        dtype = SimpleNamespace(base_dtype=SimpleNamespace(name="float32"))
        self.inputs = [SimpleNamespace(dtype=dtype)]
        self.weights = [SimpleNamespace(dtype=dtype, device=_device())]
        self.optimizer: Any = None

    def __call__(self, x: Any) -> Any:
        return SimpleNamespace(device=_device())

    def compile(self, optimizer: Any, loss: str) -> None:
        assert loss == "binary_crossentropy"
        self.optimizer = optimizer

    def count_params(self) -> int:
        return 609

    def train_on_batch(self, x: Array, y: Array) -> float:
        assert len(x) == len(y)
        self.layers[-1](x)
        return _train()

    def fit(self, *_: Any, steps_per_epoch: int = 1, callbacks: Any = (), **__: Any) -> Any:
        loss = 0.0
        if callbacks and os.environ.get("STUB_BROKEN") == "steps":
            raise ValueError("no callbacks")
        for step in range(steps_per_epoch):
            for callback in callbacks:
                callback.on_batch_begin(step)
            loss = _train()
            for callback in callbacks:
                callback.on_batch_end(step)
        return SimpleNamespace(history={"loss": [loss]})

    def test_on_batch(self, x: Array, y: Array) -> float:
        assert len(x) == len(y)
        return _train()

    def evaluate(self, *_: Any, **__: Any) -> float:
        return _train()

    def predict(self, *_: Any, **__: Any) -> Array:
        _train()
        return Array([0.25], (1, 1))

    def predict_on_batch(self, x: Array) -> Array:
        broken = os.environ.get("STUB_BROKEN")
        if broken == "outputs":
            raise ValueError("no outputs")
        if broken == "end":
            os._exit(1)
        if broken == "fingerprint":
            sys.path.append(object())  # type: ignore[arg-type]
        return Array([0.25] * len(x), (len(x), 1))

    def save(self, path: str) -> None:
        with open(path, "w", encoding="ascii") as file:
            file.write("saved")


def make(module: str, version: str, optimizers: str, clear: Callable[[], None]) -> Any:
    """A Keras whose module has this name, and whose optimizers stand in that one."""
    adam = type("Adam", (), {"__init__": lambda self, rate: None, "__module__": optimizers})
    loaded: List[_Model] = []

    def load_model(path: str) -> _Model:
        assert os.path.exists(path)
        loaded.append(_Model(Layer(), Layer()))
        return loaded[-1]

    return {
        "__name__": module,
        "__version__": version,
        "backend": SimpleNamespace(
            clear_session=clear,
            floatx=lambda: "float32",
            image_data_format=lambda: "channels_last",
        ),
        "callbacks": SimpleNamespace(Callback=_Callback),
        "layers": SimpleNamespace(
            Conv1D=Layer,
            Dense=Layer,
            Dropout=Layer,
            GlobalAveragePooling1D=Layer,
            Input=Layer,
            Layer=Layer,
        ),
        "models": SimpleNamespace(Model=_Model, load_model=load_model),
        "optimizers": SimpleNamespace(Adam=adam),
        "utils": SimpleNamespace(Sequence=object),
    }
