"""Which cases a store knows, whatever was measured of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.rows import case_of, fetch_rows

if TYPE_CHECKING:
    from store.database import Database
    from store.records import Case


def known_cases(database: Database) -> list[Case]:
    """Every case with a measurement in any run, by benchmark and parameters.

    Raises:
        StoreError: the store cannot be read.
    """
    with database.reading() as connection:
        rows = fetch_rows(
            connection,
            "select distinct benchmark, parameters from measurements order by benchmark, parameters",
        )
    return [case_of(row["benchmark"], row["parameters"]) for row in rows]
