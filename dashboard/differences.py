"""How far two measurements lie apart, of the same series or of two GPUs or environments. Pure.

These are no verdicts: nothing is pooled, nothing is confirmed, and no check hangs on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from alerts.effects import Effect, effect_between_windows, effect_of_logs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from store.records import SeriesPoint

_WINDOWS_MIN = 2
SENTINEL = "sentinel"


class Direction(StrEnum):
    """How the candidate lies to the base."""

    SLOWER = "slower"  # its interval lies wholly above
    FASTER = "faster"  # its interval lies wholly below
    SAME = "no difference"  # the intervals overlap
    UNKNOWN = "no interval"  # one side was refused an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A candidate beside its base.

    Attributes:
        effect: (candidate - base) / base; positive is slower. None without a number on a side.
        low, high: 95 % interval of the effect; None with fewer than two windows on a side.
    """

    base: SeriesPoint
    candidate: SeriesPoint
    direction: Direction
    effect: float | None
    low: float | None
    high: float | None


def difference(base: SeriesPoint, candidate: SeriesPoint) -> Difference:
    """Compare two measurements: direction by their intervals, effect by their window medians."""
    effect = _effect(base, candidate)
    plain = None
    if base.interval.center and candidate.interval.center:
        plain = candidate.interval.center / base.interval.center - 1
    return Difference(
        base=base,
        candidate=candidate,
        direction=_direction(base, candidate),
        effect=plain if effect is None else effect.relative,
        low=None if effect is None else effect.low,
        high=None if effect is None else effect.high,
    )


def mean_effect(differences: Iterable[Difference]) -> Effect | None:
    """The geometric mean of the ratios, less 1, with the 95 % interval over benchmarks.

    The interval says how far the mean would move with other benchmarks of the same kind; each
    benchmark has the same weight. Sentinels are no benchmarks and are left out.

    Returns:
        None with fewer than two ratios.
    """
    logs = [
        math.log1p(item.effect)
        for item in differences
        if item.effect is not None and SENTINEL not in item.candidate.tags
    ]
    return effect_of_logs(logs, slack=0.0) if len(logs) > 1 else None


def _effect(base: SeriesPoint, candidate: SeriesPoint) -> Effect | None:
    if min(len(base.window_medians_ms), len(candidate.window_medians_ms)) < _WINDOWS_MIN:
        return None
    return effect_between_windows(
        base.window_medians_ms,
        candidate.window_medians_ms,
        quantum_ms=max(base.resolution_ms, candidate.resolution_ms),
    )


def _direction(base: SeriesPoint, candidate: SeriesPoint) -> Direction:
    before, after = base.interval.bounds, candidate.interval.bounds
    if before is None or after is None:
        return Direction.UNKNOWN
    if after[0] > before[2]:
        return Direction.SLOWER
    return Direction.FASTER if after[2] < before[0] else Direction.SAME
