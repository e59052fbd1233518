"""Change points: where a series of run centres changes its level, and by how much. Pure.

A step is where the mean on one side differs from that on the other by more than the spread
around both can explain (Student's t). Many places are tried, so every p-value is multiplied
by their number: in a series without a step, one is found with a probability of at most
``StepRule.level``, however long the series is. How often it happens, what is seen, and how this
compares with others, is in docs/decisions/0007-change-points.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr, stdtrit

from store.folding import CONFIDENCE
from store.records import RecordInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

METHOD_VERSION = 1
_SEGMENT_SHORTEST = 2  # one point alone is a spike until another one agrees with it
_SPREAD_MIN = 1e-6  # log units; a spread below it is the rounding of floats
_LONE_SPREADS = 5.0  # how far a point sticks out of its neighbours to count as a spike
_DIFFERENCE_MEDIAN = 0.6745 * math.sqrt(2)  # median of |difference of two normal draws|, in spreads
_MOVED_MIN = 0.5  # share of the difference of the means that the medians must show too
_SHRINK = math.sqrt(0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRule:
    """What counts as a step.

    Attributes:
        level: largest probability of finding any step in a series that has none.
        minimum_size: smallest relative change that is reported.
        minimum_segment: fewest points between two steps, and at either end; at least two,
            because one point cannot be told from a run that went wrong.
    """

    level: float = 0.01
    minimum_size: float = 0.005
    minimum_segment: int = _SEGMENT_SHORTEST

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise RecordInvalid(f"level is {self.level!r}: give a probability such as 0.01")
        if not (math.isfinite(self.minimum_size) and self.minimum_size >= 0):
            raise RecordInvalid(f"minimum_size is {self.minimum_size!r}: give a share such as 0.005")
        if self.minimum_segment < _SEGMENT_SHORTEST:
            raise RecordInvalid(f"minimum_segment is {self.minimum_segment}: two points are the fewest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of level.

    Attributes:
        last_before: index of the last point before it.
        position: index of the first point after it. Spikes may lie between the two: nobody
            knows on which side.
        size: (after - before) / before; positive is slower.
        size_low, size_high: 95 % interval of the size, given that the place is right.
        p_value: the chance of finding such a step anywhere in a series that has none.
    """

    last_before: int
    position: int
    size: float
    size_low: float
    size_high: float
    p_value: float


def find_steps(logs: Sequence[float], *, quantum: float = 0.0, rule: StepRule | None = None) -> list[Step]:
    """Find the steps of one series, oldest first.

    Args:
        logs: natural logs of run centres, in commit order; what was not measured is left out.
        quantum: how far the timer's quantum alone can move a log centre: resolution / centre.
            It counts as no evidence and widens the intervals.
        rule: what counts as a step; the defaults where None.

    Raises:
        RecordInvalid: a value or the quantum is not finite, or the quantum is negative.

    Source: places to look at from Kovacs et al. 2023 (seeded binary segmentation).
    """
    rule = rule or StepRule()
    if not all(map(math.isfinite, logs)):
        where = next(index for index, value in enumerate(logs) if not math.isfinite(value))
        raise RecordInvalid(f"point {where} of the series is {logs[where]!r}: leave out what has no number")
    if not (math.isfinite(quantum) and quantum >= 0):
        raise RecordInvalid(f"quantum is {quantum!r}: give resolution / centre, or 0")
    values = np.asarray(logs, dtype=np.float64)
    spread_min = max(quantum / math.sqrt(12), _SPREAD_MIN)  # a rounded value is off by this much
    kept = _without_spikes(values, spread_min)
    search = _Search(values[kept], values.size, quantum, spread_min, rule)
    return [
        replace(step, last_before=int(kept[step.last_before]), position=int(kept[step.position]))
        for step in search.steps()
    ]


