"""``bench_kernel``: device time of each call from CUPTI's kernel records."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.calls import Call
from collector.errors import AttributionError, CorruptRecordError, CuptiError, RecordsLostError
from collector.instrument.holding import held_window, pacer_after
from collector.instrument.machine import claimed_gpu
from collector.instrument.policies import UnlockedClockPolicy
from collector.instrument.recording import recording_session
from collector.instrument.results import CUDA_EVENTS, CUPTI, Sample, busy_median_ms, cache_state
from collector.pacing import Pacer
from collector.timers import CuptiTimer, EventTimer
from collector.window import Budget, Rig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.instrument.machine import Gpu
    from collector.instrument.policies import ClockPolicy
    from collector.timers import Timer
    from collector.window import MeasuredWindow

COPY_SHARE_MAX = 0.01  # copies of more than this share of the busy time are pointed out
_CUPTI_GAVE_NOTHING = (CuptiError, RecordsLostError, CorruptRecordError, AttributionError)


@dataclass(frozen=True, kw_only=True)
class Method:
    """How calls are timed; for the fields see ``bench_kernel``."""

    budget: Budget
    iterations: int | None
    flush_l2: bool
    count_copies: bool
    launches_from_any_thread: bool
    allow_events: bool
    warmup_share: float = 1.0  # of the timer's least number of warm-up calls

    def __post_init__(self) -> None:
        if self.iterations is not None and self.iterations < 1:
            raise ValueError(f"iterations is {self.iterations}: give at least 1, or None for what fits")

    def halved(self) -> Method:
        """For one of two halves of a window."""
        return replace(
            self,
            budget=self.budget.halved(),
            iterations=None if self.iterations is None else math.ceil(self.iterations / 2),
            warmup_share=self.warmup_share / 2,
        )

    def rig(self, timer: Timer, gpu: Gpu, pacer: Pacer) -> Rig:
        """What a window is measured with."""
        return Rig(
            timer=timer,
            device=gpu.device,
            telemetry=gpu.telemetry,
            pacer=pacer,
            clears_cache=self.flush_l2,
            budget=self.budget,
            iterations=self.iterations,
            warmup_calls=math.ceil(timer.warmup_calls_min * self.warmup_share),
        )


def bench_kernel(
    fn: Callable[..., object],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    device: int = 0,
    budget: Budget = Budget(),  # noqa: B008 - frozen
    iterations: int | None = None,
    flush_l2: bool = True,
    count_copies: bool = False,
    launches_from_any_thread: bool = False,
    policy: ClockPolicy | None = None,
    allow_events: bool = False,
) -> list[Sample]:
    """Time ``fn(*args, **kwargs)`` from CUPTI's kernel records, one sample an iteration.

    Three calls calibrate, calls for 25 ms warm up, and as many are timed as fit into 100 ms,
    between 10 and 200. Before each, L2 is cleared and the device drained. Each runs under its
    iteration number, which its kernels' records carry. When CUPTI dropped records, everything
    is measured again with a buffer four times as large, three attempts in all.

    Args:
        fn: the call to time.
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
        device: index of the CUDA device, as torch numbers it.
        budget: times and bounds in place of those above.
        iterations: timed calls, instead of what fits into the budget.
        flush_l2: clear L2 before each call.
        count_copies: copies and memsets are part of ``device_busy_ms``.
        launches_from_any_thread: kernels belong to the iteration in which any thread launched
            them, instead of the one whose number they carry.
        policy: what to do about the clock; None is ``UnlockedClockPolicy()``.
        allow_events: where CUPTI gives no samples, time with CUDA events and warn. Such samples
            say timing "cuda-events" and compare with no others.

    Raises:
        TypeError: calling ``fn`` would not do its work.
        MachineError: no usable GPU or CUPTI, or the policy failed.
        RecordsLostError: CUPTI dropped records in each of three attempts.
        OffThreadLaunchError: a kernel carries no iteration number.
        AttributionError: an iteration has no kernels, or the call pushes CUPTI ids of its own.
        TimingError: another way in which no sample can be trusted.
    """
    call = Call(functools.partial(fn, *args, **(kwargs or {})))
    chosen = UnlockedClockPolicy() if policy is None else policy
    method = Method(
        budget=budget,
        iterations=iterations,
        flush_l2=flush_l2,
        count_copies=count_copies,
        launches_from_any_thread=launches_from_any_thread,
        allow_events=allow_events,
    )
    with claimed_gpu(device) as gpu, chosen.applied(gpu.uuid):
        return timed_samples(call, gpu, method, Pacer(hold=chosen.paces))[0]


def timed_samples(call: Call, gpu: Gpu, method: Method, pacer: Pacer) -> tuple[list[Sample], Pacer]:
    """One window of a call on a claimed GPU; for the errors see ``bench_kernel``.

    Returns:
        The samples, and the pacer with which the next window of this call should begin.
    """
    try:
        window = _from_records(call, gpu, method, pacer)
    except _CUPTI_GAVE_NOTHING as error:
        if not method.allow_events:
            raise
        reason = f"{type(error).__name__}: {error}"
    else:
        samples = _samples(window, CUPTI, None)
        if not method.count_copies:
            _point_out_copies(samples)
        return samples, pacer_after(window, hold=pacer.hold)
    warnings.warn(f"timed with CUDA events, which compares with no CUPTI sample: {reason}", stacklevel=3)
    timer = EventTimer(gpu.device, cold=method.flush_l2)
    window = held_window(call.run, method.rig(timer, gpu, pacer))
    return _samples(window, CUDA_EVENTS, reason), pacer_after(window, hold=pacer.hold)


def _from_records(call: Call, gpu: Gpu, method: Method, pacer: Pacer) -> MeasuredWindow:
    session = recording_session(gpu.device)
    timer = CuptiTimer(
        session,
        gpu.device,
        count_copies=method.count_copies,
        any_thread=method.launches_from_any_thread,
        cold=method.flush_l2,
    )
    try:
        return held_window(call.run, method.rig(timer, gpu, pacer))
    finally:
        session.pause()  # a call that raised leaves it recording


def _samples(window: MeasuredWindow, timing: str, reason: str | None) -> list[Sample]:
    if window.invalid is not None:
        warnings.warn(window.invalid, stacklevel=4)
    timings = window.timings
    times = timings.samples_ms
    nothing = [None] * len(times)
    rows = zip(
        times,
        timings.latency_ms or times,
        timings.n_kernels or nothing,
        timings.copy_ms or nothing,
        window.progress.sm_clock_mhz,
        window.progress.throttle_reasons,
        strict=True,
    )
    return [
        Sample(
            device_busy_ms=busy,
            latency_ms=latency,
            n_kernels=n_kernels,
            copy_ms=copies,
            timing=timing,
            cache_state=cache_state(cold=timings.cold),
            sm_clock_mhz=clock,
            throttle_reasons=reasons,
            fallback_reason=reason,
            attempts=window.attempts,
        )
        for busy, latency, n_kernels, copies, clock, reasons in rows
    ]


def _point_out_copies(samples: Sequence[Sample]) -> None:
    copied = sum(sample.copy_ms or 0.0 for sample in samples) / len(samples)
    busy = busy_median_ms(samples)
    if copied > COPY_SHARE_MAX * busy:
        warnings.warn(
            f"copies and memsets take {copied:.4g} ms a call beside {busy:.4g} ms of kernels and are not "
            "counted: count_copies=True makes them part of device_busy_ms",
            stacklevel=4,
        )
