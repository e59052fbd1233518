"""The one place that talks to CUPTI.

One session lives as long as its process: callbacks are registered once, the activity kinds
are enabled before the first warm-up and disabled, with a last flush, before the process
ends (a process that exits with kinds enabled crashes). ``finalize`` is never called.
"""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any

from collector.errors import AttributionError, CuptiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.records import Trace

BUFFER_BYTES = 256 * 1024
# No buffer at all, so that every record is lost: proves that the drop counter counts. A buffer
# of 1 to 64 bytes crashes CUPTI 13.0 (seen on an H200, driver 580, cupti-python 13.0.1).
NO_BUFFER_BYTES = 0
_FLUSH_FORCED = 1
_MULTIPLE_SUBSCRIBERS = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
_KINDS = (
    "CONCURRENT_KERNEL",
    "MEMCPY",
    "MEMCPY2",
    "MEMSET",
    "EXTERNAL_CORRELATION",
    "RUNTIME",
    "DRIVER",
    "OVERHEAD",
    "JIT",
)
# External correlation records come only for API calls that are recorded, and every recorded
# call costs host time between kernels: record what launches, copies, allocates or loads.
_RECORDED_APIS = re.compile(
    r"Launch|Memcpy|Memset|Malloc|MemAlloc|MemCreate|MemFree|cudaFree|ModuleLoad|LibraryLoad"
)


class CuptiSession:
    """Records the activity of this process between ``start`` and ``stop``.

    Raises:
        CuptiError: from the constructor or ``start``, when CUPTI cannot be used here.
    """

    def __init__(self) -> None:
        try:
            from cupti import cupti
        except ImportError as error:
            raise CuptiError(
                f"{error}: install cupti-python beside the code under test, or choose another timer"
            ) from error
        from collector.cupti_records import RecordShelf  # needs NumPy, as cupti-python itself does

        self._cupti: Any = cupti
        self._id_kind = cupti.ExternalCorrelationKind.CUSTOM0
        self._kinds = [getattr(cupti.ActivityKind, name) for name in _KINDS]
        self._shelf = RecordShelf(cupti, self._id_kind)
        self._dropped_readable = False
        self.buffer_bytes = BUFFER_BYTES
        self._enabled = False
        self._recording = False
        self._reading = True

    def start(self) -> None:
        """Register the callbacks and enable recording; call it before the first warm-up."""
        try:
            self._cupti.activity_register_callbacks(self._buffer_requested, self._buffer_completed)
            for kind in self._kinds:
                self._cupti.activity_enable(kind)
        except (RuntimeError, self._cupti.cuptiError) as error:
            self.stop()
            raise CuptiError(
                f"CUPTI cannot record in this process: {error}. Another profiler in it or around it "
                "(nsys, ncu, torch.profiler) must go, and the driver must be of CUDA 13"
            ) from error
        self._enabled = self._recording = True
        self._choose_apis()

    def stop(self) -> None:
        """Flush and disable; safe to call twice."""
        for kind in reversed(self._kinds):
            try:
                self._cupti.activity_disable(kind)
            except (RuntimeError, self._cupti.cuptiError):
                continue  # it was never enabled
        if self._enabled:
            self._enabled = False
            self._cupti.activity_flush_all(_FLUSH_FORCED)

    def pause(self) -> None:
        """Stop recording for a while; the kinds stay instrumented, so ``resume`` costs about 1.5 ms."""
        if not self._recording:
            return
        self._recording = False
        for kind in reversed(self._kinds):
            self._cupti.activity_disable(kind)

    def resume(self) -> None:
        """Record again after ``pause``."""
        self._recording = True
        for kind in self._kinds:
            self._cupti.activity_enable(kind)
        self._choose_apis()

    def prove_drop_counter(self, launch: Callable[[], object]) -> bool:
        """Whether the counter of dropped records moves when no record can be kept.

        Args:
            launch: launches kernels and waits for them.
        """
        self.buffer_bytes = NO_BUFFER_BYTES
        try:
            launch()
            self._cupti.activity_flush_all(_FLUSH_FORCED)
            return self._read_dropped() > 0
        finally:
            self.buffer_bytes = BUFFER_BYTES

    def refuse_other_subscriber(self) -> None:
        """Look whether another profiler holds CUPTI's callbacks.

        One that does may take our records, or add time of its own, at any moment. Whatever
        else the question is answered with says nothing about others.

        Raises:
            CuptiError: one does.
        """
        try:
            mine = self._cupti.subscribe(lambda *_: None, None)
        except (RuntimeError, self._cupti.cuptiError) as error:
            if getattr(error, "status", None) == _MULTIPLE_SUBSCRIBERS:
                raise CuptiError(
                    f"another profiler is at work in this process: {error}. Do not start collect under "
                    "nsys, ncu or cuda-gdb, and do not use torch.profiler in a suite"
                ) from error
            return
        self._cupti.unsubscribe(mine)

    def trust_drop_counter(self, *, proven: bool) -> None:
        """Whether ``take`` reports losses as a number or as unknown."""
        self._dropped_readable = proven

    def push(self, external_id: int) -> None:
        """What this thread launches from here on carries ``external_id``."""
        self._cupti.activity_push_external_correlation_id(self._id_kind, external_id)

    def pop(self) -> None:
        """End the innermost ``push``.

        Raises:
            AttributionError: there is none left, so the call has ended ours.
        """
        try:
            self._cupti.activity_pop_external_correlation_id(self._id_kind)
        except (RuntimeError, self._cupti.cuptiError) as error:
            raise AttributionError(
                f"the timer's external id is gone ({error}): the call pops ids of CUPTI's kind CUSTOM0, "
                "which the timer needs; use CUSTOM1 or CUSTOM2"
            ) from error

    def now(self) -> int:
        """CUPTI's clock, in nanoseconds."""
        return int(self._cupti.get_timestamp())

    def discard(self) -> None:
        """Forget what was recorded so far, without the cost of reading it."""
        self._reading = False
        try:
            self.take()
        finally:
            self._reading = True

    def take(self) -> Trace:
        """Everything recorded since the last call; the device must be drained."""
        self._cupti.activity_flush_all(_FLUSH_FORCED)
        trace = self._shelf.take()
        dropped = self._read_dropped()
        trace.dropped = dropped if dropped or self._dropped_readable else None
        return trace

    def _read_dropped(self) -> int:
        counter = ctypes.c_size_t(0)
        self._cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(counter))
        return counter.value

    def _choose_apis(self) -> None:
        """Enabling an API kind records every call; keep only those that matter."""
        for enum, enable in (
            (self._cupti.runtime_api_trace_cbid, self._cupti.activity_enable_runtime_api),
            (self._cupti.driver_api_trace_cbid, self._cupti.activity_enable_driver_api),
        ):
            for member in enum:
                try:
                    enable(int(member), int(bool(_RECORDED_APIS.search(member.name))))
                except (RuntimeError, self._cupti.cuptiError):
                    continue  # INVALID, SIZE and calls that this driver does not know

    def _buffer_requested(self) -> tuple[int, int]:
        return self.buffer_bytes, 0

    def _buffer_completed(self, records: list[Any]) -> None:
        if self._reading:
            self._shelf.keep(records)
