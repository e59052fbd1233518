"""How large a difference is, and how surprising: pure functions over logs of durations.

These numbers stand beside a verdict and never decide it. Known answers are in
``tests/data/intervals.json``.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from store.folding import CONFIDENCE
from store.portable import expm1, log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_UPPER = (1 + CONFIDENCE) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A relative difference, (candidate - baseline) / baseline; positive is slower.

    Attributes:
        low, high: 95 % interval.
        p_value: two-sided, for no difference; None when nothing is known about the spread.
    """

    relative: float
    low: float
    high: float
    p_value: float | None


class Effects(NamedTuple):
    """Many of them, as columns of one length; NaN stands for a p-value that is None."""

    relative: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p_value: NDArray[np.float64]


def effect_between_windows(
    baseline_ms: Sequence[float], candidate_ms: Sequence[float], *, quantum_ms: float
) -> Effect:
    """Ratio of two runs from their window medians, by Welch's t in log space.

    Args:
        baseline_ms: window medians of the baseline, at least two.
        candidate_ms: window medians of the candidate, at least two.
        quantum_ms: time quantum of one sample; it widens the interval, because two medians
            can each be half a quantum off without any spread to show for it.

    Source: Welch 1947 for the interval; Kalibera & Jones 2013 for the use of ratios.
    """
    before, after = _logs(baseline_ms), _logs(candidate_ms)
    difference = statistics.fmean(after) - statistics.fmean(before)
    slack = quantum_ms / 2 / _mean(before) + quantum_ms / 2 / _mean(after)
    a, b = (0.0 if _no_spread(x) else statistics.variance(x) / len(x) for x in (before, after))
    if a + b == 0:
        return _without_spread(difference, slack)
    error = math.sqrt(a + b)
    share = a / (a + b)  # a share, since squares of tiny variances underflow
    freedom = 1 / (share**2 / (len(before) - 1) + (1 - share) ** 2 / (len(after) - 1))
    return _effect(difference, error=error, freedom=freedom, slack=slack)


def effect_of_logs(ratios: Sequence[float], *, slack: float) -> Effect:
    """The mean of logs of ratios, by Student's t.

    Args:
        ratios: logs of candidate / baseline, one per pair, at least two.
        slack: how far the timer's quantum alone can move a ratio; no evidence of anything.
    """
    difference = statistics.fmean(ratios)
    if _no_spread(ratios):
        return _without_spread(difference, slack)
    error = statistics.stdev(ratios) / math.sqrt(len(ratios))
    return _effect(difference, error=error, freedom=len(ratios) - 1, slack=slack)


def effect_against_pool(
    *,
    baseline_ms: float,
    candidate_ms: float,
    run_sd: float,
    runs: int,
    quantum_ms: float,
    run_df: int | None = None,
) -> Effect:
    """Ratio of one run's centre to that of a pool, with the interval for one more run.

    Args:
        baseline_ms: centre of the pool.
        candidate_ms: centre of the run.
        run_sd: standard deviation of the log centres of runs of the same code.
        runs: how many runs the pool holds, at least two.
        quantum_ms: time quantum of one sample.
        run_df: degrees of freedom of ``run_sd``; those of the pool where None.
    """
    return _single(
        effects_against_pools(
            baseline_ms=np.array([baseline_ms]),
            candidate_ms=np.array([candidate_ms]),
            run_sd=np.array([run_sd]),
            runs=runs,
            quantum_ms=np.array([quantum_ms]),
            run_df=run_df,
        )
    )


def effects_against_pools(
    *,
    baseline_ms: NDArray[np.float64],
    candidate_ms: NDArray[np.float64],
    run_sd: NDArray[np.float64],
    runs: int,
    quantum_ms: NDArray[np.float64],
    run_df: int | None = None,
) -> Effects:
    """As ``effect_against_pool``, for many runs, each with a pool of as many runs; columns of one length."""
    difference = log(candidate_ms / baseline_ms)
    slack = quantum_ms / 2 / baseline_ms + quantum_ms / 2 / candidate_ms
    freedom = runs - 1 if run_df is None else run_df
    return _effects(difference, error=run_sd * math.sqrt(1 + 1 / runs), freedom=freedom, slack=slack)


def benjamini_hochberg(p_values: Sequence[float] | NDArray[np.float64]) -> list[float]:
    """The q-value of each p-value: the false discovery rate at which it would be called a change.

    Source: Benjamini & Hochberg 1995.
    """
    p = np.asarray(p_values, dtype=np.float64)
    largest_first = np.argsort(p)[::-1]
    scaled = p[largest_first] * p.size / np.arange(p.size, 0, -1)
    q_values = np.empty(p.size)
    q_values[largest_first] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return q_values.tolist()


def _effect(difference: float, *, error: float, freedom: float, slack: float) -> Effect:
    return _single(
        _effects(np.array([difference]), error=np.array([error]), freedom=freedom, slack=np.array([slack]))
    )


def _effects(
    difference: NDArray[np.float64],
    *,
    error: NDArray[np.float64],
    freedom: float,
    slack: NDArray[np.float64],
) -> Effects:
    """Student's interval and p-value; what the quantum could have done counts as no evidence."""
    half = float(stdtrit(freedom, _UPPER)) * error + slack
    # Without any spread there is nothing to hold the difference against.
    surprise = np.maximum(np.abs(difference) - slack, 0.0) / np.where(error > 0, error, np.nan)
    return Effects(
        relative=expm1(difference),
        low=expm1(difference - half),
        high=expm1(difference + half),
        p_value=np.asarray(2 * stdtr(freedom, -surprise), dtype=np.float64),
    )


def _without_spread(difference: float, slack: float) -> Effect:
    return _effect(difference, error=0.0, freedom=1.0, slack=slack)


def _single(effects: Effects) -> Effect:
    """The only row."""
    relative, low, high, p_value = (column.item() for column in effects)
    return Effect(relative=relative, low=low, high=high, p_value=None if math.isnan(p_value) else p_value)


def _logs(durations: Sequence[float]) -> list[float]:
    return [math.log(duration) for duration in durations]


def _mean(logs: Sequence[float]) -> float:
    return math.exp(statistics.fmean(logs))


def _no_spread(values: Sequence[float]) -> bool:
    return min(values) == max(values)
