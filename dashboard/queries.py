"""What the pages read from the store, cached until the store changes.

The store is opened, read and closed within one call: an open connection would keep the
collector out. A cached answer lives as long as the file and its write-ahead log stay as
they are, and never longer than a minute.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import streamlit as st

from store import commits as store_commits
from store import runs as store_runs
from store import series as store_series
from store import verdicts as store_verdicts
from store.database import Database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Commit, Run, RunHeader, SeriesPoint, Verdict

# A page waits this long for a collector that is writing before it says so.
LOCK_DEADLINE_S = 5.0
# Runs that are looked through for what is new; older ones are reached by Trends and Commit.
RECENT_RUNS = 400
_cached = st.cache_data(ttl=60, max_entries=64, show_spinner="Reading the store …")

Stamp = tuple[tuple[int, int] | None, ...]


def store_url() -> str:
    """The store to show, as the command line passed it on."""
    return Database.default().url


def stamp(url: str) -> Stamp:
    """Time and size of the store's file and of its log: new data stands in the log first."""
    return tuple(_time_and_size(path) for path in (url, f"{url}.wal"))


def recent_headers(*, gpu_uuid: str | None = None, limit: int = RECENT_RUNS) -> list[RunHeader]:
    """The newest runs, newest first."""
    url = store_url()
    return _headers(url, stamp(url), gpu_uuid, limit)


def headers_of_commit(sha: str) -> list[RunHeader]:
    """The runs on a commit, newest first; a prefix of its id is enough."""
    url = store_url()
    return _headers_of_commit(url, stamp(url), sha)


def run(run_id: str) -> Run:
    """One run with every sample."""
    url = store_url()
    return _run(url, stamp(url), run_id)


def points(
    *, run_ids: Sequence[str] | None = None, series_ids: Sequence[str] | None = None
) -> list[SeriesPoint]:
    """Statistics of measurements, oldest run first."""
    url = store_url()
    return _points(
        url,
        stamp(url),
        None if run_ids is None else tuple(run_ids),
        None if series_ids is None else tuple(series_ids),
    )


def verdicts(run_ids: Sequence[str]) -> dict[tuple[str, str], Verdict]:
    """The verdicts of runs, by run id and series id."""
    url = store_url()
    return _verdicts(url, stamp(url), tuple(run_ids))


def commits(repository: str) -> dict[str, Commit]:
    """What git knows about the commits of a repository."""
    url = store_url()
    return _commits(url, stamp(url), repository)


def positions(repository: str) -> dict[str, int]:
    """The ordinal of each commit on its first-parent line."""
    url = store_url()
    return _positions(url, stamp(url), repository)


def _database(url: str) -> Database:
    return Database(url, lock_deadline_s=LOCK_DEADLINE_S)


def _time_and_size(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - a URL is no path, and need not name a file
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


# The stamp is an argument of every cached function although none reads it: it is the part
# of the key that changes when the store does.


@_cached
def _headers(url: str, stamp: Stamp, gpu_uuid: str | None, limit: int) -> list[RunHeader]:  # noqa: ARG001 - key
    return store_runs.find_runs(_database(url), gpu_uuid=gpu_uuid, limit=limit)


@_cached
def _headers_of_commit(url: str, stamp: Stamp, sha: str) -> list[RunHeader]:  # noqa: ARG001 - key
    return store_runs.find_runs(_database(url), commit_sha=sha)


@_cached
def _run(url: str, stamp: Stamp, run_id: str) -> Run:  # noqa: ARG001 - key
    return store_runs.load_run(_database(url), run_id)


@_cached
def _points(
    url: str,
    stamp: Stamp,  # noqa: ARG001 - key
    run_ids: tuple[str, ...] | None,
    series_ids: tuple[str, ...] | None,
) -> list[SeriesPoint]:
    return store_series.load_points(_database(url), run_ids=run_ids, series_ids=series_ids)


@_cached
def _verdicts(url: str, stamp: Stamp, run_ids: tuple[str, ...]) -> dict[tuple[str, str], Verdict]:  # noqa: ARG001 - key
    found = store_verdicts.load_verdicts(_database(url), run_ids=run_ids)
    return {(verdict.run_id, verdict.series.id): verdict for verdict in found}


@_cached
def _commits(url: str, stamp: Stamp, repository: str) -> dict[str, Commit]:  # noqa: ARG001 - key
    return store_commits.load_commits(_database(url), repository)


@_cached
def _positions(url: str, stamp: Stamp, repository: str) -> dict[str, int]:  # noqa: ARG001 - key
    return store_commits.commit_positions(_database(url), repository)
