"""Names that benchmarks had before, as their suites declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.rows import fetch_rows

if TYPE_CHECKING:
    from store.database import Database

_LOAD = """
select distinct measurements.renamed_from, measurements.benchmark
from measurements join runs on runs.run_id = measurements.run_id
where runs.repository = ? and measurements.renamed_from is not null
order by measurements.renamed_from, measurements.benchmark
"""


def load_renames(database: Database, repository: str) -> list[tuple[str, str]]:
    """(old name, new name) of every rename that a run of a repository was measured with."""
    with database.reading() as connection:
        rows = fetch_rows(connection, _LOAD, [repository])
    return [(row["renamed_from"], row["benchmark"]) for row in rows]
