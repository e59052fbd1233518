"""Two runs whose passes took turns, compared pass by pass: pure.

What the passes of one moment share, such as a machine that warms up, falls out of their
ratio. The interval of the ratios is folded as that of a measurement is from its windows.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from store.folding import fold_windows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Interval

Pair = tuple[float, float]


def pair_passes(baseline_ms: Mapping[int, float], candidate_ms: Mapping[int, float]) -> list[Pair]:
    """(baseline, candidate) medians of the passes that both runs have a number for, in pass order.

    Args:
        baseline_ms: window median by pass.
        candidate_ms: likewise.
    """
    both = sorted(baseline_ms.keys() & candidate_ms.keys())
    return [(baseline_ms[index], candidate_ms[index]) for index in both]


def fold_pairs(pairs: Sequence[Pair], *, quantum_ms: float) -> Interval:
    """The 95 % interval of candidate / baseline, refused below three pairs.

    Args:
        pairs: as ``pair_passes`` gives them.
        quantum_ms: time quantum of one sample; either median may be half a quantum off, and
            the interval is widened by both.
    """
    return fold_windows(
        [[candidate / baseline] for baseline, candidate in pairs],
        resolution=2 * pair_slack(pairs, quantum_ms=quantum_ms),
    )


def pair_slack(pairs: Sequence[Pair], *, quantum_ms: float) -> float:
    """How far the quantum alone can move the ratio, as a share."""
    sides = [statistics.median(map(math.log, side)) for side in zip(*pairs, strict=True)]
    return sum(quantum_ms / 2 / math.exp(side) for side in sides)
