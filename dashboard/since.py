"""What changed since an earlier run: which run that is, and how far each series went since. Pure."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from dashboard.differences import Direction, difference
from dashboard.formatting import gpu_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dashboard.differences import Difference
    from dashboard.latest import LatestRow
    from store.records import RunHeader, SeriesPoint

SINCE_VERDICT = "baseline"


class Since(StrEnum):
    """How far back the reference lies, counted from the newest run of each GPU."""

    DAY = "day"
    WEEK = "week"
    RELEASE = "release"


_AGES = {Since.DAY: timedelta(days=1), Since.WEEK: timedelta(days=7)}
_WORDS = {Since.DAY: "at least a day", Since.WEEK: "at least a week"}
_ORDER = (Direction.SLOWER, Direction.FASTER, Direction.SAME, Direction.UNKNOWN)


def references(
    since: Since,
    newest: Sequence[RunHeader],
    history: Iterable[RunHeader],
    releases: Callable[[str], Mapping[str, str]],
) -> tuple[list[RunHeader], list[str]]:
    """The run that each newest run is compared with, and what stands in the way of the others.

    Args:
        since: how far back.
        newest: the newest run of each set of conditions on the main line.
        history: earlier runs of the same GPUs.
        releases: the release on each commit of a repository that has one.
    """
    earlier = sorted(
        (header for header in history if not header.dirty and header.confirms_run_id is None),
        key=lambda header: header.started_at,
        reverse=True,
    )
    found, notes = [], []
    for current in newest:
        marked = releases(current.repository) if since is Since.RELEASE else None
        before = [
            header
            for header in earlier
            if _comparable(header, current)
            and (
                header.started_at <= current.started_at - _AGES[since]
                if marked is None
                else header.commit_sha in marked and header.started_at < current.started_at
            )
        ]
        if before:
            found.append(before[0])
        else:
            notes.append(_without(since, current))
    return list({header.run_id: header for header in found}.values()), notes


def changes_since(
    rows: Iterable[LatestRow], references: Iterable[SeriesPoint]
) -> dict[tuple[str, str], Difference]:
    """The change of each measured row since the reference that holds its series, by run and series id."""
    by_series = {(point.series.id, point.header.repository): point for point in references}
    changes = {}
    for row in rows:
        if row.point is None:
            continue
        base = by_series.get((row.point.series.id, row.point.header.repository))
        if base is not None and base.header.run_id != row.point.header.run_id:
            changes[(row.point.header.run_id, row.point.series.id)] = difference(base, row.point)
    return changes


def moved_first(rows: Iterable[LatestRow], changes: Mapping[tuple[str, str], Difference]) -> list[LatestRow]:
    """What became slower, worst first; then what became faster; then the rest."""

    def place(row: LatestRow) -> tuple[int, float]:
        change = row.point and changes.get((row.point.header.run_id, row.point.series.id))
        if not change:
            return len(_ORDER), 0.0
        return _ORDER.index(change.direction), -abs(change.effect or 0.0)

    return sorted(rows, key=place)


def _comparable(header: RunHeader, current: RunHeader) -> bool:
    return (
        header.gpu_uuid == current.gpu_uuid
        and header.repository == current.repository
        and header.environment == current.environment
        and header.timer == current.timer
        and header.clock_regime == current.clock_regime
        and header.merge_base in (None, header.commit_sha)
    )


def _without(since: Since, current: RunHeader) -> str:
    gpu = gpu_label(current.gpu_name, current.gpu_uuid)
    if since is Since.RELEASE:
        return (
            f"No run of {gpu} on a release is stored under the conditions of its newest run: "
            "measure one with `collect --commit` and the release's tag."
        )
    return (
        f"No run of {gpu} that is {_WORDS[since]} older than its newest one is among those looked "
        "through, under the same conditions."
    )
