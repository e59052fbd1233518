"""How far two measurements lie apart, and which earlier run a change is counted from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from builders import a_header, a_sha
from rows import a_point, an_interval

from dashboard.differences import Difference, Direction, difference, mean_effect
from dashboard.latest import latest_rows
from dashboard.since import Since, changes_since, moved_first, references
from store.records import FoldStatus, Interval, SeriesPoint

REFUSED = Interval(0.25, None, None, 2, FoldStatus.REFUSED)


def spread(center: float, *, half: float = 0.001, **changes: Any) -> SeriesPoint:
    """A point whose windows spread as its interval does."""
    medians = tuple(center + half * (place - 3.5) / 7 for place in range(8))
    return a_point(
        center=center, interval=an_interval(center, half=half), window_medians_ms=medians, **changes
    )


@pytest.mark.parametrize(
    ("candidate", "direction"),
    [
        (0.2530, Direction.SLOWER),
        (0.2520, Direction.SAME),  # touching ends overlap
        (0.2470, Direction.FASTER),
    ],
)
def test_the_direction_follows_the_intervals(candidate: float, direction: Direction) -> None:
    base = a_point(interval=Interval(0.25, 0.249, 0.251, 8, FoldStatus.OK))
    other = a_point(interval=Interval(candidate, candidate - 0.001, candidate + 0.001, 8, FoldStatus.OK))

    assert difference(base, other).direction is direction


def test_the_effect_has_an_interval_round_the_ratio_of_the_windows() -> None:
    found = difference(spread(0.25), spread(0.26))

    assert found.effect == pytest.approx(0.04, abs=1e-4)
    assert found.low is not None
    assert found.high is not None
    assert 0.035 < found.low < 0.04 < found.high < 0.045


def test_a_refused_interval_leaves_the_direction_open() -> None:
    found = difference(spread(0.25), a_point(interval=REFUSED, window_medians_ms=(0.25,)))

    assert (found.direction, found.low) == (Direction.UNKNOWN, None)
    assert found.effect == pytest.approx(0)


def with_effect(effect: float, **changes: Any) -> Difference:
    return difference(spread(0.25), spread(0.25 * (1 + effect), **changes))


def test_the_mean_of_ratios_is_geometric_and_leaves_sentinels_out() -> None:
    doubled, halved = with_effect(1.0), with_effect(-0.5)
    sentinel = with_effect(9.0, tags=("sentinel",))

    mean = mean_effect([doubled, halved, sentinel])

    assert mean is not None
    assert mean.relative == pytest.approx(0, abs=1e-3)
    assert mean.low < -0.9
    assert mean.high > 10
    assert mean_effect([doubled, sentinel]) is None


def test_the_reference_is_the_newest_run_that_is_old_enough() -> None:
    newest = a_header(200)
    history = [a_header(number) for number in range(150, 200)]

    (day,), notes = references(Since.DAY, [newest], history, lambda _: {})

    assert newest.started_at - day.started_at == timedelta(hours=24)
    assert not notes


def test_without_a_run_that_old_the_note_says_so() -> None:
    found, (note,) = references(Since.WEEK, [a_header(200)], [a_header(199)], lambda _: {})

    assert not found
    assert "at least a week older" in note


def test_a_release_is_the_newest_measured_commit_that_has_one() -> None:
    history = [a_header(number) for number in (10, 20, 30)]
    marks = {a_sha(10): "v1", a_sha(20): "v2"}

    (release,), _ = references(Since.RELEASE, [a_header(40)], history, lambda _: marks)
    _, (note,) = references(Since.RELEASE, [a_header(40)], history, lambda _: {})

    assert release.commit_sha == a_sha(20)
    assert "on a release" in note


@pytest.mark.parametrize(
    "changes", [{"dirty": True}, {"environment": "driver=590"}, {"merge_base": a_sha(5)}]
)
def test_a_run_of_other_code_or_conditions_is_no_reference(changes: dict[str, Any]) -> None:
    found, notes = references(Since.DAY, [a_header(200)], [a_header(10, **changes)], lambda _: {})

    assert (found, len(notes)) == ([], 1)


def test_what_became_slower_comes_first_then_what_became_faster() -> None:
    sizes = {"same": 0.25, "faster": 0.24, "slower": 0.26, "slowest": 0.30, "new": 0.25}
    header = a_header(200)
    points = [spread(center, benchmark=name, header=header) for name, center in sizes.items()]
    before = [spread(0.25, benchmark=name, header=a_header(100)) for name in sizes if name != "new"]
    rows = latest_rows(points, {}, frozenset({a_sha(200)}))

    ordered = moved_first(rows, changes_since(rows, before))

    assert [row.label.partition("[")[0] for row in ordered] == ["slowest", "slower", "faster", "same", "new"]
