"""What the pages read from the store, cached until the store changes.

The store is opened, read and closed within one call: an open connection would keep the
collector out. A cached answer lives as long as the file and its write-ahead log stay as
they are, and never longer than a minute.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import streamlit as st

from alerts.renamed_runs import renames_of_runs
from dashboard.errors import UnknownCommit
from dashboard.rules import release_tags
from store import change_points as store_change_points
from store import commits as store_commits
from store import evidence as store_evidence
from store import machines as store_machines
from store import releases as store_releases
from store import runs as store_runs
from store import series as store_series
from store import studies as store_studies
from store import verdicts as store_verdicts
from store.database import Database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.change_points import ChangePoint
    from store.machines import MachineState
    from store.older_names import Renames
    from store.records import Commit, Failure, Measurement, RunHeader, SeriesPoint, Verdict
    from store.studies import AaStudy

# A page waits this long for a collector that is writing before it says so.
LOCK_DEADLINE_S = 5.0
# Runs that are looked through for what is new; older ones are reached by Trends and Commit.
RECENT_RUNS = 400
# Records are frozen and shared as they are: copying them would take longer than reading them.
# Nobody changes the lists and mappings that hold them.
_cached = st.cache_resource(ttl=60, max_entries=24, show_spinner="Reading the store …")

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


def header(run_id: str) -> RunHeader:
    """The header of one run, by its whole id.

    Raises:
        UnknownCommit: the store holds no such run.
    """
    url = store_url()
    found = _some_headers(url, stamp(url), (run_id,))
    if not found:
        raise UnknownCommit(f"no run {run_id} is stored: the link may belong to another store")
    return found[0]


def headers(run_ids: Sequence[str]) -> list[RunHeader]:
    """The headers of some runs, oldest first; unknown ids are left out."""
    url = store_url()
    return _some_headers(url, stamp(url), tuple(run_ids))


def measurement(run_id: str, series_id: str) -> Measurement:
    """One measurement with every sample."""
    url = store_url()
    return _measurement(url, stamp(url), run_id, series_id)


def failures(run_ids: Sequence[str]) -> dict[str, tuple[Failure, ...]]:
    """What gave no number, by run id."""
    url = store_url()
    return _failures(url, stamp(url), tuple(run_ids))


def newest_points(run_ids: Sequence[str]) -> list[SeriesPoint]:
    """The newest measurement of each series of each repository among some runs."""
    url = store_url()
    return _newest_points(url, stamp(url), tuple(run_ids))


def centers(run_ids: Sequence[str]) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """Run id and centre of each measurement by series id and repository, oldest run first."""
    url = store_url()
    return _centers(url, stamp(url), tuple(run_ids))


def machine_states(run_ids: Sequence[str]) -> dict[str, MachineState]:
    """What some runs saw of their GPUs, by run id."""
    url = store_url()
    return _machine_states(url, stamp(url), tuple(run_ids))


def studies(gpu_uuid: str) -> list[AaStudy]:
    """A/A studies with a run on a GPU, newest first."""
    url = store_url()
    return _studies(url, stamp(url), gpu_uuid)


def change_points(series_ids: Sequence[str]) -> list[ChangePoint]:
    """The steps of some series, as a search over their whole history found them."""
    url = store_url()
    return _change_points(url, stamp(url), tuple(series_ids))


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


def tagged_points(run_ids: Sequence[str], tag: str) -> list[SeriesPoint]:
    """Statistics of the measurements of some runs that bear a tag, oldest run first."""
    url = store_url()
    return _tagged_points(url, stamp(url), tuple(run_ids), tag)


def verdicts(
    run_ids: Sequence[str], series_ids: Sequence[str] | None = None
) -> dict[tuple[str, str], Verdict]:
    """The verdicts of runs, by run id and series id; with series given, of those alone."""
    url = store_url()
    return _verdicts(url, stamp(url), tuple(run_ids), None if series_ids is None else tuple(series_ids))


def commits(repository: str) -> dict[str, Commit]:
    """What git knows about the commits of a repository."""
    url = store_url()
    return _commits(url, stamp(url), repository)


def positions(repository: str) -> dict[str, int]:
    """The ordinal of each commit on its first-parent line."""
    url = store_url()
    return _positions(url, stamp(url), repository)


def releases(repository: str) -> dict[str, str]:
    """The release on each commit of a repository that has one, by its tag.

    Raises:
        ConfigurationInvalid: which tags are releases cannot be told.
    """
    url = store_url()
    return _releases(url, stamp(url), repository, release_tags())


def renames(repository: str, run_ids: Sequence[str]) -> dict[str, Renames]:
    """The older names of the benchmarks of some runs of a repository, by run id."""
    url = store_url()
    return _renames(url, stamp(url), repository, tuple(run_ids))


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
def _some_headers(url: str, stamp: Stamp, run_ids: tuple[str, ...]) -> list[RunHeader]:  # noqa: ARG001 - key
    return store_evidence.load_headers(_database(url), run_ids=run_ids)


@_cached
def _measurement(url: str, stamp: Stamp, run_id: str, series_id: str) -> Measurement:  # noqa: ARG001 - key
    return store_evidence.load_measurement(_database(url), run_id=run_id, series_id=series_id)


@_cached
def _failures(url: str, stamp: Stamp, run_ids: tuple[str, ...]) -> dict[str, tuple[Failure, ...]]:  # noqa: ARG001 - key
    return store_evidence.load_failures(_database(url), run_ids=run_ids)


@_cached
def _newest_points(url: str, stamp: Stamp, run_ids: tuple[str, ...]) -> list[SeriesPoint]:  # noqa: ARG001 - key
    return store_series.load_newest_points(_database(url), run_ids=run_ids)


@_cached
def _centers(
    url: str,
    stamp: Stamp,  # noqa: ARG001 - key
    run_ids: tuple[str, ...],
) -> dict[tuple[str, str], list[tuple[str, float]]]:
    return store_series.load_centers(_database(url), run_ids=run_ids)


@_cached
def _machine_states(url: str, stamp: Stamp, run_ids: tuple[str, ...]) -> dict[str, MachineState]:  # noqa: ARG001 - key
    return store_machines.load_machine_states(_database(url), run_ids=run_ids)


@_cached
def _studies(url: str, stamp: Stamp, gpu_uuid: str) -> list[AaStudy]:  # noqa: ARG001 - key
    return store_studies.load_studies(_database(url), gpu_uuid=gpu_uuid)


@_cached
def _change_points(url: str, stamp: Stamp, series_ids: tuple[str, ...]) -> list[ChangePoint]:  # noqa: ARG001 - key
    return store_change_points.load_change_points(_database(url), series_ids=series_ids)


@_cached
def _points(
    url: str,
    stamp: Stamp,  # noqa: ARG001 - key
    run_ids: tuple[str, ...] | None,
    series_ids: tuple[str, ...] | None,
) -> list[SeriesPoint]:
    return store_series.load_points(_database(url), run_ids=run_ids, series_ids=series_ids)


@_cached
def _tagged_points(url: str, stamp: Stamp, run_ids: tuple[str, ...], tag: str) -> list[SeriesPoint]:  # noqa: ARG001 - key
    return store_series.load_points(_database(url), run_ids=run_ids, tag=tag)


@_cached
def _verdicts(
    url: str,
    stamp: Stamp,  # noqa: ARG001 - key
    run_ids: tuple[str, ...],
    series_ids: tuple[str, ...] | None,
) -> dict[tuple[str, str], Verdict]:
    found = store_verdicts.load_verdicts(_database(url), run_ids=run_ids, series_ids=series_ids)
    return {(verdict.run_id, verdict.series.id): verdict for verdict in found}


@_cached
def _releases(url: str, stamp: Stamp, repository: str, globs: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001 - key
    return store_releases.releases(store_releases.load_tags(_database(url), repository), globs)


@_cached
def _renames(
    url: str,
    stamp: Stamp,  # noqa: ARG001 - key
    repository: str,
    run_ids: tuple[str, ...],
) -> dict[str, Renames]:
    return renames_of_runs(_database(url), repository, run_ids)


@_cached
def _commits(url: str, stamp: Stamp, repository: str) -> dict[str, Commit]:  # noqa: ARG001 - key
    return store_commits.load_commits(_database(url), repository)


@_cached
def _positions(url: str, stamp: Stamp, repository: str) -> dict[str, int]:  # noqa: ARG001 - key
    return store_commits.commit_positions(_database(url), repository)
