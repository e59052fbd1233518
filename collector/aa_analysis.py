"""How far runs of the same code lie apart, and what that would hide: pure.

Every difference between the runs is noise. A pair of them whose intervals do not overlap is
the false alarm that a verdict against a single run would have raised; the factor by which one
of a pair would have to be slower for its interval to stand clear is what could have been seen.
The same is told of each run and the pool of the others, by the rule that verdicts go by.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import replace
from itertools import combinations, permutations
from typing import TYPE_CHECKING

from collector.errors import StudyError
from collector.wall_time import wall_time
from store.comparing import POOL_RUNS_MAX, POOL_RUNS_MIN, compare_intervals, pool_of, widened
from store.records import Outcome, Tier
from store.studies import AaResult, AaStudy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from store.comparing import Pool
    from store.records import Case, Interval, Measurement, Run, SeriesKey

POWER = 0.95  # share of the pairs that would have shown the smallest change seen
RUNS_MIN = 2


def analyse(runs: Sequence[Run], *, study_id: str, analysed_at: datetime, tool_version: str) -> AaStudy:
    """Compare runs of the same code with one another, series by series.

    Args:
        runs: at least two; that their code is the same where it matters is for the caller to know.
        study_id: a UUID.
        analysed_at: when, with its time zone.
        tool_version: version of the tool that analyses.

    Raises:
        StudyError: there are too few runs, or runs of two repositories, or no series that two
            of them gave an interval for.
    """
    ordered = sorted(runs, key=lambda run: (run.header.started_at, run.header.run_id))
    repositories = sorted({run.header.repository for run in ordered})
    if len(ordered) < RUNS_MIN:
        raise StudyError(f"{len(ordered)} run cannot be compared with another: measure {RUNS_MIN} or more")
    if len(repositories) > 1:
        raise StudyError(
            f"the runs are of different repositories ({', '.join(repositories)}): name those of one"
        )
    results = [
        _result(series, measurements)
        for series, measurements in _by_series(ordered).items()
        if len(measurements) >= RUNS_MIN
    ]
    if not results:
        raise StudyError(
            "no series was measured twice with an interval: runs are compared on one GPU, with one timer and "
            "environment, and need three passes or more"
        )
    seconds = [(run.header.ended_at - run.header.started_at).total_seconds() for run in ordered]
    return AaStudy(
        study_id=study_id,
        repository=repositories[0],
        commit_shas=tuple(dict.fromkeys(run.header.commit_sha for run in ordered if run.header.commit_sha)),
        gpu_uuids=tuple(dict.fromkeys(run.header.gpu_uuid for run in ordered)),
        run_ids=tuple(run.header.run_id for run in ordered),
        left_out=_left_out(ordered, results),
        seconds=sum(seconds),
        seconds_per_case=statistics.fmean(
            each / max(len(_cases(run)), 1) for each, run in zip(seconds, ordered, strict=True)
        ),
        tool_version=tool_version,
        analysed_at=analysed_at,
        results=tuple(sorted(results, key=_by_name)),
        wall_time=wall_time(ordered),
    )


def smallest_slowdown(baseline: Interval, candidate: Interval, *, resolution_ms: float) -> float | None:
    """By how much the candidate would have to be slower for its interval to clear the baseline's.

    That is what folding the candidate's windows again, each sample that much longer, would give:
    the fold scales with its windows, all but the timer's quantum. Negative where the intervals
    are apart as they are; None where one was refused.

    Args:
        baseline: what the candidate has to stay clear of.
        candidate: folded, and widened where it is compared with a pool.
        resolution_ms: the timer's quantum.
    """
    if baseline.bounds is None or candidate.bounds is None:
        return None
    (low, _, _), (_, _, high) = candidate.bounds, baseline.bounds
    return (high + resolution_ms / 2) / (low + resolution_ms / 2) - 1


def _by_series(runs: Sequence[Run]) -> dict[SeriesKey, list[Measurement]]:
    """The measurements that have an interval, oldest run first."""
    found: dict[SeriesKey, list[Measurement]] = defaultdict(list)
    for run in runs:
        for measurement in run.measurements:
            if measurement.interval.bounds is not None:
                found[run.series_key(measurement)].append(measurement)
    return found


def _result(series: SeriesKey, measurements: Sequence[Measurement]) -> AaResult:
    logs = [math.log(m.interval.center) for m in measurements if m.interval.center]
    spreads = [statistics.variance(_window_logs(m)) for m in measurements if len(m.counted_windows) > 1]
    seen = [
        smallest_slowdown(one.interval, other.interval, resolution_ms=other.resolution_ms)
        for one, other in permutations(measurements, 2)
    ]
    pairs = combinations((m.interval for m in measurements), 2)
    result = AaResult(
        series=series,
        tier=max((m.tier for m in measurements), default=Tier.C),
        runs=len(measurements),
        center_ms=math.exp(statistics.median(logs)),
        run_sd=_sd(logs),
        window_sd=math.sqrt(statistics.fmean(spreads)),
        pairs=math.comb(len(measurements), 2),
        pairs_flagged=sum(_are_apart(one, other) for one, other in pairs),
        smallest_seen=_seen_by_most(seen),
    )
    return _with_pools(result, measurements)


def _with_pools(result: AaResult, measurements: Sequence[Measurement]) -> AaResult:
    """Add what a verdict on each run would have said against the pool of the others."""
    if len(measurements) <= POOL_RUNS_MIN:
        return result
    flagged, seen = 0, []
    for index, measurement in enumerate(measurements):
        resolution_ms = measurement.resolution_ms
        pool = _pool_around(measurements, index)
        interval = widened(
            measurement.interval, run_sd=pool.run_sd, run_df=pool.run_df, resolution_ms=resolution_ms
        )
        flagged += _are_apart(interval, pool.interval)
        seen.append(smallest_slowdown(pool.interval, interval, resolution_ms=resolution_ms))
    return replace(result, pool_runs=len(seen), pool_flagged=flagged, pool_smallest_seen=_seen_by_most(seen))


def _pool_around(measurements: Sequence[Measurement], index: int) -> Pool:
    """The runs without this one: where they are more than a pool takes, those nearest in time."""
    nearest = sorted(range(len(measurements)), key=lambda other: abs(other - index))
    others = [measurements[other] for other in nearest[1 : POOL_RUNS_MAX + 1]]
    return pool_of(
        [m.interval.center for m in others if m.interval.center is not None],
        resolution_ms=max(m.resolution_ms for m in others),
    )


def _seen_by_most(slowdowns: Sequence[float | None]) -> float:
    """The slowdown that 95 % of the comparisons would have shown."""
    known = sorted(slowdown for slowdown in slowdowns if slowdown is not None)
    return known[math.ceil(POWER * len(known)) - 1]


def _are_apart(candidate: Interval, baseline: Interval) -> bool:
    """Whether the intervals do not overlap; ends that touch overlap."""
    return compare_intervals(candidate, baseline) in (Outcome.REGRESSED, Outcome.IMPROVED)


def _window_logs(measurement: Measurement) -> list[float]:
    return [math.log(window.median_ms) for window in measurement.counted_windows if window.median_ms]


def _sd(logs: Sequence[float]) -> float:
    """Standard deviation; equal values have none, whatever rounding leaves of them."""
    return 0.0 if min(logs) == max(logs) else statistics.stdev(logs)


def _left_out(runs: Sequence[Run], results: Sequence[AaResult]) -> tuple[str, ...]:
    answered = {result.series.case for result in results}
    return tuple(sorted({case.label for run in runs for case in _cases(run) if case not in answered}))


def _cases(run: Run) -> set[Case]:
    measured = {measurement.case for measurement in run.measurements}
    return measured | {failure.case for failure in run.failures if failure.case is not None}


def _by_name(result: AaResult) -> tuple[str, str, str]:
    """As the store gives them back."""
    case = result.series.case
    return case.benchmark, case.parameters_json, result.series.id
