"""From the points of a series to the rows of a trend chart and of the table below it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.timeline import is_on_line, place_of
from store.records import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dashboard.timeline import Timeline
    from store.records import Commit, Outcome, SeriesPoint, Verdict

_MARKED = (Standing.FLAGGED, Standing.CONFIRMED)
# A chart with more marks than this is slow to draw and no longer readable by a screen reader.
MARKS_MAX = 3_000
_MARKS_PER_POINT = 3  # interval, point, mark of a flag
_WINDOWS_USUAL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRow:
    """One point of a trend.

    Attributes:
        slot: place on the commit axis.
        on_line: whether the run measured a commit of the main line, without changes.
        leads: whether line and band pass through the point: the newest run of its commit on the line.
        segment: points of one segment are joined; a measured commit in between without a
            number of this series begins a new one.
        begins_mark: whether the flag at this point is news: a step is flagged again on each
            commit until the baselines have moved past it, and is named once.
    """

    slot: int
    point: SeriesPoint
    commit: Commit | None
    verdict: Verdict | None
    on_line: bool
    leads: bool
    segment: int
    begins_mark: bool

    @property
    def is_marked(self) -> bool:
        """Whether a change was flagged or confirmed at this point."""
        return _mark(self.verdict) is not None


def places_max(n_series: int, *, with_windows: bool = False) -> int:
    """How many commits may be shown so that all charts of a page stay light together."""
    per_point = _MARKS_PER_POINT + (_WINDOWS_USUAL if with_windows else 0)
    return MARKS_MAX // (per_point * max(1, n_series))


def trend_rows(
    points: Iterable[SeriesPoint],
    *,
    timeline: Timeline,
    commits: Mapping[str, Commit],
    line: frozenset[str],
    verdicts: Mapping[tuple[str, str], Verdict],
) -> list[TrendRow]:
    """Place the points of one series on the commit axis, oldest commit first.

    Args:
        points: of one series; those without a place on the timeline are left out.
        timeline: the commit axis.
        commits: what git knows about each commit.
        line: the main line, see ``dashboard.timeline.main_line``.
        verdicts: by run id and series id.
    """
    slots = timeline.slots()
    placed = [point for point in points if place_of(point.header) in slots]
    placed.sort(key=lambda point: (slots[place_of(point.header)], point.header.started_at))
    leading = {
        place_of(point.header): point.header.run_id for point in placed if is_on_line(point.header, line)
    }
    rows: list[TrendRow] = []
    segment, last_slot, last_mark = 0, None, None
    for point in placed:
        slot = slots[place_of(point.header)]
        leads = leading.get(place_of(point.header)) == point.header.run_id
        if leads:
            segment += last_slot is not None and slot > last_slot + 1
            last_slot = slot
        sha = point.header.commit_sha
        verdict = verdicts.get((point.header.run_id, point.series.id))
        mark = _mark(verdict)
        rows.append(
            TrendRow(
                slot=slot,
                point=point,
                commit=None if sha is None else commits.get(sha),
                verdict=verdict,
                on_line=is_on_line(point.header, line),
                leads=leads,
                segment=segment,
                begins_mark=mark is not None and mark != last_mark,
            )
        )
        last_mark = mark
    return rows


def _mark(verdict: Verdict | None) -> tuple[Standing, Outcome] | None:
    """What a chart marks about a verdict: nothing, or how sure it is and in which direction."""
    if verdict is None or verdict.standing not in _MARKED:
        return None
    return verdict.standing, verdict.outcome


def reference_of(rows: Sequence[TrendRow]) -> float | None:
    """The centre that a relative axis counts from: the oldest shown, in milliseconds."""
    return next((row.point.interval.center for row in rows if row.point.interval.center is not None), None)
