"""Which runs hold a number, and which a verdict, without reading any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store.database import Database

_WITH_A_NUMBER = """
select distinct measurements.run_id from measurements join runs on runs.run_id = measurements.run_id
where runs.repository = ? and not list_contains(measurements.tags, ?)
"""
_JUDGED = """
select distinct verdicts.run_id from verdicts join runs on runs.run_id = verdicts.run_id
where runs.repository = ?
"""


def judged_runs(database: Database, repository: str) -> set[str]:
    """Ids of the runs of a repository that have a verdict, be it that none was possible."""
    with database.reading() as connection:
        found = connection.execute(_JUDGED, [repository]).fetchall()
    return {run_id for (run_id,) in found}


def runs_with_a_number(database: Database, repository: str, *, besides: str) -> set[str]:
    """Ids of the runs in which a benchmark gave a number.

    Args:
        database: the store.
        repository: only runs of this one.
        besides: measurements with this tag do not count.
    """
    with database.reading() as connection:
        found = connection.execute(_WITH_A_NUMBER, [repository, besides]).fetchall()
    return {run_id for (run_id,) in found}
