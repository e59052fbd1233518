"""Records to rows and back, for the parts that several tables share.

Rows are written as one JSON document per table and taken apart by DuckDB: binding lists
value by value is up to a hundred times slower on DuckDB 1.5. They are read as mappings
from column to value.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from store.records import (
    CacheState,
    Case,
    ClockRegime,
    FoldStatus,
    Interval,
    Quantity,
    Reading,
    SeriesKey,
    Timer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

Row = dict[str, Any]


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    """Append rows, each with a value for every column of the table."""
    if not rows:
        return
    columns = columns_of(connection, table)
    listed = ", ".join(f"r.{name}" for name in columns)
    connection.execute(
        f"insert into {table} ({', '.join(columns)}) select {listed} from {unpacked(columns)}",  # noqa: S608 - names come from the schema
        [packed(columns, rows)],
    )


def columns_of(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Names and types of a table's columns, in order."""
    found = connection.execute(
        "select column_name, data_type from duckdb_columns() "
        "where database_name = 'db' and table_name = ? order by column_index",
        [table],
    )
    return dict(found.fetchall())


def packed(columns: Iterable[str], rows: Sequence[Row]) -> str:
    """Rows as the JSON document that ``unpacked`` takes apart."""
    names = set(columns)
    for row in rows:
        if row.keys() != names:
            raise TypeError(f"a row has the columns {sorted(row)}, not {sorted(names)}")
    return json.dumps([{name: storable(value) for name, value in row.items()} for row in rows])


def unpacked(columns: Mapping[str, str]) -> str:
    """SQL for a relation with one struct ``r`` per row of a JSON document given as parameter."""
    shape = json.dumps(
        [{n: [kind.removesuffix("[]")] if kind.endswith("[]") else kind for n, kind in columns.items()}]
    )
    return f"(select unnest(from_json(?, '{shape}')) as r)"


def fetch_rows(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Iterable[Any] = ()) -> list[Row]:
    """The result of a query as mappings from column to value."""
    result = connection.execute(sql, list(parameters))
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, values, strict=True)) for values in result.fetchall()]


def storable(value: Any) -> Any:
    r"""The value as JSON can carry it into DuckDB: instants in UTC, tuples as lists, text as UTF-8.

    Undecodable bytes of a file name (lone surrogates to Python) become visible ``\udcff``
    escapes, since neither UTF-8 nor DuckDB has room for them.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, datetime):
        return to_instant(value).isoformat()
    if isinstance(value, tuple | list):
        return [storable(item) for item in value]
    return value


def to_instant(moment: datetime) -> datetime:
    """An aware instant as the store keeps it: UTC without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_instant(stored: datetime) -> datetime:
    """A stored instant as the records have it: aware, in UTC."""
    return stored.replace(tzinfo=UTC)


def readings_to_json(readings: Mapping[str, Reading]) -> str:
    """Readings as a JSON object: name to ``{"value": ...}`` or ``{"error": ...}``."""
    return json.dumps(
        {
            storable(name): {"error": storable(reading.error)}
            if reading.error is not None
            else {"value": storable(reading.value)}
            for name, reading in readings.items()
        },
        ensure_ascii=False,
        allow_nan=False,
    )


def readings_from_json(text: str) -> dict[str, Reading]:
    """The readings in a JSON object, in the order in which they were made."""
    return {name: Reading(**parts) for name, parts in json.loads(text).items()}


@lru_cache(maxsize=4096)
def case_of(benchmark: str, parameters: str) -> Case:
    """The case with these parameters, given as JSON."""
    return Case.of(benchmark, json.loads(parameters))


def case_columns(case: Case | None) -> Row:
    """Columns ``benchmark`` and ``parameters``."""
    return {
        "benchmark": None if case is None else case.benchmark,
        "parameters": None if case is None else case.parameters_json,
    }


def interval_of(row: Row, prefix: str, *, windows: str, status: str) -> Interval:
    """The interval in the columns ``<prefix>center_ms`` and so on."""
    return Interval(
        center=row[f"{prefix}center_ms"],
        low=row[f"{prefix}low_ms"],
        high=row[f"{prefix}high_ms"],
        windows=row[windows],
        status=FoldStatus(row[status]),
    )


def series_columns(series: SeriesKey) -> Row:
    """The columns of a series key, its id included."""
    return {
        "series_id": series.id,
        **case_columns(series.case),
        "quantity": series.quantity,
        "gpu_uuid": series.gpu_uuid,
        "timer": series.timer,
        "cache_state": series.cache_state,
        "clock_regime": series.clock_regime,
        "environment": series.environment,
    }


def series_of(row: Row) -> SeriesKey:
    """The series key in the columns that ``series_columns`` names."""
    return SeriesKey(
        case=case_of(row["benchmark"], row["parameters"]),
        quantity=Quantity(row["quantity"]),
        gpu_uuid=row["gpu_uuid"],
        timer=Timer(row["timer"]),
        cache_state=CacheState(row["cache_state"]),
        clock_regime=ClockRegime(row["clock_regime"]),
        environment=row["environment"],
    )
