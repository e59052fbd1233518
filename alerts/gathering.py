"""Gather from the store what a run is judged by."""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING

from alerts.baseline import conditions, distance, on_line
from alerts.judge import Evidence
from alerts.landmarks import load_landmarks
from alerts.partner import partner_id
from store.commits import first_parent_line, load_commits
from store.errors import RunNotFound
from store.older_names import Renames
from store.releases import load_tags, releases
from store.renames import load_renames
from store.runs import find_runs, load_run
from store.series import load_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alerts.policy import Policy, Rules
    from store.database import Database
    from store.records import Commit, Failure, RunHeader, SeriesPoint

_RELEASES_LOOKED_UP = 2  # the newest may lie within the pool, and then the one before it serves


def gather(database: Database, run_id: str, rules: Rules) -> Evidence:
    """Everything that a run is judged by.

    Args:
        database: the store that holds the run.
        run_id: the run's id, or a prefix of it that no other run shares.
        rules: how many runs a pool takes and how far is searched for them.

    Raises:
        StoreError: the store cannot be read, or holds no such run.
    """
    run = load_run(database, run_id)
    header, policy = run.header, rules.general
    headers, commits = find_runs(database), load_commits(database, run.header.repository)
    # A base branch may have moved since the run that is confirmed here; its baseline stays.
    first = next((other for other in headers if other.run_id == header.confirms_run_id), header)
    line = baseline_line(first, commits)
    released = releases(load_tags(database, header.repository), policy.release_tags)
    candidates = tuple(load_points(database, run_ids=[header.run_id]))
    names = {point.series.case.benchmark for point in candidates}
    renames = Renames.of(load_renames(database, header.repository), names)
    benchmarks = sorted(names.union(*(renames.old_names(name) for name in names)))
    ancestors = sorted(
        (other for other in headers if on_line(header, other, line)),
        key=lambda other: distance(other, line),
    )
    reached = reached_runs(header, ancestors, line, released, policy)
    paired, paired_failures = _partner(database, header)
    return Evidence(
        header=header,
        candidates=candidates,
        failures=run.failures,
        history=tuple(renames.points(_history(database, header, reached, benchmarks, policy))),
        line=line,
        paired=tuple(renames.points(paired)),
        paired_failures=paired_failures,
        landmarks=load_landmarks(
            database,
            header,
            [point.series for point in candidates],
            line=line,
            commits=commits,
            releases=released,
            renames=renames,
        ),
        renames=renames,
    )


def baseline_line(header: RunHeader, commits: Mapping[str, Commit]) -> dict[str, int]:
    """First-parent distance from the merge-base of every commit that may be a baseline.

    The judged commit is not its own baseline; uncommitted changes to it may be compared with it.
    """
    if header.commit_sha is None or header.merge_base is None:
        return {}
    known = [commit.sha for commit in first_parent_line(commits, header.merge_base)]
    own = None if header.dirty else header.commit_sha
    return {sha: index for index, sha in enumerate(known or [header.merge_base]) if sha != own}


def reached_runs(
    header: RunHeader,
    ordered: Sequence[RunHeader],
    line: Mapping[str, int],
    released: Mapping[str, str],
    policy: Policy,
) -> list[RunHeader]:
    """The runs to look at, nearest first: as many as the policy says, and those up to a release.

    Args:
        header: the run that is judged.
        ordered: the runs on its ancestors, nearest first.
        line: first-parent distance of every commit that may serve as a baseline.
        released: the name of the release on each commit that has one.
        policy: how many.
    """
    reached, known = list(ordered[: policy.reach_runs]), set[str]()
    on_the_line = sorted((sha for sha in released if sha in line), key=line.__getitem__)
    for sha in on_the_line[:_RELEASES_LOOKED_UP]:
        begin = bisect_left(ordered, line[sha], key=lambda other: line[other.commit_sha or ""])
        before = (ordered[place] for place in range(max(begin, policy.reach_runs), len(ordered)))
        alike = (other for other in before if conditions(other) == conditions(header))
        fresh = [other for other in islice(alike, policy.pool_size) if other.run_id not in known]
        known.update(other.run_id for other in fresh)
        reached += fresh
    return reached


def _history(
    database: Database,
    header: RunHeader,
    ancestors: Sequence[RunHeader],
    benchmarks: Sequence[str],
    policy: Policy,
) -> list[SeriesPoint]:
    """The points of the run's benchmarks on all ancestors, and all of the nearest runs.

    The latter tell what the run should have measured as well.
    """
    # On the run's own GPU: what ran on another one says nothing about what is missing here.
    whole = [run.run_id for run in ancestors if run.gpu_uuid == header.gpu_uuid][: policy.pool_size]
    others = [run.run_id for run in ancestors if run.run_id not in set(whole)]
    points = load_points(database, run_ids=whole) if whole else []
    return points + (load_points(database, run_ids=others, benchmarks=benchmarks) if others else [])


def _partner(database: Database, header: RunHeader) -> tuple[tuple[SeriesPoint, ...], tuple[Failure, ...]]:
    """What the run that took turns with this one measured, and what failed in it; nothing without one."""
    partner = partner_id(header)
    if partner is None:
        return (), ()
    try:
        failures = load_run(database, partner).failures
    except RunNotFound:  # its bundle has not arrived here; the verdicts say so
        return (), ()
    return tuple(load_points(database, run_ids=[partner])), failures
