"""Which way a number is worse, and which changes are too small to be told: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.policy import Better
from store.records import Outcome, Quantity

if TYPE_CHECKING:
    from alerts.policy import Policy
    from store.portable import Number
    from store.records import Interval, SeriesKey

_TURNED = {Outcome.REGRESSED: Outcome.IMPROVED, Outcome.IMPROVED: Outcome.REGRESSED}


def larger_is_better(series: SeriesKey, policy: Policy) -> bool:
    """Whether a number that falls is a regression. Times never are such numbers."""
    return series.quantity is Quantity.RATIO and policy.ratio_better is Better.LARGER


def turned(outcome: Outcome) -> Outcome:
    """What it means where larger is better: a number that rose has improved."""
    return _TURNED.get(outcome, outcome)


def smallest_drop(candidate: Interval, baseline: Interval) -> float | None:
    """The smallest relative drop that intervals of these widths would show as apart.

    The counterpart of ``verdicts.smallest_seen``. None when an interval was refused, or the
    baseline's reaches down to zero and nothing can lie below it.
    """
    if candidate.bounds is None or baseline.bounds is None or baseline.bounds[0] <= 0:
        return None
    _, center, high = candidate.bounds
    baseline_low, baseline_center, _ = baseline.bounds
    return drop_to(baseline_low, baseline_center, center, high)


def drop_to(baseline_low: Number, baseline_center: Number, center: Number, high: Number) -> Number:
    """The drop that takes the high end of a candidate's interval to the low end of its baseline's."""
    return 1 - baseline_low / baseline_center * center / high


def comparative(series: SeriesKey, *, rose: bool) -> str:
    """How a change reads: times are slower or faster, ratios larger or smaller."""
    if series.quantity is Quantity.RATIO:
        return "larger" if rose else "smaller"
    return "slower" if rose else "faster"


def seen_change(series: SeriesKey, policy: Policy) -> str:
    """What the smallest change that would have been flagged is, in a word."""
    if series.quantity is not Quantity.RATIO:
        return "slowdown"
    return "drop" if larger_is_better(series, policy) else "rise"
