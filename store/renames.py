"""Names that benchmarks had before, as their suites declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.filters import only
from store.rows import fetch_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database

_LOAD = """
select distinct measurements.renamed_from, measurements.benchmark
from measurements join runs on runs.run_id = measurements.run_id
where runs.repository = ? and measurements.renamed_from is not null
order by measurements.renamed_from, measurements.benchmark
"""
_MEASURED = """
select distinct run_id, benchmark from measurements {where} order by run_id, benchmark
"""


def load_renames(database: Database, repository: str) -> list[tuple[str, str]]:
    """(old name, new name) of every rename that a run of a repository was measured with."""
    with database.reading() as connection:
        rows = fetch_rows(connection, _LOAD, [repository])
    return [(row["renamed_from"], row["benchmark"]) for row in rows]


def load_benchmark_names(database: Database, run_ids: Sequence[str]) -> dict[str, set[str]]:
    """The names of the benchmarks that each of these runs has a number of, by run id."""
    chosen = only({"run_id": run_ids})
    if chosen is None:
        return {}
    with database.reading() as connection:
        rows = fetch_rows(connection, _MEASURED.format(where=chosen.where), chosen.parameters)
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["run_id"], set()).add(row["benchmark"])
    return found
