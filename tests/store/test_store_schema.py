"""Migrations lead from anywhere to the newest schema, and the document tells what that is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from builders import a_run

from store.runs import load_run, save_run
from store.schema import MIGRATIONS, SCHEMA_VERSION, migrate, stored_version
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from store.database import Database

DOCUMENT = Path(__file__).parents[2] / "docs" / "schema.md"
COLUMNS = """
select table_name, column_name, data_type, is_nullable from duckdb_columns()
where database_name = 'db' and not internal order by table_name, column_index
"""

VERDICTS_OF_9 = """
insert into verdicts by name
select run_id, runs as baseline_run_ids, drift_run_ids, if(drift_run_ids is null, null, 'v1') as drift_since,
    0.0 as drift_effect, 0.0 as drift_low, 0.0 as drift_high, false as drift_apart, 'aa' as series_id,
    'softmax' as benchmark, '{}' as parameters, 'elapsed' as quantity, 'GPU-1' as gpu_uuid,
    'wall' as timer, 'cold' as cache_state, 'free' as clock_regime, '' as environment,
    'INCONCLUSIVE' as outcome, 'no-baseline' as reason, '' as message, 'none' as standing, 'A' as tier,
    6 as windows, 6 as candidate_windows, 'refused' as candidate_status, 'none' as baseline_kind,
    timestamp '2026-03-02 09:00:00' as judged_at
from (values ('first', ['a', 'b'], ['c']), ('second', ['a', 'b'], null), ('third', [], null))
    as given(run_id, runs, drift_run_ids)
"""


def an_empty_store(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"attach '{path}' as db")
    connection.execute("use db")
    return connection


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, SCHEMA_VERSION + 1))


def test_step_by_step_and_all_at_once_give_the_same_schema(tmp_path: Path) -> None:
    with an_empty_store(tmp_path / "at_once.duckdb") as connection:
        migrate(connection)
        at_once = connection.execute(COLUMNS).fetchall()
    for migration in MIGRATIONS:
        with an_empty_store(tmp_path / "in_steps.duckdb") as connection:
            migrate(connection, target=migration.version)
            assert stored_version(connection) == migration.version

    with an_empty_store(tmp_path / "in_steps.duckdb") as connection:
        assert connection.execute(COLUMNS).fetchall() == at_once
        applied = connection.execute("select version, name from schema_version order by version").fetchall()
    assert applied == [(migration.version, migration.name) for migration in MIGRATIONS]


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    with an_empty_store(tmp_path / "s.duckdb") as connection:
        migrate(connection)
        migrate(connection)

        assert connection.execute("select count(*) from schema_version").fetchall() == [(SCHEMA_VERSION,)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    with an_empty_store(tmp_path / "s.duckdb") as connection:
        connection.execute(
            "create table schema_version (version integer, name varchar, applied_at timestamp)"
        )
        connection.execute("create table commits (mine varchar)")
        with pytest.raises(duckdb.Error, match="commits"):
            migrate(connection)
    with an_empty_store(tmp_path / "s.duckdb") as connection:
        assert connection.execute("show tables").fetchall() == [("commits",), ("schema_version",)]
        assert stored_version(connection) == 0


def test_an_older_store_is_brought_up_to_date_by_its_first_reader(database: Database) -> None:
    with an_empty_store(database.path) as connection:
        migrate(connection, target=1)

    with database.reading() as connection:
        assert stored_version(connection) == SCHEMA_VERSION
    assert save_run(database, a_run()) is True
    assert load_run(database, a_run().header.run_id) == a_run()


def test_verdicts_keep_the_runs_that_they_rest_on_when_these_get_a_table(database: Database) -> None:
    with an_empty_store(database.path) as connection:
        migrate(connection, target=9)
        connection.execute(VERDICTS_OF_9)

    found = {verdict.run_id: verdict for verdict in load_verdicts(database)}

    assert {run_id: verdict.baseline_run_ids for run_id, verdict in found.items()} == {
        "first": ("a", "b"), "second": ("a", "b"), "third": (),
    }  # fmt: skip
    drifts = {run_id: verdict.drift and verdict.drift.run_ids for run_id, verdict in found.items()}
    assert drifts == {"first": ("c",), "second": None, "third": None}


@pytest.mark.parametrize(
    "refused",
    [r"\bprimary key\b", r"\bunique\b", r"\bsequence\b", r"\breturning\b", r"\bon conflict\b", r"\benum\b"],
)
def test_the_schema_keeps_to_what_ducklake_accepts(refused: str) -> None:
    for migration in MIGRATIONS:
        statements = re.sub(r"--.*", "", migration.sql.lower())
        assert not re.search(refused, statements), migration.name


def test_the_document_names_every_table_and_column(tmp_path: Path) -> None:
    with an_empty_store(tmp_path / "s.duckdb") as connection:
        migrate(connection)
        actual = {(table, column, kind) for table, column, kind, _ in connection.execute(COLUMNS).fetchall()}

    assert documented_columns() == actual


def documented_columns() -> set[tuple[str, str, str]]:
    """(table, column, type) of every row in the tables of docs/schema.md."""
    found: set[tuple[str, str, str]] = set()
    table = ""
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## `(\w+)`", line):
            table = heading[1]
        elif row := re.match(r"\| `(\w+)` \| ([A-Z]+(?:\[\])?) \|", line):
            found.add((table, row[1], row[2]))
    return found
