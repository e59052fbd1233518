"""Points and verdicts of a series, for pages and charts."""

from __future__ import annotations

from typing import Any

from builders import EPOCH, a_header, a_kernel, a_sha

from dashboard.timeline import Timeline
from store.records import (
    BaselineKind,
    CacheState,
    Case,
    FoldStatus,
    Interval,
    Outcome,
    Quantity,
    Reason,
    RunHeader,
    SeriesPoint,
    Standing,
    Tier,
    Verdict,
)


def an_interval(center: float = 0.25, *, half: float = 0.001) -> Interval:
    """An interval of eight windows."""
    return Interval(center, center - half, center + half, 8, FoldStatus.OK)


def a_point(
    commit: int | None = 10,
    *,
    number: int = 0,
    benchmark: str = "softmax",
    center: float = 0.25,
    header: RunHeader | None = None,
    **changes: Any,
) -> SeriesPoint:
    """A tier-A point of a series on a commit."""
    header = header or a_header(commit, number=number)
    fields: dict[str, Any] = {
        "header": header,
        "series": header.series_key(
            Case.of(benchmark, {"rows": 1024}), Quantity.DEVICE_BUSY, CacheState.COLD
        ),
        "interval": an_interval(center),
        "resolution_ms": 3.2e-5,
        "tier": Tier.A,
        "tier_evidence": ("held clocks; 8 windows",),
        "tags": (),
        "source": "suites/example.py:12",
        "window_medians_ms": (center,) * 8,
        "window_passes": tuple(range(8)),
        "n_samples": 240,
        "n_left_out": 0,
        "kernels": (a_kernel(),),
    }
    return SeriesPoint(**(fields | changes))


def a_verdict(point: SeriesPoint, **changes: Any) -> Verdict:
    """A confirmed regression of 5 %."""
    fields: dict[str, Any] = {
        "run_id": point.header.run_id,
        "series": point.series,
        "outcome": Outcome.REGRESSED,
        "reason": Reason.INTERVALS_APART,
        "message": "5.00 % slower than the pool",
        "standing": Standing.CONFIRMED,
        "tier": point.tier,
        "windows": 8,
        "candidate": an_interval(0.2625),
        "baseline": an_interval(0.25),
        "baseline_kind": BaselineKind.POOL,
        "effect": 0.05,
        "effect_low": 0.048,
        "effect_high": 0.053,
        "judged_at": EPOCH,
    }
    return Verdict(**(fields | changes))


def a_timeline(*numbers: int) -> Timeline:
    """Places for commits by number."""
    shas = tuple(a_sha(number) for number in numbers)
    return Timeline(places=shas, labels=tuple(sha[-4:] for sha in shas), n_older=0, n_without_order=0)
