"""What a candidate is compared with, chosen from what was measured on its ancestors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alerts.policy import Policy, reaches
from store import shown
from store.comparing import pool_of
from store.portable import Number, sqrt
from store.records import BaselineKind, Interval, Reason, SeriesPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.records import RunHeader

SENTINEL = "sentinel"  # tag of the tool's own calls, which watch the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One or more runs of a series on ancestors of what is judged.

    Attributes:
        points: one per run, nearest ancestor first, newest first on the same commit.
        interval: what the candidate's interval has to stay clear of, in milliseconds.
        run_sd: standard deviation of the log centres of runs of the same code; None for a single run.
        run_df: degrees of freedom that it was estimated with.
        since: of an anchor, the release or commit up to which its runs go.
        accepted: the accepted change before which nothing was taken, where older runs were there.
        anchor: older runs for the second comparison; None where there are too few.
    """

    kind: BaselineKind
    points: tuple[SeriesPoint, ...]
    interval: Interval
    run_sd: float | None = None
    run_df: int = 0
    since: str | None = None
    accepted: str | None = None
    anchor: Baseline | None = None

    @property
    def nearest(self) -> SeriesPoint:
        """The point that shows what ran before: its kernels, its commit."""
        return self.points[0]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs the baseline rests on."""
        return tuple(point.header.run_id for point in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Why a candidate gets no verdict, and what to do about it."""

    reason: Reason
    message: str


def form_baseline(points: Sequence[SeriesPoint], policy: Policy) -> Baseline | None:
    """A pool of the first points, or the first alone where they are too few, or None of none.

    Args:
        points: usable points of one series, the most telling first.
        policy: how many runs a pool takes.
    """
    if len(points) >= policy.pool_minimum:
        return _pool(points[: policy.pool_size], BaselineKind.POOL)
    if points:
        return Baseline(kind=BaselineKind.SINGLE, points=(points[0],), interval=points[0].interval)
    return None


def measured_before(
    candidate: SeriesPoint, history: Iterable[SeriesPoint], line: Mapping[str, int]
) -> list[SeriesPoint]:
    """Points of committed code on the line, nearest first; one per run and series."""
    unique = {
        (point.header.run_id, point.series): point
        for point in history
        if on_line(candidate.header, point.header, line)
    }
    return sorted(unique.values(), key=lambda point: (*distance(point.header, line), point.series.id))


def on_line(candidate: RunHeader, other: RunHeader, line: Mapping[str, int]) -> bool:
    """Whether another run measured committed code that the candidate's descends from."""
    return (
        other.run_id != candidate.run_id
        and other.repository == candidate.repository
        and not other.dirty
        and other.commit_sha in line
    )


def one_of_each_sitting(runs: Sequence[RunHeader]) -> list[int]:
    """The places of the runs that may be part of one baseline, the first of each sitting alone.

    Runs that were measured right after one another share what that hour did to the machine. Many of
    them would make a pool seem far steadier than runs of different days are; why, and by how much, is in
    docs/decisions/0014-sittings.md.
    """
    sittings: set[str] = set()
    places = []
    for place, run in enumerate(runs):
        sitting = run.sitting
        if sitting is not None and sitting in sittings:
            continue
        places.append(place)
        if sitting is not None:
            sittings.add(sitting)
    return places


def conditions(header: RunHeader) -> tuple[str, ...]:
    """What two runs have to share for any of their series to be the same."""
    return header.gpu_uuid, header.timer, header.clock_regime, header.environment


def distance(header: RunHeader, line: Mapping[str, int]) -> tuple[int, float, str]:
    """Sorts runs on the line: nearest commit first, then newest, then by id. Never by commit date."""
    return line[header.commit_sha or ""], -header.started_at.timestamp(), header.run_id


def is_usable(point: SeriesPoint, policy: Policy) -> bool:
    """Whether a point may be part of a baseline."""
    return point.interval.bounds is not None and reaches(point.tier, policy.minimum_tier)


def describe(baseline: Baseline) -> str:
    """A baseline in a few words, such as ``20 runs up to 1a2b3c4d5``."""
    newest = baseline.nearest.header.commit_sha
    if baseline.kind is BaselineKind.PAIRED:
        return f"the paired run of {shown.short(newest)} in the same session"
    if baseline.kind is BaselineKind.SINGLE:
        return f"one run of {shown.short(newest)}{_after(baseline.accepted)}"
    if baseline.since is not None:
        return f"{shown.count(len(baseline.points), 'run')} up to {shown.visible(baseline.since)}"
    return describe_pool(len(baseline.points), newest, baseline.accepted)


def describe_pool(runs: int, newest: str | None, accepted: str | None) -> str:
    """A pool in a few words, from the number of its runs and the commit of the nearest one."""
    return f"{shown.count(runs, 'run')} up to {shown.short(newest)}{_after(accepted)}"


def _after(accepted: str | None) -> str:
    return "" if accepted is None else f" since the change accepted at {shown.short(accepted)}"


def anchored(points: Sequence[SeriesPoint], *, since: str) -> Baseline:
    """An anchor of all these points, of one series, nearest first."""
    return _pool(points, BaselineKind.ANCHOR, since=since)


def sharing_spread(pool: Baseline, anchor: Baseline | None) -> Baseline:
    """The pool with its anchor, both with the spread between runs that the two show together.

    Twice the runs know the spread better, so that fewer flags are false. Neither gets less than
    its own: a machine may have become less steady.
    """
    if anchor is None or pool.run_sd is None or anchor.run_sd is None:
        return pool
    freedom = pool.run_df + anchor.run_df
    together = spread_of_both(pool.run_sd, pool.run_df, anchor.run_sd, anchor.run_df)
    return replace(
        pool,
        run_sd=max(together, pool.run_sd),
        run_df=freedom,
        anchor=replace(anchor, run_sd=max(together, anchor.run_sd), run_df=freedom),
    )


def spread_of_both(pool_sd: Number, pool_df: int, anchor_sd: Number, anchor_df: int) -> Number:
    """The standard deviation that a pool and its anchor show together."""
    squares = pool_df * pool_sd * pool_sd + anchor_df * anchor_sd * anchor_sd
    return sqrt(squares / (pool_df + anchor_df))


def _pool(points: Sequence[SeriesPoint], kind: BaselineKind, *, since: str | None = None) -> Baseline:
    pool = pool_of(
        [center for point in points if (center := point.interval.center) is not None],
        resolution_ms=max(point.resolution_ms for point in points),
    )
    return Baseline(
        kind=kind,
        points=tuple(points),
        interval=pool.interval,
        run_sd=pool.run_sd,
        run_df=pool.run_df,
        since=since,
    )
