"""The only door to GPUs: NVML, the driver's own library, and the locks that runs hold on them.

`CUDA_VISIBLE_DEVICES` and containers take the UUIDs that are found here.
"""

from orchestrator.gpus.choosing import choose
from orchestrator.gpus.finding import Survey, find, state, survey
from orchestrator.gpus.holding import busy, lock, refuse_busy
from orchestrator.gpus.nvml import Nvml, library
from orchestrator.gpus.watching import Watcher

__all__ = [
    "Nvml",
    "Survey",
    "Watcher",
    "busy",
    "choose",
    "find",
    "library",
    "lock",
    "refuse_busy",
    "state",
    "survey",
]
