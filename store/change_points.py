"""Change points: where a series changed its level. Searching a series again replaces what was found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.errors import StoreInvalid
from store.filters import only
from store.records import SHA_PATTERN, SeriesKey
from store.rows import Row, fetch_rows, from_instant, insert_rows, series_columns, series_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from store.database import Database

_PLAIN = (
    "repository", "commit_before", "commit_sha", "run_id", "size", "size_low", "size_high", "p_value",
    "method_version", "found_at",
)  # fmt: skip
_NUMBERS = ("size", "size_low", "size_high", "p_value")
_DELETE = "delete from change_points where repository = ? and series_id = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """One step of a series on the first-parent line of a repository.

    Attributes:
        commit_before: the last commit measured before the step.
        commit_sha: the first commit measured after it. The change lies in what came after
            ``commit_before``, up to and including this one.
        run_id: the first run after the step, on ``commit_sha``.
        size: (after - before) / before; positive is slower.
        size_low, size_high: 95 % interval of the size.
        p_value: the chance of finding such a step anywhere in a series of this length that has none.
        method_version: version of the way of searching.
    """

    series: SeriesKey
    repository: str
    commit_before: str
    commit_sha: str
    run_id: str
    size: float
    size_low: float
    size_high: float
    p_value: float
    method_version: int
    found_at: datetime

    @property
    def within_a_commit(self) -> bool:
        """Whether one commit was measured on both sides: then the machine changed, not the code."""
        return self.commit_before == self.commit_sha


def save_change_points(
    database: Database, repository: str, found: Mapping[SeriesKey, Sequence[ChangePoint]]
) -> None:
    """Store what a search found, in one transaction, in place of what earlier ones found.

    Args:
        database: the store.
        repository: the repository whose history was searched.
        found: every series that was searched, with its steps, oldest first; those without any
            lose theirs.

    Raises:
        StoreInvalid: a step belongs to another series or repository, or is not complete.
        StoreError: the store could not be opened or written.
    """
    for series, points in found.items():
        for point in points:
            _check(point, repository, series)
    with database.writing() as connection:
        if found:
            connection.executemany(_DELETE, [[repository, series.id] for series in found])
        insert_rows(
            connection,
            "change_points",
            [_row(point, index) for points in found.values() for index, point in enumerate(points)],
        )


def load_change_points(
    database: Database,
    *,
    repository: str | None = None,
    series_ids: Sequence[str] | None = None,
    gpu_uuids: Sequence[str] | None = None,
) -> list[ChangePoint]:
    """Change points by benchmark and, in one series, oldest first.

    Args:
        database: the store.
        repository: only those in the history of this repository; None for all.
        series_ids: only those of these series; None for all.
        gpu_uuids: only those on these GPUs; None for all.
    """
    repositories = None if repository is None else [repository]
    chosen = only({"repository": repositories, "series_id": series_ids, "gpu_uuid": gpu_uuids})
    if chosen is None:
        return []
    with database.reading() as connection:
        rows = fetch_rows(
            connection,
            f"select * from change_points {chosen.where} "  # noqa: S608 - fixed column names
            "order by benchmark, parameters, series_id, step_index",
            chosen.parameters,
        )
    return [_change_point_of(row) for row in rows]


def _check(point: ChangePoint, repository: str, series: SeriesKey) -> None:
    where = f"the change point of {point.series.case.label} at {point.commit_sha}"
    if (point.repository, point.series) != (repository, series):
        raise StoreInvalid(f"{where} belongs to another series or repository than it is saved for")
    if not (SHA_PATTERN.fullmatch(point.commit_sha) and SHA_PATTERN.fullmatch(point.commit_before)):
        raise StoreInvalid(f"{where} does not name both commits in full: {point.commit_before!r}")
    for name in _NUMBERS:
        if not math.isfinite(getattr(point, name)):
            raise StoreInvalid(f"{where}: {name} is {getattr(point, name)}, which is not finite")
    if point.found_at.utcoffset() is None:
        raise StoreInvalid(f"{where}: found_at {point.found_at} has no time zone")


def _row(point: ChangePoint, index: int) -> Row:
    return {
        "step_index": index,
        **{name: getattr(point, name) for name in _PLAIN},
        **series_columns(point.series),
    }


def _change_point_of(row: Row) -> ChangePoint:
    return ChangePoint(
        **{name: row[name] for name in _PLAIN} | {"found_at": from_instant(row["found_at"])},
        series=series_of(row),
    )
