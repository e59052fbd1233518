"""Parts of runs: one measurement with its samples, the failures of some runs, one header.

A page that shows one number must not read a whole run for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.errors import RunNotFound
from store.filters import only
from store.headers import HEADER_COLUMNS, header_of
from store.rows import fetch_rows
from store.runs import failure_of, kernel_of, measurement_of
from store.windows import load_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database
    from store.records import Failure, Measurement, RunHeader

_HEADERS = "select {columns} from runs {where} order by runs.started_at, runs.run_id"
_MEASUREMENT = "select * from measurements where run_id = ? and series_id = ?"
_KERNELS = "select * from kernels where run_id = ? and measurement_index = ? order by kernel_index"


def load_headers(database: Database, *, run_ids: Sequence[str]) -> list[RunHeader]:
    """The headers of some runs, by their whole ids, oldest first; unknown ids are left out."""
    chosen = only({"runs.run_id": run_ids})
    if chosen is None:
        return []
    with database.reading() as connection:
        rows = fetch_rows(
            connection, _HEADERS.format(columns=HEADER_COLUMNS, where=chosen.where), chosen.parameters
        )
    return [header_of(row) for row in rows]


def load_failures(database: Database, *, run_ids: Sequence[str]) -> dict[str, tuple[Failure, ...]]:
    """What gave no number, by run id; a run in which nothing failed is left out."""
    chosen = only({"run_id": run_ids})
    if chosen is None:
        return {}
    with database.reading() as connection:
        rows = fetch_rows(
            connection,
            f"select * from failures {chosen.where} order by run_id, failure_index",  # noqa: S608 - fixed column names
            chosen.parameters,
        )
    found: dict[str, tuple[Failure, ...]] = {}
    for row in rows:
        found[row["run_id"]] = (*found.get(row["run_id"], ()), failure_of(row))
    return found


def load_measurement(database: Database, *, run_id: str, series_id: str) -> Measurement:
    """One measurement with every sample.

    Raises:
        RunNotFound: the run, by its whole id, has no measurement of this series.
    """
    with database.reading() as connection:
        rows = fetch_rows(connection, _MEASUREMENT, [run_id, series_id])
        if not rows:
            raise RunNotFound(
                f"no run {run_id} in {database.url} has a measurement of series {series_id}: "
                "the link may belong to another store"
            )
        index = rows[0]["measurement_index"]
        kernels = [kernel_of(row) for row in fetch_rows(connection, _KERNELS, [run_id, index])]
        windows = load_windows(connection, run_id, index)
    return measurement_of(rows[0], kernels=kernels, windows=windows.get(index, ()))
