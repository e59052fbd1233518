"""The device that calls run on, as far as a timer needs it: drain it and clear its cache."""

from __future__ import annotations

import contextlib
import ctypes
import time
from typing import Any, Protocol

FLUSH_BYTES_MIN = 256 * 1024 * 1024
# How long a device has been idle decides how fast it starts. On an H200 a call 65 us after the
# flush took 0.4 to 0.8 % longer than one that came at once, and from 200 us on it made no
# difference any more (docs/decisions/0005-windows-and-passes.md).
SETTLE_S = 200e-6


class Device(Protocol):
    """Where the timed calls run."""

    index: int

    def drain(self) -> None:
        """Wait until the device has nothing left to do."""

    def clear_cache(self) -> None:
        """Start clearing L2; does not wait."""

    def settle(self) -> None:
        """Leave the drained device idle until it no longer matters how long it has been so."""

    def alive(self) -> bool:
        """Whether the device still answers; a CUDA error can poison a whole process."""


class HostDevice:
    """The CPU: calls are done when they return, and no cache is cleared."""

    index = -1

    def drain(self) -> None:
        """There is nothing to wait for."""

    def clear_cache(self) -> None:
        """The host's caches are left as they are; the series says so (cache state warm)."""

    def settle(self) -> None:
        """A host is at its work at once."""

    def alive(self) -> bool:
        """The host that runs this lives."""
        return True


class CudaDevice:
    """A CUDA device, by way of torch; in a worker only one is visible.

    Args:
        index: as torch numbers it. It is made the current device.
    """

    def __init__(self, index: int = 0) -> None:
        import torch

        self.index = index
        self._torch: Any = torch
        torch.cuda.set_device(self.index)
        l2_bytes = int(torch.cuda.get_device_properties(self.index).L2_cache_size)
        self._scratch = torch.empty(max(FLUSH_BYTES_MIN, 2 * l2_bytes), dtype=torch.int8, device="cuda")
        # A persisting-L2 policy would survive the flush (torch does not expose this call).
        self._reset_persisting = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache

    def drain(self) -> None:
        """Wait for every stream of the measured device."""
        self._torch.cuda.synchronize(self.index)

    def clear_cache(self) -> None:
        """Zero a buffer of at least 256 MB and twice L2, and reset persisting lines."""
        self._reset_persisting()
        self._scratch.zero_()

    def settle(self) -> None:
        """Spin: a host that sleeps launches late when it wakes."""
        until = time.perf_counter() + SETTLE_S
        while time.perf_counter() < until:
            pass

    def alive(self) -> bool:
        """Whether a synchronisation still succeeds."""
        with contextlib.suppress(RuntimeError):
            self.drain()
            return True
        return False
