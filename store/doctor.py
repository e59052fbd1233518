"""What may be wrong with a store, and what to do about it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from store.errors import StoreError
from store.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from store.database import Database

_TABLES = ("runs", "measurements", "windows", "kernels", "failures", "verdicts", "commits", "aa_studies")
_WAL_LARGE_BYTES = 64 * 2**20
_DRAFT_OLD_S = 3600
_MIB = 2**20

# Each finds rows that no run should have left behind: what is wrong, and a query that counts it.
_BROKEN = (
    (
        "runs that are stored twice",
        "select count(*) from (select run_id from runs group by run_id having count(*) > 1)",
    ),
    (
        "measurements without their run",
        "select count(*) from measurements anti join runs using (run_id)",
    ),
    (
        "windows without their measurement",
        "select count(*) from windows anti join measurements using (run_id, measurement_index)",
    ),
    (
        "kernels without their measurement",
        "select count(*) from kernels anti join measurements using (run_id, measurement_index)",
    ),
    ("failures without their run", "select count(*) from failures anti join runs using (run_id)"),
    (
        "verdicts without their measurement",
        "select count(*) from verdicts anti join measurements using (run_id, series_id)",
    ),
    (
        "verdicts on a series that has another one for the same run",
        "select count(*) from (select 1 from verdicts group by run_id, series_id having count(*) > 1)",
    ),
    (
        "verdicts whose list of runs is missing or stored twice",
        """
        select count(*)
        from (select baseline_list as list_id from verdicts union all select drift_list from verdicts)
        left join (select list_id, count(*) as times from run_lists group by list_id) using (list_id)
        where list_id is not null and times is distinct from 1
        """,
    ),
    (
        "results without their study",
        "select count(*) from aa_results anti join aa_studies using (study_id)",
    ),
    (
        "decisions that are stored twice",
        "select count(*) from (select event_id from triage_events group by event_id having count(*) > 1)",
    ),
    (
        "decisions that take back one that is not there",
        "select count(*) from triage_events where revokes not in (select event_id from triage_events)",
    ),
    (
        "windows whose lists disagree with their number of samples",
        "select count(*) from windows where len(samples_ms) != n or len(exclusions) != n or n_kept > n",
    ),
    (
        "runs whose history names commits that are not stored",
        """
        select count(distinct run_id)
        from (select run_id, repository, unnest(history_tips) as sha from runs)
        anti join commits using (repository, sha)
        """,
    ),
    (
        "commits that are stored twice",
        "select count(*) from (select 1 from commits group by repository, sha having count(*) > 1)",
    ),
)
_NO_COMMIT = "select count(*) from runs where commit_sha is null"
_NO_HISTORY = (
    "select count(*) from runs where commit_sha is not null and (history_note is not null or not exists "
    "(select 1 from commits where commits.sha = runs.commit_sha and commits.repository = runs.repository))"
)


class Level(StrEnum):
    """How much a finding matters."""

    FINE = "fine"
    NOTE = "note"  # works, but less than it could
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        remedy: what to do about it; empty where there is nothing to do.
    """

    level: Level
    message: str
    remedy: str = ""


def examine(database: Database) -> list[Finding]:
    """Look at everything that can be wrong with a store; never raises a StoreError for what it finds."""
    findings = list(_files(database))
    try:
        with database.reading() as connection:
            findings.append(Finding(level=Level.FINE, message=f"the store opens, schema {SCHEMA_VERSION}"))
            findings += _contents(connection)
    except StoreError as error:  # its message says what to do
        findings.append(Finding(level=Level.WRONG, message=str(error)))
    return findings


def _files(database: Database) -> Iterator[Finding]:
    """What can be seen without opening anything: opening would drop a lock of this process."""
    if database.exists():
        size = database.path.stat().st_size / _MIB
        yield Finding(level=Level.FINE, message=f"{database.path} has {size:.1f} MiB")
    if database.wal_path.exists():
        size_bytes = database.wal_path.stat().st_size
        large = size_bytes > _WAL_LARGE_BYTES
        yield Finding(
            level=Level.NOTE if large else Level.FINE,
            message=f"{database.wal_path.name} has {size_bytes / _MIB:.1f} MiB; copy it along with the store",
            remedy="the next command that writes folds it into the store" if large else "",
        )
    drafts = database.path.parent.glob(f".{database.path.name}.*.new*")
    old = [draft for draft in drafts if time.time() - draft.stat().st_mtime > _DRAFT_OLD_S]
    if old:
        yield Finding(
            level=Level.NOTE,
            message=f"{len(old)} files are left of stores whose making was killed, such as {old[0]}",
            remedy="delete them",
        )


def _contents(connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    counts = ", ".join(f"{_count(connection, f'select count(*) from {table}')} {table}" for table in _TABLES)  # noqa: S608 - fixed names
    yield Finding(level=Level.FINE, message=f"it holds {counts}")
    for what, query in _BROKEN:
        if number := _count(connection, query):
            yield Finding(
                level=Level.WRONG,
                message=f"{number} {what}",
                remedy="something else than kernelwatch has changed the store: bring back a copy, "
                "or import the bundles of its runs into a new one",
            )
    if number := _count(connection, _NO_COMMIT):
        yield Finding(
            level=Level.NOTE,
            message=f"{number} runs are of code in no commit, and cannot be compared with others",
            remedy="measure code that is committed to a git repository",
        )
    if number := _count(connection, _NO_HISTORY):
        yield Finding(
            level=Level.NOTE,
            message=f"{number} runs do not know their history in full, and may lack a baseline",
            remedy="measure in a full clone: 'git fetch --unshallow', or fetch-depth: 0 in CI",
        )


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