def _without_spikes(values: NDArray[np.float64], spread_min: float) -> NDArray[np.intp]:
    """Indices of the points that are left once those that stand alone are taken away, worst first.

    A point stands alone when it lies outside of both neighbours (at an end: the next two) by
    several times the usual difference of neighbours. After the worst has gone, the rest looks
    as if it had never been there.
    """
    kept = np.arange(values.size)
    while kept.size > 2 * _SEGMENT_SHORTEST:
        x = values[kept]
        near = np.stack([np.roll(x, 1), np.roll(x, -1)])
        near[:, 0], near[:, -1] = x[1:3], x[-3:-1]
        outside = np.maximum(x - near.max(axis=0), near.min(axis=0) - x)
        usual = max(float(np.median(np.abs(np.diff(x)))) / _DIFFERENCE_MEDIAN, spread_min)
        worst = int(np.argmax(outside))
        if outside[worst] <= _LONE_SPREADS * usual:
            break
        kept = np.delete(kept, worst)
    return kept


@dataclass(frozen=True, slots=True)
class _Split:
    """The best place to split the points ``start`` to ``stop``.

    Attributes:
        score: log of the likelihood ratio of two levels against one; comparable between spans.
    """

    start: int
    stop: int
    position: int
    score: float


@dataclass(frozen=True)
class _Search:
    """One search: the points without spikes, and what the evidence is held against.

    Attributes:
        measured: how many points there were with the spikes.
    """

    values: NDArray[np.float64]
    measured: int
    quantum: float
    spread_min: float
    rule: StepRule

    def steps(self) -> list[Step]:
        """Find candidates top down, then put them to the test between their final neighbours."""
        if self.values.size < 2 * self.rule.minimum_segment:
            return []
        positions = self._candidates(0, self.values.size)
        while positions:
            positions = self._relocated(positions)
            ends = [0, *positions, self.values.size]
            steps = [self._step(*ends[index : index + 3]) for index in range(len(positions))]
            failing = [step for step in steps if not self._holds(step)]
            if not failing:
                return steps
            # One at a time: without it, its neighbours have more points to stand on.
            weakest = min(failing, key=lambda step: (-step.p_value, abs(step.size)))
            positions.remove(weakest.position)
        return []

    @cached_property
    def _seeded(self) -> list[_Split]:
        """The best split of each span that is looked at, whatever the data say."""
        return [split for length in self._lengths() for split in self._splits(length)]

    @cached_property
    def _places(self) -> int:
        """How many places are tried, over all spans."""
        shortest = self.rule.minimum_segment
        return sum(split.stop - split.start - 2 * shortest + 1 for split in self._seeded)

    def _lengths(self) -> Iterator[int]:
        """Lengths of spans: all points, then shorter and shorter."""
        length, before = float(self.values.size), 0
        while (whole := math.floor(length)) >= 2 * self.rule.minimum_segment:
            if whole != before:
                yield whole
            length, before = length * _SHRINK, whole

    def _splits(self, length: int) -> Iterator[_Split]:
        """The best split of each span of one length; neighbours overlap by half or more."""
        room = self.values.size - length
        count = 2 * -(-self.values.size // length) - 1
        begun = {index * room // max(count - 1, 1) for index in range(count)}
        starts = sorted(begun | {room - start for start in begun})  # the same from either end
        spans = np.lib.stride_tricks.sliding_window_view(self.values, length)[starts]
        scores = self._scores(spans)
        best = np.argmax(scores, axis=1)
        for row, start in enumerate(starts):
            at = int(best[row])
            position = start + at + self.rule.minimum_segment
            yield _Split(start, start + length, position, float(scores[row, at]))

    def _scores(self, spans: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score of every allowed split of every row."""
        shortest, n = self.rule.minimum_segment, spans.shape[1]
        centred = spans - spans.mean(axis=1, keepdims=True)  # or squares would lose digits
        before = np.arange(shortest, n - shortest + 1)
        left = np.cumsum(centred, axis=1)[:, before - 1]
        weight = before * (n - before) / n
        difference = -left / weight  # the mean after minus the mean before
        inside = (centred**2).sum(axis=1, keepdims=True) - weight * difference**2
        variance = np.maximum(inside / (n - 2), self.spread_min**2)
        surprise = np.maximum(np.abs(difference) - self.quantum, 0.0)
        scores: NDArray[np.float64] = (n - 2) / 2 * np.log1p(weight * surprise**2 / variance / (n - 2))
        return scores

    def _p_value(self, score: float, points: int) -> float:
        """Of a score over so many points, after all the places that were tried."""
        freedom = points - 2
        t = math.sqrt(freedom * math.expm1(min(2 * score / freedom, 700.0)))
        return min(2 * float(stdtr(freedom, -t)) * self._places, 1.0)

    def _candidates(self, start: int, stop: int) -> list[int]:
        """Places where the span itself, or a seeded one inside, splits; those of the halves with them."""
        if stop - start < 2 * self.rule.minimum_segment:
            return []
        inside = [split for split in self._seeded if start <= split.start and split.stop <= stop]
        significant = [
            split
            for split in (self._whole(start, stop), *inside)
            if self._p_value(split.score, split.stop - split.start) <= self.rule.level
        ]
        if not significant:
            return []
        best = max(significant, key=lambda split: split.score).position
        return [*self._candidates(start, best), best, *self._candidates(best, stop)]

    def _whole(self, start: int, stop: int) -> _Split:
        """The best split between two places."""
        scores = self._scores(self.values[np.newaxis, start:stop])[0]
        at = int(np.argmax(scores))
        return _Split(start, stop, start + at + self.rule.minimum_segment, float(scores[at]))

    def _relocated(self, positions: Sequence[int]) -> list[int]:
        """Each place moved to the best one between its neighbours, the greatest gain first."""
        moved = list(positions)
        while True:
            ends = [0, *moved, self.values.size]
            gains = []
            for index, position in enumerate(moved):
                start, stop = ends[index], ends[index + 2]
                best = self._whole(start, stop)
                gains.append((best.score - self._score_at(start, position, stop), index, best.position))
            gain, index, position = max(gains)
            if gain <= 0:
                return moved
            moved[index] = position

    def _score_at(self, start: int, position: int, stop: int) -> float:
        scores = self._scores(self.values[np.newaxis, start:stop])[0]
        return float(scores[position - start - self.rule.minimum_segment])

    def _step(self, start: int, position: int, stop: int) -> Step:
        """The step at a place, seen between its neighbours."""
        before, after = self.values[start:position], self.values[position:stop]
        difference, freedom = float(after.mean() - before.mean()), stop - start - 2
        inside = float(((before - before.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum())
        spread = max(math.sqrt(inside / freedom), self.spread_min)
        error = spread * math.sqrt(1 / before.size + 1 / after.size)
        half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error + self.quantum
        moved = float(np.median(after) - np.median(before))
        chances = [
            self._p_value(self._score_at(start, position, stop), stop - start),
            self._chance_of_spikes(min(before.size, after.size)),
            # A few points far out move a mean and not a median: then the level is what it was.
            0.0 if moved * difference >= _MOVED_MIN * difference**2 else 1.0,
        ]
        return Step(
            last_before=position - 1,
            position=position,
            size=math.expm1(difference),
            size_low=math.expm1(difference - half),
            size_high=math.expm1(difference + half),
            p_value=max(chances),
        )

    def _chance_of_spikes(self, points: int) -> float:
        """How likely so many spikes stand side by side somewhere, as often as they occur in this series.

        Where one run in ten goes wrong, two in a row are no news; only a longer stay is.
        """
        share = (self.measured - self.values.size) / self.measured
        return min(self.measured * share**points, 1.0)

    def _holds(self, step: Step) -> bool:
        worth_it = abs(step.size) >= max(self.rule.minimum_size, self.quantum)
        return step.p_value <= self.rule.level and worth_it
