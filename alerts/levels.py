"""Which earlier runs of a series make its pool, and which its anchor: pure.

A history is divided by accepted changes, by steps that were found in it, and by releases. The
pool is the newest level; the anchor is an older one, against which a drift shows that no single
commit does. docs/decisions/0008-baseline-cuts.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from alerts.baseline import (
    Baseline,
    anchored,
    distance,
    form_baseline,
    is_usable,
    on_line,
    sharing_spread,
)
from alerts.direction import larger_is_better
from store import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alerts.policy import Policy
    from store.change_points import ChangePoint
    from store.records import SeriesPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Landmarks:
    """What divides the history of a series.

    Attributes:
        accepted: the newest commit on the line whose change somebody accepted. What was measured
            before it is no baseline any more.
        steps: where the series changed its level, as a search of its history found.
        releases: the name of the release on each commit that has one.
    """

    accepted: str | None = None
    steps: Sequence[ChangePoint] = ()
    releases: Mapping[str, str] = field(default_factory=dict)


NO_LANDMARKS = Landmarks()


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a level begins: so many points, nearest first, belong to it and to what came after."""

    points: int
    is_worse: bool


def choose_baseline(
    candidate: SeriesPoint,
    history: Iterable[SeriesPoint],
    line: Mapping[str, int],
    policy: Policy,
    landmarks: Landmarks = NO_LANDMARKS,
) -> Baseline | None:
    """The strongest baseline that the history offers, with an anchor where there is one; or None.

    Args:
        candidate: the point to be judged.
        history: points of any run and any series, in any order.
        line: first-parent distance from the merge-base of every commit that may serve.
        policy: how many runs a pool takes, and of which tier.
        landmarks: what divides the history.
    """
    unique = {
        point.header.run_id: point
        for point in history
        if point.series == candidate.series
        and on_line(candidate.header, point.header, line)
        and is_usable(point, policy)
    }
    usable = sorted(unique.values(), key=lambda point: distance(point.header, line))
    return choose_among(usable, line, policy, landmarks)


def choose_among(
    usable: Sequence[SeriesPoint], line: Mapping[str, int], policy: Policy, landmarks: Landmarks
) -> Baseline | None:
    """As ``choose_baseline``, from points that may all serve: one per run, nearest first."""
    if landmarks.accepted is None:
        return _divided(usable, line, policy, landmarks)
    oldest = line[landmarks.accepted]
    since = [point for point in usable if line[point.header.commit_sha or ""] <= oldest]
    found = _divided(since, line, policy, landmarks)
    # A reader wonders why a series with a long history has so few runs to be compared with.
    return replace(found, accepted=landmarks.accepted) if found and len(since) < len(usable) else found


def _divided(
    usable: Sequence[SeriesPoint], line: Mapping[str, int], policy: Policy, landmarks: Landmarks
) -> Baseline | None:
    """The pool of the newest level and its anchor, from all points that may serve, nearest first."""
    divided = _Divided(_starts(usable, line, policy, landmarks.steps), line, policy, landmarks)
    improved = next((start.points for start in divided.starts if not start.is_worse), len(usable))
    since = usable[:improved]  # an improvement that lasted is what everything after it has to keep
    newest = next(iter(divided.starts), None)
    if newest is not None and newest.points < len(since):
        pool = form_baseline(usable[: newest.points], policy)
        anchor = pool and divided.anchor(pool, since)
        # Without an anchor to say that it is there, a step for the worse would become the new normal.
        if pool is not None and anchor is not None:
            return sharing_spread(pool, anchor)
    pool = form_baseline(since, policy)
    return pool and sharing_spread(pool, divided.anchor(pool, since))


def _starts(
    points: Sequence[SeriesPoint], line: Mapping[str, int], policy: Policy, steps: Sequence[ChangePoint]
) -> list[_Start]:
    """The levels that the points have, newest first; one of too few points is none yet."""
    found = []
    for step in steps:
        if step.commit_sha not in line:
            continue
        first = next((point for point in points if point.header.run_id == step.run_id), None)
        if first is not None:
            edge = distance(first.header, line)
            after = sum(distance(point.header, line) <= edge for point in points)
        elif step.within_a_commit:
            continue  # which of the runs on the commit come after it is not known here
        else:
            after = sum(line[point.header.commit_sha or ""] <= line[step.commit_sha] for point in points)
        falling = larger_is_better(step.series, policy)
        if policy.pool_minimum <= after < len(points):
            found.append(_Start(after, is_worse=(step.size > 0) != falling))
    return sorted(found, key=lambda start: start.points)


@dataclass(frozen=True, slots=True)
class _Divided:
    """A history with its levels."""

    starts: Sequence[_Start]
    line: Mapping[str, int]
    policy: Policy
    landmarks: Landmarks

    def anchor(self, pool: Baseline, points: Sequence[SeriesPoint]) -> Baseline | None:
        """The runs up to the newest release before the pool; without one, the oldest; None of too few.

        Args:
            pool: the nearest of the points.
            points: all that may serve, nearest first.
        """
        first, size, fewest = len(pool.points), self.policy.pool_size, self.policy.pool_minimum
        inner = {start.points for start in self.starts if first < start.points < len(points)}
        edges = sorted({first, len(points), *inner})
        levels = [points[begin:end] for begin, end in pairwise(edges)]
        for sha in self._releases_before(pool):
            reached = (
                [point for point in level if self._distance(point) >= self.line[sha]] for level in levels
            )
            up_to = next(filter(None, reached), [])
            if len(up_to) >= fewest:
                return anchored(up_to[:size], since=self.landmarks.releases[sha])
        oldest = next((level for level in reversed(levels) if len(level) >= fewest), None)
        if oldest is None:
            return None
        runs = oldest[-size:]
        return anchored(runs, since=shown.short(runs[0].header.commit_sha))

    def _releases_before(self, pool: Baseline) -> list[str]:
        """The commits of releases that the pool does not reach beyond, nearest first."""
        oldest = self._distance(pool.points[-1])
        before = (sha for sha in self.landmarks.releases if self.line.get(sha, -1) >= oldest)
        return sorted(before, key=self.line.__getitem__)

    def _distance(self, point: SeriesPoint) -> int:
        return self.line[point.header.commit_sha or ""]
