"""From windows to an interval: pure, without random numbers, the same answer everywhere.

Why order statistics, and what they cover, is in docs/decisions/0002-folding.md. The
method has a version, so that stored history can be folded again when it improves.
"""

from __future__ import annotations

import math
import statistics
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr, ndtri, stdtrit

from store.portable import exp
from store.records import FoldStatus, Interval, RecordInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FOLD_VERSION = 1
CONFIDENCE = 0.95
WINDOWS_MIN_PROVISIONAL = 3
WINDOWS_MIN = 6
_Z = float(ndtri((1 + CONFIDENCE) / 2))


def fold_windows(
    windows: Sequence[Sequence[float]],
    *,
    resolution: float,
    run_sd: float | None = None,
    run_df: int | None = None,
) -> Interval:
    """Fold the windows of one measurement into a 95 % interval for the median of window medians.

    The windows must be independent draws (a fresh process each); what differs between them
    is then inside the interval. Logs of window medians are folded: fewer than three windows
    are refused, three to five give a provisional log-t interval, six and more interpolated
    order statistics (Hettmansperger & Sheather 1986). Three floors follow: the noise inside
    the windows, the spread between earlier runs, and the time quantum of the timer.

    Args:
        windows: durations, one sequence per window; any unit, as long as it is one unit.
        resolution: time quantum of one sample, in the same unit; 0 where there is none.
        run_sd: standard deviation of log centres between earlier runs, where known.
        run_df: degrees of freedom of ``run_sd``.

    Returns:
        The interval, in the unit of the windows; without bounds when it was refused.

    Raises:
        RecordInvalid: a sample is not a positive finite number, a window is empty, the
            resolution is negative, or only one of ``run_sd`` and ``run_df`` is given.
    """
    _check(windows, resolution, run_sd, run_df)
    medians = [window[0] if len(window) == 1 else statistics.median(window) for window in windows]
    if len(medians) < WINDOWS_MIN_PROVISIONAL:
        center = math.exp(statistics.median(map(math.log, medians))) if medians else None
        return Interval(center, None, None, len(medians), FoldStatus.REFUSED)
    logs = np.array(sorted(math.log(median) for median in medians))
    floor = _within_window_floor(windows)
    if run_sd is not None and run_df is not None:
        floor = max(floor, float(stdtrit(run_df, (1 + CONFIDENCE) / 2)) * run_sd)
    fold = fold_logs if len(logs) >= WINDOWS_MIN else _fold_few
    low, center, high = (float(bound) for bound in fold(logs, resolution=resolution, floor=floor))
    return Interval(
        center=center,
        low=low,
        high=high,
        windows=len(logs),
        status=FoldStatus.OK if len(logs) >= WINDOWS_MIN else FoldStatus.PROVISIONAL,
    )


def fold_logs(
    logs: NDArray[np.float64], *, resolution: float | NDArray[np.float64], floor: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Low end, centre and high end of the interval, of one measurement or of many at once.

    Args:
        logs: of the window medians, sorted along the last axis; shape (..., windows), at least six windows.
        resolution: time quantum of one sample; shape (...).
        floor: the least half-width, in log units.

    Returns:
        Three arrays of shape (...), in the unit of the windows.
    """
    n = logs.shape[-1]
    k, weight = _rank_and_weight(n)
    low = (1 - weight) * logs[..., k - 1] + weight * logs[..., k]
    high = (1 - weight) * logs[..., n - k] + weight * logs[..., n - k - 1]
    return _in_units(low, _median(logs), high, resolution=resolution, floor=floor)


def _check(
    windows: Sequence[Sequence[float]], resolution: float, run_sd: float | None, run_df: int | None
) -> None:
    for index, window in enumerate(windows):
        if len(window) == 0:
            raise RecordInvalid(f"window {index} holds no sample: leave it out and say why")
        for sample in window:
            if not (math.isfinite(sample) and sample > 0):
                raise RecordInvalid(f"window {index} holds {sample!r}, which is not a duration")
    if not (math.isfinite(resolution) and resolution >= 0):
        raise RecordInvalid(f"resolution {resolution!r} is not a time quantum: give 0 or more")
    if (run_sd is None) != (run_df is None):
        raise RecordInvalid("run_sd and run_df describe one estimate: give both or neither")
    if (
        run_sd is not None
        and run_df is not None
        and not (math.isfinite(run_sd) and run_sd >= 0 and run_df >= 1)
    ):
        raise RecordInvalid(f"run_sd {run_sd!r} with run_df {run_df!r} is not a spread")


def _fold_few(
    logs: NDArray[np.float64], *, resolution: float, floor: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """As ``fold_logs``, by Student's t interval for the mean, extended to contain the median."""
    n, center = len(logs), _median(logs)
    mean, quantile = statistics.fmean(logs), float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))
    half = quantile * statistics.stdev(logs.tolist()) / math.sqrt(n)
    low, high = np.minimum(mean - half, center), np.maximum(mean + half, center)
    return _in_units(low, center, high, resolution=resolution, floor=floor)


def _in_units(
    low: NDArray[np.float64],
    center: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    resolution: float | NDArray[np.float64],
    floor: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """An interval in log units, no narrower than the floor, in the unit of the windows."""
    low, high, middle = (
        exp(np.minimum(low, center - floor)),
        exp(np.maximum(high, center + floor)),
        exp(center),
    )
    # exp(log(x)) may miss x by one unit in the last place: the centre stays inside.
    return np.minimum(low, middle) - resolution / 2, middle, np.maximum(high, middle) + resolution / 2


def _median(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of sorted values, along the last axis."""
    n = ordered.shape[-1]
    middle: NDArray[np.float64] = (ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2
    return middle


@lru_cache(maxsize=1024)
def _rank_and_weight(n: int) -> tuple[int, float]:
    """The rank of the values that enclose the median of n, and how far to go on to the next ones inside."""
    k = max(rank for rank in range(1, n // 2 + 1) if _coverage(n, rank) >= CONFIDENCE)
    wide, narrow = _coverage(n, k), _coverage(n, k + 1)
    excess = (wide - CONFIDENCE) / (wide - narrow)
    return k, (n - k) * excess / (k + (n - 2 * k) * excess)


def _coverage(n: int, rank: int) -> float:
    """Probability that the ``rank``-th smallest and largest of n values enclose the median."""
    return 1 - 2 * float(bdtr(rank - 1, n, 0.5))


def _within_window_floor(windows: Sequence[Sequence[float]]) -> float:
    """Half-width that the noise inside the windows alone would give, in log units."""
    variance = sum(_median_standard_error(window) ** 2 for window in windows)
    return _Z * math.sqrt(variance) / len(windows)


def _median_standard_error(window: Sequence[float]) -> float:
    """Standard error of the log median, from the width of its order-statistic interval."""
    if len(window) == 1:  # one sample says nothing about its own spread
        return 0.0
    ordered = sorted(window)
    n = len(ordered)
    k = max(1, math.floor(n / 2 - _Z * math.sqrt(n) / 2))
    coverage = _coverage(n, k)
    if coverage <= 0:  # nor do so few
        return 0.0
    z = float(ndtri((1 + coverage) / 2))
    return (math.log(ordered[n - k]) - math.log(ordered[k - 1])) / (2 * z)
