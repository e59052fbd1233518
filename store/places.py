"""Where runs lie in the history of their repository, without anything that was measured in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.filters import only
from store.rows import fetch_rows, series_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database
    from store.records import SeriesKey

_PLACES = """
select run_id, repository, commit_sha, coalesce(merge_base = commit_sha, false) as on_base
from runs where commit_sha is not null and not dirty
"""
_CENTERS = """
with known as (select * from verdicts {where})
select known.series_id, runs.commit_sha, known.candidate_center_ms
from known join runs on runs.run_id = known.run_id
where runs.commit_sha is not null and not runs.dirty and known.candidate_center_ms is not null
    and known.outcome != 'INCONCLUSIVE'
order by runs.started_at, runs.run_id
"""
_SERIES = """
with chosen as (
    select measurements.*, runs.gpu_uuid, runs.timer, runs.clock_regime, runs.environment
    from measurements join runs on runs.run_id = measurements.run_id
    {where}
)
select distinct series_id, benchmark, parameters, quantity, gpu_uuid, timer, cache_state, clock_regime,
    environment
from chosen order by benchmark, parameters, series_id
"""
_RESOLUTIONS = "select series_id, max(resolution_ms) as resolution_ms from measurements {where} group by all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What one run of committed code measured.

    Attributes:
        on_base: the commit lies on the branch that it is judged against, not on one that left it.
    """

    repository: str
    commit_sha: str
    on_base: bool


def load_places(database: Database) -> dict[str, Place]:
    """The place of every run of committed code, by run id."""
    with database.reading() as connection:
        rows = fetch_rows(connection, _PLACES)
    return {
        row["run_id"]: Place(
            repository=row["repository"], commit_sha=row["commit_sha"], on_base=row["on_base"]
        )
        for row in rows
    }


def load_centers(database: Database, series_ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """The newest conclusive centre of each commit, in milliseconds: series id to commit to centre."""
    chosen = only({"series_id": series_ids})
    if chosen is None:
        return {}
    with database.reading() as connection:
        rows = fetch_rows(connection, _CENTERS.format(where=chosen.where), chosen.parameters)
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["series_id"], {})[row["commit_sha"]] = row["candidate_center_ms"]
    return found


def load_series(database: Database, run_ids: Sequence[str]) -> list[SeriesKey]:
    """The series that these runs measured, by benchmark."""
    chosen = only({"measurements.run_id": run_ids})
    if chosen is None:
        return []
    with database.reading() as connection:
        return [
            series_of(row)
            for row in fetch_rows(connection, _SERIES.format(where=chosen.where), chosen.parameters)
        ]


def load_resolutions(database: Database, run_ids: Sequence[str]) -> dict[str, float]:
    """The coarsest time quantum of one sample of each series in these runs, in milliseconds, by series id."""
    chosen = only({"run_id": run_ids})
    if chosen is None:
        return {}
    with database.reading() as connection:
        rows = fetch_rows(connection, _RESOLUTIONS.format(where=chosen.where), chosen.parameters)
    return {row["series_id"]: row["resolution_ms"] for row in rows}
