"""Releases, steps, accepted changes and new software on the commit axis."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_header, a_line_of_commits, a_measurement, a_run, a_sha
from pages import specs_of, text_of
from rows import a_point, a_timeline
from triage_events import an_event

from dashboard.charts.overlay import landmark_layers, overlay_chart
from dashboard.charts.trend import trend_chart, value_axis
from dashboard.landmarks import Landmark, Mark, environments_on, releases_on, steps_on
from dashboard.trend import trend_rows
from store.change_points import ChangePoint, save_change_points
from store.database import Database
from store.records import Case, GitTag
from store.runs import save_run
from store.triage import save_triage_events
from store.triage_events import Action, Scope, TriageEvent

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage

    from store.records import SeriesKey

POSITIONS = {a_sha(number): number for number in range(1, 30)}


def a_step(series: SeriesKey, **changes: Any) -> ChangePoint:
    fields: dict[str, Any] = {
        "series": series, "repository": "github.com/example/kernels", "commit_before": a_sha(3),
        "commit_sha": a_sha(4), "run_id": a_header(4).run_id, "size": 0.05, "size_low": 0.04,
        "size_high": 0.06, "p_value": 0.001, "method_version": 1, "found_at": EPOCH,
    }  # fmt: skip
    return ChangePoint(**(fields | changes))


def test_a_release_that_was_not_measured_stands_at_the_next_measured_commit() -> None:
    releases = {a_sha(4): "v1", a_sha(7): "v2", a_sha(1): "too old", a_sha(20): "too new"}

    marks = releases_on(a_timeline(4, 6, 9), releases, POSITIONS)

    assert [(mark.slot, mark.short) for mark in marks] == [(0, "v1"), (2, "v2")]


def test_a_step_within_a_commit_is_said_to_be_the_machine() -> None:
    series = a_point().series
    steps = [a_step(series), a_step(series, commit_before=a_sha(4)), a_step(series, commit_sha=a_sha(99))]

    code, machine = steps_on(a_timeline(3, 4), steps)

    assert (code.slot, code.short) == (1, "step +5.00 %")
    assert "machine" in machine.text
    assert "machine" not in code.text


def test_new_software_is_marked_with_what_changed() -> None:
    headers = [
        a_header(3, environment="cuda=13.0 driver=580"),
        a_header(4, environment="cuda=13.0 driver=590"),
        a_header(5, environment="cuda=13.0 driver=590"),
    ]

    (mark,) = environments_on(a_timeline(3, 4, 5), reversed(headers))

    assert (mark.slot, mark.text) == (1, "new software: driver 580 to 590")


def marks_of_every_kind() -> list[Mark]:
    return [Mark(slot=n, kind=kind, short=kind, text=f"a {kind}") for n, kind in enumerate(Landmark)]


def test_every_kind_of_landmark_is_drawn_with_words_in_a_valid_chart() -> None:
    timeline = a_timeline(3, 4, 5, 6)
    rows = trend_rows(
        [a_point(number) for number in (3, 4, 5, 6)],
        timeline=timeline, commits={}, line=frozenset(POSITIONS), verdicts={},
    )  # fmt: skip

    one = trend_chart(
        rows, series=rows[0].point.series, gpu_name="H200", timeline=timeline, axis=value_axis(rows),
        behind=landmark_layers(marks_of_every_kind(), timeline), with_windows=True,
    ).to_dict()  # fmt: skip
    several = overlay_chart(
        {"one": rows, "other": rows}, timeline=timeline, marks=marks_of_every_kind()
    ).to_dict()

    for spec in (one, several):
        for kind in Landmark:
            assert f'"a {kind}"' in json.dumps(spec)
    assert sum(len(values) for values in one["datasets"].values()) == 4 + 4 * 8 + len(Landmark)


def a_marked_store(folder: Path) -> tuple[Database, SeriesKey]:
    """Six commits with a release, a step and an accepted change."""
    database = Database(folder / "marked.duckdb")
    for number in range(1, 7):
        tags = (GitTag(name="v1.0", commit_sha=a_sha(2)),)
        save_run(database, a_run(number, git_tags=tags, history=a_line_of_commits(number)))
    run = a_run(4)
    series = run.series_key(run.measurements[0])
    save_change_points(database, run.header.repository, {series: [a_step(series)]})
    event = TriageEvent(
        event_id="0a1b2c3d-0000-4000-8000-000000000002", repository=run.header.repository,
        action=Action.ACCEPT, scope=Scope(benchmark=series.case.benchmark), commit_sha=a_sha(4),
        body="wanted for accuracy", decided_by="Ada", decided_at=EPOCH,
    )  # fmt: skip
    save_triage_events(database, [event])
    return database, series


def test_the_trend_marks_releases_steps_and_accepted_changes(tmp_path: Path, open_page: OpenPage) -> None:
    database, series = a_marked_store(tmp_path)

    app = open_page(database.url, "trends", series=series.id)

    assert not app.exception
    page = text_of(app)
    assert "release v1.0" in page
    assert "step +5.00 %" in page
    assert "accepted by Ada: wanted for accuracy" in page
    assert '"field": "short"' in json.dumps(specs_of(app))  # the words of the marks


def a_renamed_store(folder: Path) -> tuple[Database, SeriesKey]:
    """Six commits, the last two under a new name; a change of the third was accepted under the old one."""
    database = Database(folder / "renamed.duckdb")
    for number in range(1, 7):
        name, before = ("soft_max", None) if number < 5 else ("softmax", "soft_max")
        measurement = a_measurement(name, renamed_from=before)
        run = a_run(number, measurements=(measurement,), history=a_line_of_commits(number))
        save_run(database, run)
    event = an_event(Action.ACCEPT, scope=Scope(benchmark="soft_max"), commit_sha=a_sha(3), decided_by="Ada")
    save_triage_events(database, [event])
    return database, run.series_key(measurement)


@pytest.mark.parametrize("charts", ["one for each", "together"])
def test_a_renamed_benchmark_keeps_its_points_and_accepted_changes_on_its_trend(
    tmp_path: Path, open_page: OpenPage, charts: str
) -> None:
    database, series = a_renamed_store(tmp_path)
    other = replace(series, case=Case("soft_max", series.case.parameters))

    app = open_page(database.url, "trends", series=[series.id, other.id], charts=charts)
    alone = text_of(open_page(database.url, "trends", series=series.id))

    assert not app.exception
    assert "accepted by Ada" in alone
    page = text_of(app)
    assert "from before it was renamed: soft\\_max" in page
    for number in range(1, 7):  # each under the series that it was measured as
        measured_as = other if number < 5 else series
        assert f"run={a_header(number).run_id}&amp;series={measured_as.id}" in page


def test_the_old_name_is_followed_no_further_than_it_was_given_up(
    tmp_path: Path, open_page: OpenPage
) -> None:
    database, series = a_renamed_store(tmp_path)
    both = (a_measurement("softmax", renamed_from="soft_max"), a_measurement("soft_max"))
    save_run(database, a_run(7, measurements=both, history=a_line_of_commits(7)))

    page = text_of(open_page(database.url, "trends", series=series.id))

    assert "accepted by Ada" not in page
    assert "before it was renamed" not in page


def test_several_series_share_one_chart_when_asked(busy_store: Database, open_page: OpenPage) -> None:
    overview = text_of(open_page(busy_store.url))
    ids = sorted({part[:16] for part in overview.split("/trends?series=")[1:]})[:3]

    app = open_page(busy_store.url, "trends", series=ids, charts="together")

    assert not app.exception
    (spec,) = specs_of(app)
    assert "change since its oldest (%)" in json.dumps(spec)


def test_window_medians_are_drawn_on_demand(busy_store: Database, open_page: OpenPage) -> None:
    series = text_of(open_page(busy_store.url)).split("/trends?series=")[1][:16]

    hidden = specs_of(open_page(busy_store.url, "trends", series=series))
    shown = specs_of(open_page(busy_store.url, "trends", series=series, windows="shown"))

    assert "median of a window" not in json.dumps(hidden)
    assert "median of a window" in json.dumps(shown)
