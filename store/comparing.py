"""How a run is compared with another, and with a pool of others: pure.

Judging runs and measuring how often the judging errs rest on the same rule, which is here once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from store.folding import CONFIDENCE, WINDOWS_MIN, fold_logs
from store.portable import Number, exp, log
from store.records import FoldStatus, Interval, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Below six, order statistics give no 95 % interval, and the spread between runs is a guess.
POOL_RUNS_MIN = WINDOWS_MIN
# Twenty give an interval that stays tight, and are recent enough to follow the code.
POOL_RUNS_MAX = 20
_ALMOST_ONE = math.nextafter(1.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Several runs of the same code, taken together.

    Attributes:
        interval: of the median of their centres, in milliseconds.
        run_sd: standard deviation of the log centres.
        run_df: degrees of freedom that it was estimated with.
    """

    interval: Interval
    run_sd: float
    run_df: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Many pools of as many runs each, as columns.

    Attributes:
        low, center, high: intervals of the medians of their centres, in milliseconds; shape (pools,).
        run_sd: standard deviations of the log centres; shape (pools,).
        run_df: degrees of freedom that each was estimated with.
        runs: how many runs each pool holds.
    """

    low: NDArray[np.float64]
    center: NDArray[np.float64]
    high: NDArray[np.float64]
    run_sd: NDArray[np.float64]
    run_df: int
    runs: int


def pool_of(centers_ms: Sequence[float], *, resolution_ms: float) -> Pool:
    """Fold the centres of runs as if each were a window.

    Args:
        centers_ms: one per run, at least ``POOL_RUNS_MIN``.
        resolution_ms: time quantum of one sample.
    """
    return _pool_of(tuple(centers_ms), resolution_ms)


# What is the pool of one commit is the anchor of a later one, and the baseline of every run on that commit.
@lru_cache(maxsize=65_536)
def _pool_of(centers_ms: tuple[float, ...], resolution_ms: float) -> Pool:
    pools = pools_of(log(np.array([centers_ms])), resolution_ms=np.array([resolution_ms]))
    return Pool(
        interval=Interval(
            center=pools.center.item(),
            low=pools.low.item(),
            high=pools.high.item(),
            windows=pools.runs,
            status=FoldStatus.OK,
        ),
        run_sd=pools.run_sd.item(),
        run_df=pools.run_df,
    )


def pools_of(log_centers: NDArray[np.float64], *, resolution_ms: NDArray[np.float64]) -> Pools:
    """As ``pool_of``, for many pools at once.

    Args:
        log_centers: logs of the centres in milliseconds; shape (pools, runs), of ``POOL_RUNS_MIN`` runs
            or more.
        resolution_ms: shape (pools,).
    """
    ordered = np.sort(log_centers, axis=-1)
    low, center, high = fold_logs(ordered, resolution=resolution_ms)
    runs = ordered.shape[-1]
    deviations = ordered - (_sum(ordered) / runs)[..., np.newaxis]
    return Pools(
        low=low,
        center=center,
        high=high,
        # Equal centres have no spread; the deviation of equal logs may leave a rounding error behind.
        run_sd=np.where(
            ordered[..., 0] == ordered[..., -1], 0.0, np.sqrt(_sum(deviations * deviations) / (runs - 1))
        ),
        run_df=runs - 1,
        runs=runs,
    )


def _sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Along the last axis, one after another: the order in which NumPy sums depends on the shape."""
    return np.cumsum(values, axis=-1)[..., -1]


def widened(
    interval: Interval, *, run_sd: float, run_df: int, resolution_ms: float, confidence: float = CONFIDENCE
) -> Interval:
    """An interval, no narrower than two runs of the same code lie apart.

    It is the run-history floor of ``fold_windows``, added after the fold.

    Args:
        interval: of the run that is compared; one without bounds stays as it is.
        run_sd: standard deviation of the log centres of runs of the same code.
        run_df: degrees of freedom that it was estimated with.
        resolution_ms: time quantum of one sample.
        confidence: how sure the interval has to be.
    """
    if interval.bounds is None:
        return interval
    low, center, high = interval.bounds
    least_low, least_high = reach(
        center, run_sd=run_sd, run_df=run_df, resolution_ms=resolution_ms, confidence=confidence
    )
    return Interval(
        center=center,
        low=min(low, least_low),
        high=max(high, least_high),
        windows=interval.windows,
        status=interval.status,
    )


def reach(
    center_ms: Number, *, run_sd: Number, run_df: int, resolution_ms: Number, confidence: float = CONFIDENCE
) -> tuple[Number, Number]:
    """How far around its centre a run may lie from others of the same code, as ``widened``: both ends."""
    # Of the highest confidence the sum rounds to 2, and the quantile of 1 is infinite.
    half = float(stdtrit(run_df, min((1 + confidence) / 2, _ALMOST_ONE))) * run_sd
    return center_ms * exp(-half) - resolution_ms / 2, center_ms * exp(half) + resolution_ms / 2


def compare_intervals(candidate: Interval, baseline: Interval) -> Outcome:
    """REGRESSED or IMPROVED when the intervals are apart, INCONCLUSIVE when one was refused."""
    if candidate.bounds is None or baseline.bounds is None:
        return Outcome.INCONCLUSIVE
    (low, _, high), (baseline_low, _, baseline_high) = candidate.bounds, baseline.bounds
    if low > baseline_high:
        return Outcome.REGRESSED
    if high < baseline_low:
        return Outcome.IMPROVED
    return Outcome.UNCHANGED
