"""The timers: each its own series, never mixed, never silently replaced.

A timer is used in one order: ``warm`` as often as wanted, then ``begin``, ``time`` once an
iteration, and ``finish``, which gives one sample an iteration or an error, never less.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from collector.attribution import PREPARE_ID, LaunchShape, attribute
from collector.errors import CuptiError, TimerFloorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.cupti_session import CuptiSession
    from collector.device import Device
    from collector.records import Trace

CUPTI_TICK_MS = 32e-6  # timestamps of an H200 lie on a 32 ns grid
EVENT_RESOLUTION_MS = (
    0.5e-3  # "a resolution of around 0.5 microseconds" (CUDA runtime API, cudaEventElapsedTime)
)
EVENT_FLOOR_MS = 10e-3  # shorter calls are repeated inside one timed region
EVENT_REPS_MAX = 1000


@dataclass(frozen=True)
class Timings:
    """One window's samples as a timer gives them; lists it cannot give are empty.

    Attributes:
        resolution_ms: time quantum of one sample.
        cold: whether every timed call found a cleared cache.
    """

    quantity: str
    samples_ms: list[float]
    resolution_ms: float
    cold: bool
    inner_reps: int = 1
    latency_ms: tuple[float, ...] = ()
    sum_ms: tuple[float, ...] = ()
    copy_ms: tuple[float, ...] = ()
    n_kernels: tuple[int, ...] = ()
    launches: tuple[tuple[LaunchShape, int], ...] = ()


class Timer(Protocol):
    """How calls are timed.

    Attributes:
        warmup_calls_min: the fewest calls that warm it up.
        settles: whether the device is left idle for a moment before each call. Events would count
            what it takes to wake up again.
    """

    warmup_calls_min: int
    settles: bool

    def preparing(self) -> contextlib.AbstractContextManager[None]:
        """What happens inside belongs to no iteration."""

    def begin(self, iterations: int, call: Callable[[], object]) -> None:
        """Get ready for so many timed calls."""

    def time(self, iteration: int, call: Callable[[], object]) -> None:
        """Make the call once, timed, and leave the device drained."""

    def finish(self) -> Timings:
        """The samples of all iterations since ``begin``."""

    def enlarge(self) -> None:
        """Make more room, after records were lost."""


class CuptiTimer:
    """Device time from CUPTI's kernel records, attributed by external correlation id.

    Args:
        session: a started session.
        count_copies: copies and memsets count as work of the call.
        any_thread: kernels may be launched by other threads.
        cold: the cache is cleared before each call.
    """

    warmup_calls_min = 10
    settles = True

    def __init__(
        self, session: CuptiSession, device: Device, *, count_copies: bool, any_thread: bool, cold: bool
    ) -> None:
        self._session = session
        self._device = device
        self._count_copies = count_copies
        self._any_thread = any_thread
        self._cold = cold
        self._bounds: list[tuple[int, int]] = []
        self.trace: Trace | None = None  # the last window's records, for those who keep evidence
        # Records of set-up and warm-up would only be thrown away, at 0.1 ms an iteration.
        session.pause()

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Preparation runs under an id of its own, so that it is known and never counted."""
        self._session.push(PREPARE_ID)
        try:
            yield
        finally:
            self._session.pop()

    def begin(self, iterations: int, call: Callable[[], object]) -> None:
        """Record from here on; counts and calls do not matter here.

        Raises:
            CuptiError: PyTorch's profiler is recording in this process.
        """
        del iterations, call
        _refuse_torch_profiler()
        self._session.resume()
        self._session.discard()
        self._bounds = []

    def time(self, iteration: int, call: Callable[[], object]) -> None:
        """Make the call under its iteration number."""
        begin = self._session.now()
        self._session.push(iteration)
        try:
            call()
        finally:
            self._session.pop()
        self._device.drain()
        self._bounds.append((begin, self._session.now()))

    def finish(self) -> Timings:
        """Read the records once and give every kernel to its iteration.

        Raises:
            TimingError: in all the ways of ``attribution.attribute``.
        """
        trace = self._session.take()
        self._session.pause()
        trace.bounds = self._bounds
        self.trace = trace
        attributed = attribute(
            trace,
            iterations=len(self._bounds),
            device_id=self._device.index,
            any_thread=self._any_thread,
            count_copies=self._count_copies,
        )
        samples = attributed.samples
        headline = [s.busy_and_copies_ms if self._count_copies else s.busy_ms for s in samples]
        return Timings(
            quantity="device_busy_and_copies" if self._count_copies else "device_busy",
            samples_ms=headline,
            resolution_ms=CUPTI_TICK_MS,
            cold=self._cold,
            latency_ms=tuple(s.latency_ms for s in samples),
            sum_ms=tuple(s.sum_ms for s in samples),
            copy_ms=tuple(s.copy_ms for s in samples),
            n_kernels=tuple(s.n_kernels for s in samples),
            launches=attributed.launches,
        )

    def enlarge(self) -> None:
        """Ask for four times the buffer from here on."""
        self._session.buffer_bytes *= 4


