"""Which earlier runs of a series make its pool, and which its anchor: pure.

A history is divided by accepted changes, by steps that were found in it, and by releases. The
pool is the newest level; the anchor is an older one, against which a drift shows that no single
commit does. docs/decisions/0008-baseline-cuts.md says why.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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
    one_of_each_sitting,
    sharing_spread,
)
from alerts.direction import larger_is_better
from store import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from alerts.policy import Policy
    from store.change_points import ChangePoint
    from store.records import RunHeader, SeriesPoint


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """Which of the runs that may serve, nearest first, make the baseline and its anchor.

    Attributes:
        nearest: so many of the nearest runs are the baseline.
        anchor: the places of the runs that the anchor takes; None where there is none.
        since: the release or commit up to which the anchor goes; None without one.
        accepted: the accepted change before which nothing was taken, where older runs were there.
    """

    nearest: int
    anchor: range | None = None
    since: str | None = None
    accepted: str | None = None


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a level begins: so many runs, nearest first, belong to it and to what came after."""

    runs: int
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
    behind = Behind.of([point.header for point in usable], line)
    division = divide(behind, policy, landmarks)
    return None if division is None else form(division, lambda place: usable[behind.kept[place]], policy)


def form(division: Division, point: Callable[[int], SeriesPoint], policy: Policy) -> Baseline | None:
    """The baseline that a division says; None only of no runs.

    Args:
        division: of the runs that may serve.
        point: what the run at a place measured.
        policy: how many runs make a pool.
    """
    found = form_baseline([point(place) for place in range(division.nearest)], policy)
    if found is None or division.anchor is None:
        return found and replace(found, accepted=division.accepted)
    anchor = anchored([point(place) for place in division.anchor], since=division.since or "")
    return replace(sharing_spread(found, anchor), accepted=division.accepted)


@dataclass(frozen=True, slots=True)
class Behind:
    """The runs that may serve as a baseline; made with ``Behind.of``.

    Attributes:
        runs: one after another from the nearest on.
        places: how far from what is judged each of them lies.
        kept: the place of each among the runs that they were chosen from.
        line: first-parent distance of every commit that may serve.
    """

    runs: Sequence[RunHeader]
    places: Sequence[int]
    kept: Sequence[int]
    line: Mapping[str, int]

    @classmethod
    def of(cls, runs: Sequence[RunHeader], line: Mapping[str, int]) -> Behind:
        """Of runs with a usable point of one series, nearest first, those that may serve together."""
        kept = one_of_each_sitting(runs)
        chosen = runs if len(kept) == len(runs) else [runs[place] for place in kept]
        return cls(chosen, [line[run.commit_sha or ""] for run in chosen], kept, line)

    def up_to(self, sha: str) -> Behind:
        """Those that lie no further back than a commit of the line."""
        end = bisect_right(self.places, self.line[sha])
        if end == len(self.runs):
            return self
        return Behind(self.runs[:end], self.places[:end], self.kept[:end], self.line)


def divide(behind: Behind, policy: Policy, landmarks: Landmarks) -> Division | None:
    """Which runs make the baseline and its anchor; None where there are no runs.

    Args:
        behind: the runs that may serve.
        policy: how many runs a pool takes.
        landmarks: what divides the history of the series.
    """
    since = behind if landmarks.accepted is None else behind.up_to(landmarks.accepted)
    if not since.runs:
        return None
    division = _History(since, policy, landmarks).divided()
    # A reader wonders why a series with a long history has so few runs to be compared with.
    return division if since is behind else replace(division, accepted=landmarks.accepted)


@dataclass(frozen=True, slots=True)
class _History:
    """The runs that may serve and what divides them."""

    behind: Behind
    policy: Policy
    landmarks: Landmarks

    def divided(self) -> Division:
        """The runs of the newest level, and those of an older one."""
        starts = self._starts()
        # An improvement that lasted is what everything after it has to keep.
        end = next((start.runs for start in starts if not start.is_worse), len(self.behind.runs))
        if starts and starts[0].runs < end:
            division = self._with_anchor(min(starts[0].runs, self.policy.pool_size), end, starts)
            # Without an anchor to say that it is there, a step for the worse would become the new normal.
            if division.anchor is not None:
                return division
        if end < self.policy.pool_minimum:
            return Division(nearest=1)
        return self._with_anchor(min(end, self.policy.pool_size), end, starts)

    def _starts(self) -> list[_Start]:
        """The levels that the runs have, newest first; one of too few runs is none yet."""
        found = []
        for step in self.landmarks.steps:
            after = self._after(step)
            if after is not None and self.policy.pool_minimum <= after < len(self.behind.runs):
                falling = larger_is_better(step.series, self.policy)
                found.append(_Start(after, is_worse=(step.size > 0) != falling))
        return sorted(found, key=lambda start: start.runs)

    def _after(self, step: ChangePoint) -> int | None:
        """How many runs came after a step; None where that is not known here."""
        behind = self.behind
        if step.commit_sha not in behind.line:
            return None
        first = next((place for place, run in enumerate(behind.runs) if run.run_id == step.run_id), None)
        if first is not None:
            return first + 1
        if step.within_a_commit:
            return None  # which of the runs on the commit come after it
        return bisect_right(behind.places, behind.line[step.commit_sha])

    def _with_anchor(self, nearest: int, end: int, starts: Sequence[_Start]) -> Division:
        """The nearest runs, and before them those up to the newest release; without one, the oldest."""
        behind, size, fewest = self.behind, self.policy.pool_size, self.policy.pool_minimum
        inner = {start.runs for start in starts if nearest < start.runs < end}
        levels = [range(*edges) for edges in pairwise(sorted({nearest, end, *inner}))]
        for sha in self._releases_before(nearest):
            reached = (
                range(bisect_left(behind.places, behind.line[sha], level.start, level.stop), level.stop)
                for level in levels
            )
            up_to = next(filter(None, reached), range(0))
            if len(up_to) >= fewest:
                return Division(nearest=nearest, anchor=up_to[:size], since=self.landmarks.releases[sha])
        oldest = next((level for level in reversed(levels) if len(level) >= fewest), None)
        if oldest is None:
            return Division(nearest=nearest)
        anchor = oldest[-size:]
        return Division(
            nearest=nearest, anchor=anchor, since=shown.short(behind.runs[anchor.start].commit_sha)
        )

    def _releases_before(self, nearest: int) -> list[str]:
        """The commits of releases that the nearest runs do not reach beyond, nearest first."""
        line, oldest = self.behind.line, self.behind.places[nearest - 1]
        before = (sha for sha in self.landmarks.releases if line.get(sha, -1) >= oldest)
        return sorted(before, key=line.__getitem__)
