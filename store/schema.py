"""The schema of the store: numbered SQL files, applied in order, each once.

Migrations are append-only: a file that was released is never edited. Each is applied in
one transaction together with its row in ``schema_version``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING

from store.errors import StoreInvalid, StoreTooNew

if TYPE_CHECKING:
    import duckdb

_FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_CREATE_SCHEMA_VERSION = """
create table if not exists schema_version (
    version integer not null,
    name varchar not null,
    applied_at timestamp not null
)
"""
_TABLES = "select table_name from duckdb_tables() where database_name = 'db' and not internal"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str


def _read_migrations() -> tuple[Migration, ...]:
    found = (
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in resources.files("store").joinpath("migrations").iterdir()
        if (match := _FILE_NAME.fullmatch(file.name))
    )
    return tuple(sorted(found, key=lambda migration: migration.version))


MIGRATIONS = _read_migrations()
SCHEMA_VERSION = MIGRATIONS[-1].version


def stored_version(connection: duckdb.DuckDBPyConnection) -> int:
    """The schema version of the store that is open; 0 for a DuckDB file without tables.

    Raises:
        StoreInvalid: the file holds tables, but not those of a kernelwatch store.
        StoreTooNew: a newer kernelwatch has migrated it.
    """
    tables = {name for (name,) in connection.execute(_TABLES).fetchall()}
    if not tables:
        return 0
    if "schema_version" not in tables:
        names = ", ".join(sorted(tables)[:5])
        raise StoreInvalid(
            f"the file is a DuckDB database with other tables ({names}), not a kernelwatch store: "
            "choose another file with --store"
        )
    row = connection.execute("select max(version) from schema_version").fetchone()
    version = int(row[0]) if row and row[0] is not None else 0
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"the store has schema {version}, and this kernelwatch knows schemas up to {SCHEMA_VERSION}: "
            "upgrade kernelwatch here"
        )
    return version


def migrate(connection: duckdb.DuckDBPyConnection, *, target: int = SCHEMA_VERSION) -> None:
    """Bring the store that is open to schema ``target``, in one transaction; no-op when it is there."""
    version = stored_version(connection)
    if version >= target:
        return
    connection.execute("begin transaction")
    connection.execute(_CREATE_SCHEMA_VERSION)
    for migration in MIGRATIONS:
        if version < migration.version <= target:
            connection.execute(migration.sql)
            connection.execute(
                "insert into schema_version values (?, ?, ?)",
                [migration.version, migration.name, datetime.now(UTC).replace(tzinfo=None)],
            )
    connection.execute("commit")