def _refuse_torch_profiler() -> None:
    """Two listeners would take each other's records."""
    profiler = sys.modules.get("torch.autograd.profiler")
    if getattr(profiler, "_is_profiler_enabled", False):
        raise CuptiError(
            "torch.profiler records in this process and would take CUPTI's records: end it before the "
            "benchmark returns its call"
        )


class EventTimer:
    """CUDA events around the call: what it reads includes launch gaps, never compare it with CUPTI.

    Calls shorter than 10 us are repeated inside one timed region and divided; the calls
    after the first find a warm cache then, and the series says so.

    Args:
        cold: the cache is cleared before each timed region.
        floor_ms: shorter calls than this are repeated.
    """

    warmup_calls_min = 200
    settles = False

    def __init__(self, device: Device, *, cold: bool, floor_ms: float = EVENT_FLOOR_MS) -> None:
        import torch

        event: Any = torch.cuda.Event
        self._new_event: Callable[[], Any] = lambda: event(enable_timing=True)
        self._device = device
        self._cold = cold
        self._floor_ms = floor_ms
        self._reps = 1
        self._probed = False
        self._events: list[tuple[Any, Any]] = []
        self._used = 0

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Events know nothing of preparation: it lies outside the timed region."""
        yield

    def begin(self, iterations: int, call: Callable[[], object]) -> None:
        """Probe once whether the call must be repeated, and make all events before the loop."""
        if not self._probed:
            self._probed = True
            start, end = self._new_event(), self._new_event()
            start.record()
            call()
            end.record()
            self._device.drain()
            self._reps = inner_repetitions(float(start.elapsed_time(end)), self._floor_ms)
        self._events = [(self._new_event(), self._new_event()) for _ in range(iterations)]
        self._used = 0

    def time(self, iteration: int, call: Callable[[], object]) -> None:
        """Make the call between two events."""
        start, end = self._events[iteration]
        start.record()
        for _ in range(self._reps):
            call()
        end.record()
        self._device.drain()
        self._used = iteration + 1

    def finish(self) -> Timings:
        """Read the events.

        Raises:
            TimerFloorError: an event pair read no time.
        """
        samples = [float(start.elapsed_time(end)) / self._reps for start, end in self._events[: self._used]]
        return Timings(
            quantity="elapsed",
            samples_ms=_positive(samples, "CUDA events"),
            resolution_ms=EVENT_RESOLUTION_MS / self._reps,
            cold=self._cold and self._reps == 1,
            inner_reps=self._reps,
        )

    def enlarge(self) -> None:
        """Events are never lost: there is nothing to enlarge."""


def inner_repetitions(single_ms: float, floor_ms: float) -> int:
    """Calls in one timed region, so that events can resolve it; a probe of zero asks for the most."""
    if not single_ms > 0:
        return EVENT_REPS_MAX
    return min(EVENT_REPS_MAX, max(1, math.ceil(floor_ms / single_ms)))


class WallTimer:
    """The host clock around a synchronised call, for machines without a GPU: always tier C."""

    warmup_calls_min = 10
    settles = False

    def __init__(self, device: Device, *, cold: bool) -> None:
        self._device = device
        self._cold = cold
        self._samples: list[float] = []

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """Preparation lies outside the timed region."""
        yield

    def begin(self, iterations: int, call: Callable[[], object]) -> None:
        """Start a new list of samples; nothing else needs to be made ready."""
        del iterations, call
        self._samples = []

    def time(self, iteration: int, call: Callable[[], object]) -> None:
        """Read the clock, make the call, wait for it, read the clock."""
        del iteration
        begin = time.perf_counter_ns()
        call()
        self._device.drain()
        self._samples.append((time.perf_counter_ns() - begin) / 1e6)

    def finish(self) -> Timings:
        """The differences.

        Raises:
            TimerFloorError: the clock did not move.
        """
        return Timings(
            quantity="elapsed",
            samples_ms=_positive(self._samples, "the host clock"),
            resolution_ms=time.get_clock_info("perf_counter").resolution * 1e3,
            cold=self._cold,
        )

    def enlarge(self) -> None:
        """The clock is never lost: there is nothing to enlarge."""


def _positive(samples: list[float], clock: str) -> list[float]:
    for index, sample in enumerate(samples):
        if not sample > 0:
            raise TimerFloorError(
                f"{clock} read {sample} ms in iteration {index}: the call is shorter than this timer can see"
            )
    return samples
