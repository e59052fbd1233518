"""Tags of commits, and which of them are releases."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from store.records import GitTag
from store.rows import Row, fetch_rows, insert_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import duckdb

    from store.database import Database
    from store.records import Run

# A tag can be moved: the run that was started last knows best where it points.
_NEWEST = """
select git_tags.name, git_tags.commit_sha from git_tags join runs on runs.run_id = git_tags.run_id
where git_tags.repository = ?
qualify row_number() over (partition by git_tags.name order by runs.started_at desc, runs.run_id) = 1
order by git_tags.name
"""
_OF_RUN = "select name, commit_sha from git_tags where run_id = ? order by tag_index"


def load_tags(database: Database, repository: str) -> tuple[GitTag, ...]:
    """Every tag that a run has told the store about, each where the newest of these runs saw it."""
    with database.reading() as connection:
        return tuple(GitTag(**row) for row in fetch_rows(connection, _NEWEST, [repository]))


def releases(tags: Iterable[GitTag], globs: Sequence[str]) -> dict[str, str]:
    """The name of the release on each commit that has one; of several the last by name.

    Args:
        tags: all tags.
        globs: which of them mark a release; one that matches is enough.
    """
    named = sorted(
        (tag for tag in tags if any(fnmatchcase(tag.name, glob) for glob in globs)),
        key=lambda tag: tag.name,
    )
    return {tag.commit_sha: tag.name for tag in named}


def insert_tags(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Add the tags that a run knows."""
    rows: list[Row] = [
        {
            "run_id": run.header.run_id,
            "tag_index": index,
            "repository": run.header.repository,
            "name": tag.name,
            "commit_sha": tag.commit_sha,
        }
        for index, tag in enumerate(run.git_tags)
    ]
    insert_rows(connection, "git_tags", rows)


def read_tags(connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[GitTag, ...]:
    """The tags of one run, as it was saved."""
    return tuple(GitTag(**row) for row in fetch_rows(connection, _OF_RUN, [run_id]))
