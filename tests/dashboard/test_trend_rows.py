"""From points to the rows of a trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import a_commit, a_header, a_sha
from rows import a_point, a_timeline, a_verdict

from dashboard.trend import MARKS_MAX, places_max, reference_of, trend_rows
from store.records import FoldStatus, Interval, Outcome, Standing

if TYPE_CHECKING:
    from dashboard.trend import TrendRow
    from store.records import SeriesPoint, Verdict

COMMITS = {a_sha(number): a_commit(number) for number in range(1, 10)}
LINE = frozenset(COMMITS)


def rows_of(
    *points: SeriesPoint, places: tuple[int, ...], verdicts: tuple[Verdict, ...] = ()
) -> list[TrendRow]:
    return trend_rows(
        points,
        timeline=a_timeline(*places),
        commits=COMMITS,
        line=LINE,
        verdicts={(verdict.run_id, verdict.series.id): verdict for verdict in verdicts},
    )


def test_a_measured_commit_without_a_number_of_the_series_breaks_the_band() -> None:
    rows = rows_of(a_point(1), a_point(2), a_point(4), places=(1, 2, 3, 4))

    assert [(row.slot, row.segment) for row in rows] == [(0, 0), (1, 0), (3, 1)]


def test_the_band_passes_through_the_newest_run_of_a_commit() -> None:
    rows = rows_of(a_point(1, number=5), a_point(1, number=2), places=(1,))

    assert [row.leads for row in rows] == [False, True]


def test_the_band_leaves_out_uncommitted_changes() -> None:
    dirty = a_point(header=a_header(1, number=9, dirty=True))

    rows = rows_of(a_point(1), dirty, places=(1,))

    assert [(row.on_line, row.leads) for row in rows] == [(True, True), (False, False)]


def test_a_point_without_a_place_is_left_out() -> None:
    assert [row.slot for row in rows_of(a_point(1), a_point(2), places=(2,))] == [0]


def test_a_step_that_stays_flagged_is_named_once() -> None:
    points = [a_point(number) for number in (1, 2, 3, 4)]
    verdicts = tuple(a_verdict(point) for point in points[1:])

    rows = rows_of(*points, places=(1, 2, 3, 4), verdicts=verdicts)

    assert [row.is_marked for row in rows] == [False, True, True, True]
    assert [row.begins_mark for row in rows] == [False, True, False, False]


def test_a_flag_in_the_other_direction_is_news() -> None:
    points = [a_point(1), a_point(2)]
    verdicts = (a_verdict(points[0]), a_verdict(points[1], outcome=Outcome.IMPROVED, effect=-0.05))

    assert [row.begins_mark for row in rows_of(*points, places=(1, 2), verdicts=verdicts)] == [True, True]


def test_a_withdrawn_change_is_not_marked() -> None:
    point = a_point(1)

    (row,) = rows_of(point, places=(1,), verdicts=(a_verdict(point, standing=Standing.WITHDRAWN),))

    assert not row.is_marked


def test_a_relative_axis_counts_from_the_oldest_number() -> None:
    no_number = a_point(1, interval=Interval(None, None, None, 0, FoldStatus.REFUSED))

    rows = rows_of(no_number, a_point(2, center=0.3), a_point(3, center=0.4), places=(1, 2, 3))

    assert reference_of(rows) == 0.3


def test_all_charts_of_a_page_together_stay_below_the_limit_of_marks() -> None:
    for n_series in (1, 3, 8):
        assert places_max(n_series) * n_series * 3 <= MARKS_MAX
