"""What a measurement gives a person: samples with an interval and a tier, never a bare number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

CUPTI = "cupti"
CUDA_EVENTS = "cuda-events"


class MeasurementTier(Enum):
    """How far a measurement can be trusted."""

    A = "A"  # the clock was controlled, and every sample was taken at it
    B = "B"  # precise within this window; another window may give another number
    C = "C"  # nothing can be concluded from it


@dataclass(frozen=True, kw_only=True, repr=False)
class TimingResult:
    """What ``measure`` gives. Times are in milliseconds.

    It converts to no number: to leave the interval behind, write ``result.median_ms``.

    Attributes:
        ci95_lo_ms, ci95_hi_ms: 95 % bootstrap interval of the median within this window. It
            says nothing about how the next window will differ.
        p10_ms, p90_ms: percentiles, interpolated linearly.
        samples_ms: every sample in the order it was taken.
        tier_evidence: why the tier is what it is, the deciding sentence first.
        clock_cv_pct: standard deviation of the SM clock over its mean, in percent; None where
            the clock could not be read.
        clock_range_mhz: highest minus lowest SM clock; None likewise.
        throttle_fired: whether anything limited the clock while samples were taken; None where
            that could not be read.
        throttle_reasons: what limited it, in words.
        inner_reps: calls in one timed region; the region's time is divided by it.
        cache_state: "cold" where every call found L2 cleared. With ``inner_reps`` above 1 only
            the first call of a region does, and the state is "warm".
        policy: the clock policy, as it was made.
        timer: always "cuda-events".
        resolution_ms: the step of the timer, which an interval may be narrower than.
        warmup_calls: calls made before the first sample.
    """

    median_ms: float
    ci95_lo_ms: float
    ci95_hi_ms: float
    p10_ms: float
    p90_ms: float
    n: int
    samples_ms: tuple[float, ...]
    tier: MeasurementTier
    tier_evidence: tuple[str, ...]
    clock_cv_pct: float | None
    clock_range_mhz: int | None
    throttle_fired: bool | None
    throttle_reasons: tuple[str, ...]
    inner_reps: int
    cache_state: str
    policy: str
    timer: str
    resolution_ms: float
    warmup_calls: int

    def __repr__(self) -> str:
        inner = f", {self.inner_reps} calls a sample" if self.inner_reps > 1 else ""
        return (
            f"TimingResult({self.median_ms:.5g} ms, 95 % interval {self.ci95_lo_ms:.5g} to "
            f"{self.ci95_hi_ms:.5g} ms (this window only), p10 {self.p10_ms:.5g}, p90 {self.p90_ms:.5g}, "
            f"n {self.n}{inner}, tier {self.tier.value}: {self.tier_evidence[0]}; {self.timer}, "
            f"{self.cache_state} L2, {self.policy})"
        )


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One iteration of ``bench_kernel``. Times are in milliseconds.

    Attributes:
        device_busy_ms: union of the execution intervals of the call's kernels (and of its
            copies, with ``count_copies``): gaps are not in it, overlap counts once.
        latency_ms: from the start of the first kernel to the end of the last. It holds the gaps,
            so it compares only between calls of equal ``n_kernels``.
        n_kernels: kernels of the call; None where CUDA events timed it, which see none.
        copy_ms: union of copies and memsets; None likewise. Unless ``count_copies`` was given
            they are not in ``device_busy_ms``.
        timing: "cupti", or "cuda-events" for a fallback, where ``device_busy_ms`` and
            ``latency_ms`` are the same number, which holds launch gaps. Never compare the two.
        cache_state: "cold" where the call found L2 cleared.
        sm_clock_mhz, throttle_reasons: what NVML said right after the call (the reasons as its
            mask); None where it could not.
        fallback_reason: why CUPTI did not time it, or None.
        attempts: how often the whole was measured until no record was lost.
    """

    device_busy_ms: float
    latency_ms: float
    n_kernels: int | None
    copy_ms: float | None
    timing: str
    cache_state: str
    sm_clock_mhz: int | None
    throttle_reasons: int | None
    fallback_reason: str | None = None
    attempts: int = 1


def busy_median_ms(samples: Sequence[Sample]) -> float:
    """Median of ``device_busy_ms``, in milliseconds."""
    return median(sample.device_busy_ms for sample in samples)


def cache_state(*, cold: bool) -> str:
    """The word for whether calls found a cleared cache."""
    return "cold" if cold else "warm"


def known(values: Sequence[Any]) -> list[Any]:
    """The values that could be read."""
    return [value for value in values if value is not None]
