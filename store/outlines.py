"""Every measurement of a store in outline, for whoever judges or searches all of them at once."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from store.records import CacheState, FoldStatus, Interval, Quantity, SeriesKey, SeriesPoint, Tier
from store.rows import case_of, fetch_rows
from store.runs import failure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.database import Database
    from store.records import Failure, RunHeader

_OUTLINES = """
select measurements.run_id, series_id, benchmark, parameters, quantity, cache_state, tags, center_ms, low_ms,
    high_ms, interval_windows, fold_status, resolution_ms, tier, tier_evidence[1], source, renamed_from
from measurements join runs on runs.run_id = measurements.run_id
order by runs.started_at, runs.run_id, measurements.measurement_index
"""
_FAILURES = "select * from failures order by run_id, failure_index"
_STATUS = {str(status): status for status in FoldStatus}
_TIER = {str(tier): tier for tier in Tier}


def load_outlines(database: Database, headers: Iterable[RunHeader]) -> dict[str, list[SeriesPoint]]:
    """The points of every run by its id, without windows, kernels and work, and with one piece of evidence.

    What is left out is empty or zero in them, and the piece of evidence is the one that decided
    the tier; ``load_points`` gives points whole, and takes ten times as long.

    Args:
        database: the store.
        headers: the runs; what was measured in others is passed over.
    """
    known = {header.run_id: header for header in headers}
    with database.reading() as connection:
        rows = connection.execute(_OUTLINES).fetchall()
    series: dict[str, SeriesKey] = {}
    tags_known: dict[tuple[str, ...], tuple[str, ...]] = {}
    found: dict[str, list[SeriesPoint]] = defaultdict(list)
    for (
        run_id, series_id, benchmark, parameters, quantity, cache_state, tags, center, low, high, windows,
        status, resolution, tier, evidence, source, renamed_from,
    ) in rows:  # fmt: skip
        header = known.get(run_id)
        if header is None:
            continue
        key = series.get(series_id)
        if key is None:
            key = series[series_id] = header.series_key(
                case_of(benchmark, parameters), Quantity(quantity), CacheState(cache_state)
            )
        own_tags = tuple(tags)
        found[run_id].append(
            SeriesPoint(
                header=header,
                series=key,
                interval=Interval(center, low, high, windows, _STATUS[status]),
                resolution_ms=resolution,
                tier=_TIER[tier],
                tier_evidence=() if evidence is None else (evidence,),
                tags=tags_known.setdefault(own_tags, own_tags),
                source=source,
                window_medians_ms=(),
                window_passes=(),
                n_samples=0,
                n_left_out=0,
                renamed_from=renamed_from,
            )
        )
    return found


def load_all_failures(database: Database) -> Mapping[str, tuple[Failure, ...]]:
    """What gave no number in each run that has a failure, by the run's id."""
    with database.reading() as connection:
        rows = fetch_rows(connection, _FAILURES)
    found: dict[str, list[Failure]] = defaultdict(list)
    for row in rows:
        found[row["run_id"]].append(failure_of(row))
    return {run_id: tuple(failures) for run_id, failures in found.items()}
