"""Points that do not differ from their pools, told from the others in whole columns: pure.

Of most points of a long history there is nothing to say. Here that is said of hundreds of
thousands, in a tenth of the time that one after another takes. Whatever has something to say (a
change, a drift, a baseline of another kind, a second session) is left to ``alerts.verdicts``. The
arithmetic is the same, and so are the verdicts, to the last digit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alerts.absence import history_unknown
from alerts.baseline import describe_pool, spread_of_both
from alerts.direction import drop_to, larger_is_better, seen_change
from alerts.effects import effects_against_pools
from alerts.judge import with_policy_named
from alerts.levels import divide
from alerts.partner import partner_id
from alerts.policy import reaches
from alerts.verdicts import rise_to, say_between, say_unchanged
from store.comparing import pools_of, reach
from store.folding import CONFIDENCE
from store.outlines import STATUSES, TIERS
from store.records import BaselineKind, FoldStatus, Outcome, Reason, Standing
from store.verdict_columns import Repeated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from alerts.effects import Effects
    from alerts.levels import Behind, Division
    from alerts.past import Past, SeenFrom
    from alerts.policy import Policy
    from alerts.trunks import Usable
    from store.comparing import Pools
    from store.outlines import Outlines

    Rows = NDArray[np.intp]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    """Points of one run that are held by one policy against their own series in the same other runs.

    Attributes:
        run_id: of the run.
        rows: of the points in the outlines; shape (points,).
        pool: of each, the rows of its pool, nearest first; shape (points, runs).
        anchor: of each, the rows of its anchor, likewise; shape (points, 0) where there is none.
        against: the pool in words.
        since: the release or commit up to which the anchor goes.
        pool_ids, anchor_ids: the runs of both; None where there is no anchor.
    """

    policy: Policy
    run_id: str
    rows: Rows
    pool: Rows
    anchor: Rows
    against: str
    since: str | None
    pool_ids: tuple[str, ...]
    anchor_ids: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """Points of which there is nothing to say.

    Attributes:
        is_quiet: by row of the outlines.
        p_value: by row, where it is one of the suite's tests; else NaN.
        batches: the points with all that belongs to their verdicts.
    """

    is_quiet: NDArray[np.bool_]
    p_value: Floats
    batches: Sequence[_Batch]

    def others(self, rows: range) -> list[int]:
        """Those of the rows of a run that are not quiet."""
        found: list[int] = (np.flatnonzero(~self.is_quiet[rows.start : rows.stop]) + rows.start).tolist()
        return found

    def verdicts(self, q_value: Floats) -> Iterator[dict[str, Any]]:
        """The columns of their verdicts, named as in the store, for ``VerdictColumns.add_columns``.

        Args:
            q_value: by row of the outlines; NaN where there is none.
        """
        return (batch.verdicts() | {"q_value": q_value[batch.rows]} for batch in self.batches)


def find_quiet(past: Past, seen: Iterable[tuple[SeenFrom, Collection[int]]]) -> Quiet:
    """The points of some runs of which there is nothing to say.

    Args:
        past: of the repository.
        seen: the runs, each with the numbers of the series that must be left to others.
    """
    points = past.points
    looked_at, is_quiet = np.zeros(points.run.size, np.bool_), np.zeros(points.run.size, np.bool_)
    benches: dict[tuple[Policy, int, int], list[_Bench]] = defaultdict(list)
    for each, left_out in seen:
        looked_at[each.rows.start : each.rows.stop] = True
        for bench in _benches(each, left_out):
            benches[bench.policy, bench.pool.shape[1], bench.anchor.shape[1]].append(bench)
    compared = [_Batch.of(points, alike) for alike in benches.values()]
    for batch in compared:
        is_quiet[batch.rows] = True
    # A sentinel that moved takes back what all others say: then the whole run is for others to judge.
    for run in np.unique(points.run[looked_at & past.is_sentinel & ~is_quiet]).tolist():
        is_quiet[points.begin[run] : points.begin[run + 1]] = False
    kept = [batch.taken(np.flatnonzero(is_quiet[batch.rows])) for batch in compared]
    p_value = np.full(points.run.size, np.nan)
    for batch in kept:
        p_value[batch.rows] = batch.pool.effects.p_value
    p_value[past.is_sentinel] = np.nan
    return Quiet(is_quiet=is_quiet, p_value=p_value, batches=kept)


def _benches(seen: SeenFrom, left_out: Collection[int]) -> Iterator[_Bench]:
    header, past, points = seen.header, seen.past, seen.past.points
    if header.dirty or partner_id(header) or history_unknown(header) or seen.is_interrupted:
        return
    numbers, policies = past.policies
    rows = np.arange(seen.rows.start, seen.rows.stop)
    other = [*left_out, *(code for code in points.series_code[rows].tolist() if _is_renamed(seen, code))]
    rows = rows[points.has_bounds[rows] & ~np.isin(points.series_code[rows], other)]
    for number in np.unique(numbers[rows]).tolist():
        policy = policies[number]
        is_good = np.array([reaches(tier, policy.minimum_tier) for tier in TIERS])
        own = rows[(numbers[rows] == number) & is_good[points.tier[rows]]]
        usable = seen.trunk.usable(policy.minimum_tier)
        patterns = usable.pattern[points.series_code[own]]
        for pattern in np.unique(patterns).tolist():
            yield from _benches_alike(seen, usable, own[patterns == pattern], policy)


def _is_renamed(seen: SeenFrom, series: int) -> bool:
    names = seen.renames.today
    return bool(names) and seen.past.points.series[series].case.benchmark in names.values()


def _benches_alike(seen: SeenFrom, usable: Usable, rows: Rows, policy: Policy) -> Iterator[_Bench]:
    """The points of series that were measured in the same runs, with their pools where they have any."""
    points = seen.past.points
    series = points.series_code[rows]
    places = usable.places(int(series[0]), seen.near, seen.far)
    behind = seen.behind(usable.rows[places])
    offsets = places[behind.kept] - usable.begin[series[0]]
    ids = [run.run_id for run in behind.runs]
    for division, own in _divisions(seen, behind, rows, policy):
        begin, anchor = usable.begin[points.series_code[own]][:, np.newaxis], division.anchor or range(0)
        yield _Bench(
            policy=policy,
            run_id=seen.header.run_id,
            rows=own,
            pool=usable.rows[begin + offsets[: division.nearest]],
            anchor=usable.rows[begin + offsets[anchor.start : anchor.stop]],
            against=describe_pool(division.nearest, behind.runs[0].commit_sha, division.accepted),
            since=division.since,
            pool_ids=tuple(ids[: division.nearest]),
            anchor_ids=tuple(ids[anchor.start : anchor.stop]) if anchor else None,
        )


def _divisions(seen: SeenFrom, behind: Behind, rows: Rows, policy: Policy) -> Iterator[tuple[Division, Rows]]:
    """How the runs behind divide into pool and anchor, and for which of the points, where there is a pool."""
    points, past = seen.past.points, seen.past
    series = points.series_code[rows]
    divided: dict[Division, list[Rows]] = defaultdict(list)
    is_divided = past.is_divided[series]
    for own in (rows[~is_divided], *rows[is_divided][:, np.newaxis]):
        if not own.size:
            continue
        landmarks = past.landmarks(points.series[points.series_code[own[0]]], seen.line, seen.renames)
        division = divide(behind, policy, landmarks)
        if division is not None and division.nearest >= policy.pool_minimum:
            divided[division].append(own)
    return ((division, np.concatenate(parts)) for division, parts in divided.items())


@dataclass(frozen=True, kw_only=True)
class _Beside:
    """Points beside their pools, or beside their anchors; columns by point.

    Attributes:
        center_ms, resolution_ms: of the points.
        run_sd, run_df: the spread between runs, and with how many degrees of freedom it is known.
    """

    center_ms: Floats
    resolution_ms: Floats
    pools: Pools
    run_sd: Floats
    run_df: int

    def reach(self, confidence: float) -> tuple[Floats, Floats]:
        """How far around its centre each point may lie from its pool."""
        return reach(
            self.center_ms,
            run_sd=self.run_sd,
            run_df=self.run_df,
            resolution_ms=self.resolution_ms,
            confidence=confidence,
        )

    @cached_property
    def effects(self) -> Effects:
        """By how much each point differs from its pool."""
        return effects_against_pools(
            baseline_ms=self.pools.center,
            candidate_ms=self.center_ms,
            run_sd=self.run_sd,
            runs=self.pools.runs,
            quantum_ms=self.resolution_ms,
            run_df=self.run_df,
        )

    def taken(self, kept: Rows) -> _Beside:
        """Some of the points, by their places."""
        names = ("low", "center", "high", "run_sd")
        return replace(
            self,
            center_ms=self.center_ms[kept],
            resolution_ms=self.resolution_ms[kept],
            run_sd=self.run_sd[kept],
            pools=replace(self.pools, **{name: getattr(self.pools, name)[kept] for name in names}),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """Points that do not differ, of benches with one policy and with pools and anchors of one size.

    Attributes:
        rows: of the points.
        bench: which of the benches each belongs to.
        low_ms, high_ms: the ends of their intervals, as they were compared with the pools.
        anchor: None where there are no anchors.
    """

    points: Outlines
    benches: Sequence[_Bench]
    rows: Rows
    bench: Rows
    low_ms: Floats
    high_ms: Floats
    pool: _Beside
    anchor: _Beside | None

    @classmethod
    def of(cls, points: Outlines, benches: Sequence[_Bench]) -> _Batch:
        """Those of the points that overlap their pools and their anchors."""
        policy = benches[0].policy
        rows = np.concatenate([bench.rows for bench in benches])
        pool, anchor = _sides(points, rows, benches)
        least_low, least_high = pool.reach(CONFIDENCE)
        low, high = np.minimum(points.low_ms[rows], least_low), np.maximum(points.high_ms[rows], least_high)
        overlaps = (low <= pool.pools.high) & (high >= pool.pools.low)
        if anchor is not None:
            low_far, high_far = anchor.reach(policy.drift_confidence)
            overlaps &= np.minimum(points.low_ms[rows], low_far) <= anchor.pools.high
            overlaps &= np.maximum(points.high_ms[rows], high_far) >= anchor.pools.low
        whole = cls(
            points=points,
            benches=benches,
            rows=rows,
            bench=np.repeat(np.arange(len(benches)), [bench.rows.size for bench in benches]),
            low_ms=low,
            high_ms=high,
            pool=pool,
            anchor=anchor,
        )
        return whole.taken(np.flatnonzero(overlaps))

    def taken(self, kept: Rows) -> _Batch:
        """Some of the points, by their places."""
        return replace(
            self,
            rows=self.rows[kept],
            bench=self.bench[kept],
            low_ms=self.low_ms[kept],
            high_ms=self.high_ms[kept],
            pool=self.pool.taken(kept),
            anchor=None if self.anchor is None else self.anchor.taken(kept),
        )

    def verdicts(self) -> dict[str, Any]:
        """The columns of their verdicts, without q-values."""
        points, rows, pools, effects = self.points, self.rows, self.pool.pools, self.pool.effects
        smallest = self._smallest_seen()
        return {
            "run_id": Repeated([bench.run_id for bench in self.benches], self.bench),
            "series": Repeated(points.series, points.series_code[rows]),
            "outcome": Outcome.UNCHANGED,
            "reason": Reason.INTERVALS_OVERLAP,
            "message": self._messages(smallest),
            "standing": Standing.NONE,
            "tier": Repeated(TIERS, points.tier[rows]),
            "windows": points.windows[rows],
            "candidate_low_ms": self.low_ms,
            "candidate_center_ms": self.pool.center_ms,
            "candidate_high_ms": self.high_ms,
            "candidate_windows": points.windows[rows],
            "candidate_status": Repeated(STATUSES, points.status[rows]),
            "baseline_low_ms": pools.low,
            "baseline_center_ms": pools.center,
            "baseline_high_ms": pools.high,
            "baseline_windows": np.full(rows.size, pools.runs),
            "baseline_status": FoldStatus.OK,
            "baseline_kind": BaselineKind.POOL,
            "baseline_list": Repeated([bench.pool_ids for bench in self.benches], self.bench),
            "effect": effects.relative,
            "effect_low": effects.low,
            "effect_high": effects.high,
            "p_value": effects.p_value,
            "smallest_seen": smallest,
            **({} if self.anchor is None else self._drifts(self.anchor.effects)),
        }

    def _smallest_seen(self) -> Floats:
        """The smallest change that would have been flagged; NaN where none would."""
        policy, pools, center = self.benches[0].policy, self.pool.pools, self.pool.center_ms
        falls = np.array([larger_is_better(key, policy) for key in self.points.series], dtype=np.bool_)
        smallest = np.where(
            falls[self.points.series_code[self.rows]],
            drop_to(_positive(pools.low), pools.center, center, self.high_ms),
            rise_to(pools.high, pools.center, center, _positive(self.low_ms)),
        )
        return np.maximum(smallest, policy.flag_effect)

    def _messages(self, smallest: Floats) -> list[str]:
        policy, effects = self.benches[0].policy, self.pool.effects
        words = [seen_change(key, policy) for key in self.points.series]
        said = (
            say_unchanged(
                self.benches[bench].against,
                say_between(low, high),
                None if math.isnan(least) else least,
                words[series],
            )
            for bench, low, high, least, series in zip(
                self.bench.tolist(),
                effects.low.tolist(),
                effects.high.tolist(),
                smallest.tolist(),
                self.points.series_code[self.rows].tolist(),
                strict=True,
            )
        )
        return [with_policy_named(message, policy) for message in said]

    def _drifts(self, effects: Effects) -> dict[str, Any]:
        return {
            "drift_since": Repeated([bench.since for bench in self.benches], self.bench),
            "drift_effect": effects.relative,
            "drift_low": effects.low,
            "drift_high": effects.high,
            "drift_apart": False,
            "drift_list": Repeated([bench.anchor_ids for bench in self.benches], self.bench),
        }


def _sides(points: Outlines, rows: Rows, benches: Sequence[_Bench]) -> tuple[_Beside, _Beside | None]:
    """The points beside their pools and beside their anchors, with the spread that both show together."""
    pools = _pools(points, np.concatenate([bench.pool for bench in benches]))
    known: dict[str, Any] = {"center_ms": points.center_ms[rows], "resolution_ms": points.resolution_ms[rows]}
    behind = np.concatenate([bench.anchor for bench in benches])
    if not behind.shape[1]:
        return _Beside(**known, pools=pools, run_sd=pools.run_sd, run_df=pools.run_df), None
    anchors = _pools(points, behind)
    together = spread_of_both(pools.run_sd, pools.run_df, anchors.run_sd, anchors.run_df)
    known["run_df"] = pools.run_df + anchors.run_df
    return (
        _Beside(**known, pools=pools, run_sd=np.maximum(together, pools.run_sd)),
        _Beside(**known, pools=anchors, run_sd=np.maximum(together, anchors.run_sd)),
    )


def _pools(points: Outlines, rows: Rows) -> Pools:
    """Of rows of shape (pools, runs)."""
    return pools_of(points.log_center[rows], resolution_ms=points.resolution_ms[rows].max(axis=1))


def _positive(values: Floats) -> Floats:
    """NaN where a bound reaches down to zero, so that nothing can lie beyond it."""
    return np.where(values > 0, values, np.nan)
