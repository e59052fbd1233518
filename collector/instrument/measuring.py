"""``measure``: a callable timed by CUDA events, as a distribution with an interval and a tier."""

from __future__ import annotations

import math
import warnings
from statistics import median
from typing import TYPE_CHECKING

from collector.calls import Call
from collector.instrument.bootstrap import median_interval, percentile
from collector.instrument.grading import grade_window
from collector.instrument.holding import held_window
from collector.instrument.machine import claimed_gpu
from collector.instrument.policies import UnlockedClockPolicy
from collector.instrument.results import CUDA_EVENTS, TimingResult, cache_state
from collector.pacing import Pacer
from collector.timers import EventTimer
from collector.window import Budget, Rig

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.instrument.grading import Graded
    from collector.instrument.policies import ClockPolicy
    from collector.window import MeasuredWindow

WARMUP_CALLS = 200
ITERATIONS_MIN = 30
MIN_DURATION_US = 10.0


def measure(
    fn: Callable[[], object],
    *,
    warmup: int = WARMUP_CALLS,
    iters: int = ITERATIONS_MIN,
    device: int = 0,
    flush_l2: bool = True,
    policy: ClockPolicy | None = None,
    min_duration_us: float = MIN_DURATION_US,
) -> TimingResult:
    """Time ``fn`` with CUDA events.

    Args:
        fn: the call to time; takes no arguments and launches on the current stream.
        warmup: calls before the first sample. More are made while the clock is still moving,
            for at most 1.5 s. Fewer than the default bring cold clocks back into the samples.
        iters: samples, at least 30.
        device: index of the CUDA device, as torch numbers it.
        flush_l2: clear L2 before each sample; False is for numbers of a warm cache on purpose.
        policy: what to do about the clock; None is ``UnlockedClockPolicy()``.
        min_duration_us: a call shorter than this is repeated inside one timed region, whose
            time is divided, since an event pair cannot resolve it.

    Raises:
        ValueError: ``iters`` below 30, or a negative ``warmup`` or ``min_duration_us``.
        TypeError: calling ``fn`` would not do its work.
        MachineError: no usable GPU, the GPU is measured by somebody else, or the policy failed.
        TimerFloorError: an event pair read no time.
    """
    _check_numbers(warmup, iters, min_duration_us)
    call = Call(fn)
    chosen = UnlockedClockPolicy() if policy is None else policy
    with claimed_gpu(device) as gpu, chosen.applied(gpu.uuid):
        rig = Rig(
            timer=EventTimer(gpu.device, cold=flush_l2, floor_ms=min_duration_us / 1e3),
            device=gpu.device,
            telemetry=gpu.telemetry,
            pacer=Pacer(hold=chosen.paces),
            clears_cache=flush_l2,
            budget=Budget(warmup_ms=0.0),  # counted in calls, not in time
            iterations=iters,
            warmup_calls=warmup,
        )
        window = held_window(call.run, rig)
    if window.invalid is not None:
        warnings.warn(window.invalid, stacklevel=2)
    return _result(window, grade_window(window, chosen, no_telemetry=gpu.no_telemetry), repr(chosen))


def _check_numbers(warmup: int, iters: int, min_duration_us: float) -> None:
    if iters < ITERATIONS_MIN:
        raise ValueError(
            f"iters is {iters}: at least {ITERATIONS_MIN} samples are needed for an interval of their median"
        )
    if warmup < 0:
        raise ValueError(f"warmup is {warmup}: give a number of calls, by default {WARMUP_CALLS}")
    if not (math.isfinite(min_duration_us) and min_duration_us >= 0):
        raise ValueError(
            f"min_duration_us is {min_duration_us}: give microseconds, by default {MIN_DURATION_US}"
        )


def _result(window: MeasuredWindow, graded: Graded, policy: str) -> TimingResult:
    timings = window.timings
    samples = timings.samples_ms
    low, high = median_interval(samples)
    return TimingResult(
        median_ms=median(samples),
        ci95_lo_ms=low,
        ci95_hi_ms=high,
        p10_ms=percentile(samples, 0.1),
        p90_ms=percentile(samples, 0.9),
        n=len(samples),
        samples_ms=tuple(samples),
        tier=graded.tier,
        tier_evidence=graded.evidence,
        clock_cv_pct=graded.clock_cv_pct,
        clock_range_mhz=graded.clock_range_mhz,
        throttle_fired=graded.throttle_fired,
        throttle_reasons=graded.throttle_reasons,
        inner_reps=timings.inner_reps,
        cache_state=cache_state(cold=timings.cold),
        policy=policy,
        timer=CUDA_EVENTS,
        resolution_ms=timings.resolution_ms,
        warmup_calls=window.warmup_calls,
    )
