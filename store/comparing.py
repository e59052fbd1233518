"""How a run is compared with another, and with a pool of others: pure.

Judging runs and measuring how often the judging errs rest on the same rule, which is here once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from scipy.special import stdtrit

from store.folding import CONFIDENCE, WINDOWS_MIN, fold_windows
from store.records import Interval, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

# Below six, order statistics give no 95 % interval, and the spread between runs is a guess.
POOL_RUNS_MIN = WINDOWS_MIN
# Twenty give an interval that stays tight, and are recent enough to follow the code.
POOL_RUNS_MAX = 20


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


def pool_of(centers_ms: Sequence[float], *, resolution_ms: float) -> Pool:
    """Fold the centres of runs as if each were a window.

    Args:
        centers_ms: one per run, at least two.
        resolution_ms: time quantum of one sample.
    """
    return _pool_of(tuple(centers_ms), resolution_ms)


# What is the pool of one commit is the anchor of a later one, and the baseline of every run on that commit.
@lru_cache(maxsize=65_536)
def _pool_of(centers_ms: tuple[float, ...], resolution_ms: float) -> Pool:
    logs = [math.log(center) for center in centers_ms]
    return Pool(
        interval=fold_windows([(center,) for center in centers_ms], resolution=resolution_ms),
        # Equal centres have no spread; the deviation of equal logs may leave a rounding error behind.
        run_sd=0.0 if min(logs) == max(logs) else _deviation(logs),
        run_df=len(logs) - 1,
    )


def _deviation(values: Sequence[float]) -> float:
    """Standard deviation of a sample; that of ``statistics`` is exact, and takes ten times as long."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


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
    half = float(stdtrit(run_df, (1 + confidence) / 2)) * run_sd
    return Interval(
        center=center,
        low=min(low, center * math.exp(-half) - resolution_ms / 2),
        high=max(high, center * math.exp(half) + resolution_ms / 2),
        windows=interval.windows,
        status=interval.status,
    )


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
