"""What happens on the GPUs while a job runs, seen at most twice a second."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Self

import pynvml

from orchestrator.gpus.finding import connected, read_state
from orchestrator.gpus.nvml import Nvml, ask, library, lost, processes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from orchestrator.model.gpu import GpuState

EVERY_S = 0.5
# Less than any process with a CUDA context takes, more than a GPU's memory moves by itself.
_GROWN_BYTES = 64 * 2**20


class Watcher:
    """Watches GPUs from its entry to its exit, on a thread of its own.

    Afterwards: `peak_bytes` by pid, of processes that were not there before (None for one whose
    memory the driver does not tell); `before`, `after` and `throttle` by UUID; `lost`, the UUID of
    a GPU that stopped answering. Entering raises EnvironmentFailedError when one already has.
    """

    def __init__(
        self, uuids: Sequence[str], *, nvml: Nvml | None = None, every_s: float = EVERY_S
    ) -> None:
        self.peak_bytes: dict[int, int | None] = {}
        self.before: dict[str, GpuState] = {}
        self.after: dict[str, GpuState] = {}
        self.throttle: dict[str, tuple[str, ...]] = {}
        self.lost: str | None = None
        self._nvml = nvml or library()
        self._every_s = every_s
        self._uuids = tuple(uuids)
        self._handles: dict[str, Any] = {}
        self._known: frozenset[int] = frozenset()
        self._lists = True
        self._used: list[int | None] = []  # bytes of all GPUs at every look, by anybody
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpu-watcher", daemon=True)
        self._stack = ExitStack()

    @property
    def gpu_bytes(self) -> int | None:
        """Most GPU memory that new processes held, 0 when there were none; None when unseen."""
        sizes = list(self.peak_bytes.values())
        if not self._lists or None in sizes:
            return None
        # In a container the driver often lists no process at all, whoever is at work.
        if not sizes and (None in self._used or max(self._held()) > _GROWN_BYTES):
            return None
        return sum(size for size in sizes if size is not None)

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(connected(self._nvml))
            for uuid in self._uuids:
                self._handles[uuid] = handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
                self.before[uuid] = self.after[uuid] = read_state(self._nvml, handle)
                self.throttle[uuid] = ()
            self._known = frozenset(self._processes())
            self._used.append(self._memory())
        except pynvml.NVMLError as error:
            self._stack.close()
            answered = len(self.before)
            raise lost(self._uuids[min(answered, len(self._uuids) - 1)]) from error
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self.lost is None:
            self._look()
        self._stack.close()

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            self._look()
            if self.lost is not None:
                return

    def _held(self) -> list[int]:
        """How much more than at first was used at every look."""
        told = [used for used in self._used if used is not None]
        return [used - told[0] for used in told]

    def _memory(self) -> int | None:
        found = [ask(self._nvml.nvmlDeviceGetMemoryInfo, one) for one in self._handles.values()]
        told = [memory.used for memory in found if memory is not None]
        return sum(told) if len(told) == len(found) else None

    def _look(self) -> None:
        with suppress(pynvml.NVMLError):  # whichever is lost is found below
            self._used.append(self._memory())
        for uuid, handle in self._handles.items():
            try:
                self.after[uuid] = now = read_state(self._nvml, handle)
                seen = self._processes()
            except pynvml.NVMLError:
                self.lost = uuid
                return
            seen_slow = (*self.throttle[uuid], *(now.throttle or ()))
            self.throttle[uuid] = tuple(dict.fromkeys(seen_slow))
            for pid, size in seen.items():
                if pid not in self._known:
                    most = self.peak_bytes.get(pid, 0)
                    told = size is not None and most is not None
                    self.peak_bytes[pid] = max(most or 0, size or 0) if told else None

    def _processes(self) -> dict[int, int | None]:
        """Bytes by pid over all GPUs."""
        found: dict[int, int | None] = {}
        for handle in self._handles.values():
            listed = processes(self._nvml, handle)
            if listed is None:
                self._lists = False
            for process in listed or ():
                size, so_far = process.usedGpuMemory, found.get(process.pid, 0)
                found[process.pid] = None if size is None or so_far is None else size + so_far
        return found
