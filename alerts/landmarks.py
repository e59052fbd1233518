"""What divides the history of each series, gathered from the store."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from alerts.levels import Landmarks
from alerts.triage import Decisions
from store.change_points import load_change_points
from store.commits import merges_of
from store.triage import load_triage_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.change_points import ChangePoint
    from store.database import Database
    from store.older_names import Renames
    from store.records import Commit, RunHeader, SeriesKey


def load_landmarks(
    database: Database,
    header: RunHeader,
    series: Iterable[SeriesKey],
    *,
    line: Mapping[str, int],
    commits: Mapping[str, Commit],
    releases: Mapping[str, str],
    renames: Renames,
) -> dict[SeriesKey, Landmarks]:
    """The landmarks of every series of a run.

    Args:
        database: the store.
        header: the run.
        series: its series, under the names of today.
        line: first-parent distance of every commit that may serve as a baseline.
        commits: what is known of them.
        releases: the name of the release on each commit that has one.
        renames: older names, whose steps and accepted changes count as well.
    """
    events = load_triage_events(database, repository=header.repository)
    decisions, merges = Decisions.of(events).following(renames), merges_of(commits)
    steps: dict[SeriesKey, list[ChangePoint]] = defaultdict(list)
    for step in load_change_points(database, repository=header.repository, gpu_uuids=[header.gpu_uuid]):
        steps[renames.series(step.series)].append(step)
    return {
        key: Landmarks(
            accepted=None if cut is None else cut.commit_sha, steps=tuple(steps[key]), releases=releases
        )
        for key in series
        for cut in (decisions.cut(key, line, merges),)
    }
