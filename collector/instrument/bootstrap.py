"""Seeded bootstrap intervals and percentiles of the samples of one window: pure.

They say how precisely one window was measured and nothing about the next one, so no verdict
is made from them.
"""

from __future__ import annotations

import math
import random
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SEED = 0xC0FFEE
RESAMPLES = 2000
_LOW = int(0.025 * RESAMPLES)
_HIGH = int(0.975 * RESAMPLES)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """95 % percentile bootstrap of the median; the same samples always give the same interval.

    The generator is Python's ``random.Random``, not only the seed is fixed: NumPy's would give
    other intervals.

    Raises:
        ValueError: there are fewer than two samples.
    """
    _require_two(samples)
    rng = random.Random(SEED)  # noqa: S311 - repeatable on purpose, keeps no secret
    return _interval(lambda: median(rng.choices(samples, k=len(samples))))


def ratio_interval(numerator: Sequence[float], denominator: Sequence[float]) -> tuple[float, float]:
    """The same of the ratio of two medians, both sides drawn anew each time.

    Raises:
        ValueError: a side has fewer than two samples.
    """
    _require_two(numerator)
    _require_two(denominator)
    rng = random.Random(SEED)  # noqa: S311 - see above

    def draw() -> float:
        above = median(rng.choices(numerator, k=len(numerator)))
        return above / median(rng.choices(denominator, k=len(denominator)))

    return _interval(draw)


def percentile(samples: Sequence[float], share: float) -> float:
    """The ``share`` quantile, interpolated linearly between the two nearest samples.

    This is NumPy's default rule: position ``share * (n - 1)`` in the sorted samples.

    Args:
        samples: in any order, at least one.
        share: from 0 to 1.
    """
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _interval(draw: Callable[[], float]) -> tuple[float, float]:
    drawn = sorted(draw() for _ in range(RESAMPLES))
    return drawn[_LOW], drawn[_HIGH]


def _require_two(samples: Sequence[float]) -> None:
    if len(samples) < 2:  # noqa: PLR2004 - one sample has no spread to draw from
        raise ValueError(f"an interval needs at least 2 samples and got {len(samples)}: measure more often")
