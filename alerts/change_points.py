"""Search the stored history for change points, and remember them."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alerts.baseline import distance, is_usable
from alerts.errors import NothingToJudge
from alerts.policy import Policy
from alerts.steps import METHOD_VERSION, find_steps
from store import shown
from store.change_points import ChangePoint, save_change_points
from store.commits import first_parent_line, load_commits
from store.older_names import NO_RENAMES, Renames
from store.renames import load_renames
from store.series import load_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alerts.policy import Rules
    from alerts.steps import StepRule
    from store.database import Database
    from store.records import Commit, SeriesKey, SeriesPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The history of one series, and the steps in it.

    Attributes:
        series: under the name that its benchmark has today.
        points: one per run, in commit order, oldest first, each under the name it was measured with.
        left_out: measurements of this series that are no part of it: of uncommitted changes, on
            another line than the one with most runs, below the minimum tier, without an interval,
            or under an older name in a run that has a newer one as well.
        changes: oldest first, each under the name that the first run after it was measured with.
        renamed_from: the older names under which some of it was measured.
    """

    series: SeriesKey
    repository: str
    points: tuple[SeriesPoint, ...]
    left_out: int
    changes: tuple[ChangePoint, ...]
    renamed_from: tuple[str, ...] = ()


def search(
    database: Database,
    *,
    gpu: str | None = None,
    rule: StepRule | None = None,
    rules: Rules | None = None,
    found_at: datetime | None = None,
) -> list[History]:
    """Search every series for steps and store them in place of what was found before.

    A series is searched along one first-parent line of its repository, the one with most of
    the repository's runs, so that a run of a branch never stands between two of the main line.
    What was measured under older names of a benchmark belongs to its series; a step is stored
    under the name that was measured then.

    Args:
        database: the store.
        gpu: only series on GPUs whose UUID begins with this; None for all.
        rule: what counts as a step; the defaults where None.
        rules: the lowest tier that takes part, by benchmark; the defaults where None.
        found_at: what to write down as the time of the search; now where None.

    Raises:
        NothingToJudge: no series is left to search.
        StoreError: the store cannot be read or written.
    """
    rules, moment = rules or Policy(), found_at or datetime.now(UTC)
    by_repository: dict[str, list[SeriesPoint]] = defaultdict(list)
    for point in load_points(database):
        if gpu is None or point.header.gpu_uuid.startswith(gpu):
            by_repository[point.header.repository].append(point)
    if not by_repository:
        on_gpu = "" if gpu is None else f" on a GPU that begins with {shown.visible(gpu)}"
        raise NothingToJudge(
            f"the store {database.url} holds no measurement{on_gpu}: run `collect --commit HEAD`, or name "
            "another store with --store"
        )
    found: list[History] = []
    for repository, points in sorted(by_repository.items()):
        line = busiest_line(points, load_commits(database, repository))
        renames = renames_along(line, points, load_renames(database, repository))
        histories = histories_along(line, points, rules=rules, rule=rule, found_at=moment, renames=renames)
        steps: dict[SeriesKey, list[ChangePoint]] = {point.series: [] for point in points}
        for history in histories:
            for change in history.changes:
                steps[change.series].append(change)
        save_change_points(database, repository, steps)
        found += histories
    return found


def renames_along(
    line: Mapping[str, int], points: Iterable[SeriesPoint], declared: Iterable[tuple[str, str]]
) -> Renames:
    """The renames that took place on a line: there the new name was measured later than the old one.

    Args:
        line: first-parent distance of every commit from its tip.
        points: of any run.
        declared: (old name, new name) as suites declared them.
    """
    nearest: dict[str, int] = {}
    for point in points:
        place = line.get(point.header.commit_sha or "")
        if place is not None and not point.header.dirty:
            name = point.series.case.benchmark
            nearest[name] = min(place, nearest.get(name, place))
    pairs = list(declared)
    given_up = {old for old, new in pairs if new in nearest and nearest[new] < nearest.get(old, math.inf)}
    return Renames.of(pairs, nearest.keys() - given_up)


def busiest_line(points: Iterable[SeriesPoint], commits: Mapping[str, Commit]) -> dict[str, int]:
    """First-parent distance from its tip of every commit on the line with most of the runs.

    Of lines with equally many runs it is the longest; of those, the one whose tip has the
    smallest id, so that the answer does not depend on the order of anything.
    """
    runs: dict[str, set[str]] = defaultdict(set)
    for point in points:
        if point.header.commit_sha is not None and not point.header.dirty:
            runs[point.header.commit_sha].add(point.header.run_id)
    lines = {sha: [commit.sha for commit in first_parent_line(commits, sha)] or [sha] for sha in runs}
    if not lines:
        return {}
    measured = {sha: sum(len(runs.get(other, ())) for other in line) for sha, line in lines.items()}
    tip = min(lines, key=lambda sha: (-measured[sha], -len(lines[sha]), sha))
    return {sha: index for index, sha in enumerate(lines[tip])}


def histories_along(
    line: Mapping[str, int],
    points: Iterable[SeriesPoint],
    *,
    rules: Rules,
    rule: StepRule | None,
    found_at: datetime,
    renames: Renames = NO_RENAMES,
) -> list[History]:
    """The history of each series along a line, with its steps, by benchmark: pure."""
    by_series: dict[SeriesKey, list[SeriesPoint]] = defaultdict(list)
    for point in points:
        by_series[renames.series(point.series)].append(point)
    histories = []
    for series, own in sorted(by_series.items(), key=lambda item: (item[0].case.label, item[0].id)):
        own.sort(key=lambda point: (point.series == series, point.series.case.benchmark))
        usable = [
            point
            for point in {point.header.run_id: point for point in own}.values()
            if point.header.commit_sha in line
            and not point.header.dirty
            and is_usable(point, rules.of(series.case))
        ]
        usable.sort(key=lambda point: distance(point.header, line), reverse=True)
        histories.append(
            History(
                series=series,
                repository=own[0].header.repository,
                points=tuple(usable),
                left_out=len(own) - len(usable),
                changes=tuple(_changes(usable, rule, found_at)),
                renamed_from=tuple(
                    sorted({point.series.case.benchmark for point in own} - {series.case.benchmark})
                ),
            )
        )
    return histories


def _changes(
    points: Sequence[SeriesPoint], rule: StepRule | None, found_at: datetime
) -> Iterable[ChangePoint]:
    """The steps of one series with the commits on either side."""
    if not points:
        return
    centers = [center for point in points if (center := point.interval.center) is not None]
    quantum = max(point.resolution_ms for point in points) / statistics.median(centers)
    for step in find_steps([math.log(center) for center in centers], quantum=quantum, rule=rule):
        before, after = points[step.last_before].header, points[step.position].header
        yield ChangePoint(
            series=points[step.position].series,
            repository=after.repository,
            commit_before=before.commit_sha or "",
            commit_sha=after.commit_sha or "",
            run_id=after.run_id,
            size=step.size,
            size_low=step.size_low,
            size_high=step.size_high,
            p_value=step.p_value,
            method_version=METHOD_VERSION,
            found_at=found_at,
        )
