"""Memory: how much is free, what a forward needs, and what a piece of work took at its peak.

`live_bytes` counts exactly: it watches every operation and keeps the total of the storages alive that were made since.
That costs some microseconds an operation, so it is used once, on the clean run, whose peak is what one row of a batch
needs at most. `peak_memory` is what a whole sweep is reported with: the allocator's own count on a GPU; on the CPU the
resident memory of the process, sampled.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

_STATM = Path("/proc/self/statm")
_MEMINFO = Path("/proc/meminfo")
_INTERVAL = 0.002


def free_bytes(device: torch.device) -> int:
    """Memory that is free on `device`, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        # macOS has no count of available pages in sysconf; half of all memory is a cautious guess.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def default_budget(device: torch.device) -> int:
    """A quarter of the free memory of `device`, in bytes."""
    return free_bytes(device) // 4


@dataclass
class Peak:
    """Bytes at the peak above the start; None where they cannot be told."""

    bytes: int | None = None


class _LiveBytes(TorchDispatchMode):
    def __init__(self, peak: Peak) -> None:
        super().__init__()
        self.peak = peak
        self.live = 0
        self.known: set[int] = set()

    def _release(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.live -= size

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {t.untyped_storage()._cdata for t in tree_iter((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in self.known and key not in before:
                    self.known.add(key)
                    self.live += size
                    weakref.finalize(storage, self._release, key, size)
        self.peak.bytes = max(self.peak.bytes or 0, self.live)
        return result


@contextmanager
def live_bytes() -> Iterator[Peak]:
    """Count the bytes of all tensors made inside, exactly, whatever the device."""
    peak = Peak(0)
    with _LiveBytes(peak):
        yield peak


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Watch what the work inside takes at its peak beyond what was in use before."""
    peak = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        try:
            yield peak
        finally:
            peak.bytes = torch.cuda.max_memory_allocated(device) - before
        return
    if not _STATM.exists():
        yield peak
        return
    stop = threading.Event()
    before = highest = _resident()

    def sample() -> None:
        nonlocal highest
        while not stop.wait(_INTERVAL):
            highest = max(highest, _resident())

    thread = threading.Thread(target=sample, name="nnsight-lab-memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()
        peak.bytes = max(highest, _resident()) - before


def _resident() -> int:
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
