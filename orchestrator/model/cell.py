"""Arms and cases, and the names by which people select them."""

from __future__ import annotations

import msgspec

from orchestrator.model.names import Api, Device, Input, Method, Mode


class Arm(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What is compared: environment, api, mode, and the workload file when two are given."""

    environment: str
    api: Api
    mode: Mode
    workload: str | None = None

    @property
    def name(self) -> str:
        """`tf20/tf.keras/eager`."""
        end = f"/{self.workload}" if self.workload else ""
        return f"{self.environment}/{self.api}/{self.mode}{end}"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is held equal. The numbers belong to the names: they come from `grid.toml`.

    A user's own workload has the file's name as `model` (`workload` when several are raced, each
    an arm), and as `data` its batch shape, or `default`. `knobs` are those that are not default;
    the guest applies them, so the numbers below are those before any knob.
    """

    model: str
    data: str
    input: Input
    method: Method
    device: Device = "cpu"
    knobs: dict[str, str] = {}
    batch_shape: tuple[int, ...]
    batches: int  # distinct batches that a dataset repeats
    iterations: int  # asked for, before the job's time limit cuts them
    warmup: int
    parameters: int | None = None  # what the model must have, whatever the data's size

    @property
    def size(self) -> str:
        """`small-small`: model, then data."""
        return f"{self.model}-{self.data}"

    @property
    def name(self) -> str:
        """`small-small/numpy/fit`, with `@gpu` and `+knob=value` where they are not default."""
        plain = f"{self.size}/{self.input}/{self.method}"
        if self.device != "cpu":
            plain = f"{plain}@{self.device}"
        if not self.knobs:  # as nearly all of a grid's thousands
            return plain
        return plain + "".join(f"+{key}={value}" for key, value in sorted(self.knobs.items()))


def split_knobs(text: str) -> dict[str, str]:
    """`{"batch_size": "64", "threads": "1"}` of `batch_size=64+threads=1`; empty for none."""
    parts = (part.partition("=") for part in text.split("+") if part)
    return {name: value for name, _, value in parts}
