"""The paired effect: two runs whose passes took turns, compared pass by pass. Pure.

The rule is argued, with its simulated rates, in docs/decisions/0006-paired-runs.md.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scipy.special import stdtrit

from alerts.effects import Effect, effect_of_logs
from store.folding import WINDOWS_MIN_PROVISIONAL
from store.pairing import fold_pairs, pair_passes, pair_slack
from store.records import Outcome

if TYPE_CHECKING:
    from store.pairing import Pair
    from store.records import SeriesPoint

PAIRS_MIN = WINDOWS_MIN_PROVISIONAL  # fewer give no interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The passes that both runs of a pair have a number for.

    Attributes:
        pairs: (baseline, candidate) medians in milliseconds, at least ``PAIRS_MIN``.
        quantum_ms: time quantum of one sample.
    """

    pairs: tuple[Pair, ...]
    quantum_ms: float

    @property
    def effect(self) -> Effect:
        """The ratio less one: interval by order statistics or log-t, p-value by t on the logs."""
        center, low, high = self._bounds
        tested = effect_of_logs(self._logs, slack=self._slack)
        return Effect(relative=center - 1, low=low - 1, high=high - 1, p_value=tested.p_value)

    def outcome(self, apart: Outcome, *, p_limit: float) -> Outcome:
        """What the pairs say.

        A change is one that the interval of the ratio shows and that is seen a second way:
        either the intervals of the two runs are apart in the same direction, or the pairs
        agree so well that chance is ruled out by ``p_limit``.

        Args:
            apart: what the intervals of the two runs say.
            p_limit: the largest p-value that stands in for intervals that are apart.
        """
        effect = self.effect
        if effect.low <= 0 <= effect.high:
            return Outcome.UNCHANGED
        shown = Outcome.REGRESSED if effect.relative > 0 else Outcome.IMPROVED
        certain = effect.p_value is not None and effect.p_value <= p_limit
        return shown if apart is shown or certain else Outcome.UNCHANGED

    def smallest_seen(self, apart: float | None, *, p_limit: float) -> float | None:
        """The smallest relative slowdown that pairs with this spread would have shown, where there is one.

        Args:
            apart: the smallest that would have put the intervals of the two runs apart.
            p_limit: as for ``outcome``.
        """
        center, low, _ = self._bounds
        logs = self._logs
        second = [] if apart is None else [apart]
        if min(logs) < max(logs):  # without a spread there is no p-value to go by
            error = statistics.stdev(logs) / math.sqrt(len(logs))
            quantile = float(stdtrit(len(logs) - 1, 1 - p_limit / 2))
            second.append(math.expm1(quantile * error + self._slack))
        return max(center / low - 1, min(second)) if second else None

    def smallest_drop(self, apart: float | None, *, p_limit: float) -> float | None:
        """The smallest relative drop that pairs with this spread would have shown, where there is one.

        A drop of the candidate is a rise of the baseline beside it.

        Args:
            apart: the smallest that would have put the intervals of the two runs apart.
            p_limit: as for ``outcome``.
        """
        swapped = replace(self, pairs=tuple((candidate, baseline) for baseline, candidate in self.pairs))
        rise = swapped.smallest_seen(None if apart is None else apart / (1 - apart), p_limit=p_limit)
        return None if rise is None else rise / (1 + rise)

    @property
    def _bounds(self) -> tuple[float, float, float]:
        bounds = fold_pairs(self.pairs, quantum_ms=self.quantum_ms).bounds
        if bounds is None:
            raise ValueError(f"{len(self.pairs)} pairs give no interval: {PAIRS_MIN} are the fewest")
        low, center, high = bounds
        return center, low, high

    @property
    def _logs(self) -> list[float]:
        return [math.log(candidate / baseline) for baseline, candidate in self.pairs]

    @property
    def _slack(self) -> float:
        return pair_slack(self.pairs, quantum_ms=self.quantum_ms)


def pairs_of(baseline: SeriesPoint, candidate: SeriesPoint) -> Pairs:
    """The passes of two points of one pair of runs, matched by their index."""
    return Pairs(
        pairs=tuple(pair_passes(_by_pass(baseline), _by_pass(candidate))),
        quantum_ms=max(baseline.resolution_ms, candidate.resolution_ms),
    )


def _by_pass(point: SeriesPoint) -> dict[int, float]:
    return dict(zip(point.window_passes, point.window_medians_ms, strict=True))
