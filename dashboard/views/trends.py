"""Trends: series over their commits, as bands, with tiers and flags; a click leads to the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from alerts.triage import Decisions
from dashboard import queries, states, url_state
from dashboard.charts import trend as trend_charts
from dashboard.charts.overlay import landmark_layers, overlay_chart
from dashboard.errors import UnknownSeries
from dashboard.formatting import count_of, gpu_label, literal
from dashboard.landmarks import accepted_on, environments_on, releases_on, steps_on
from dashboard.latest import lately, latest_rows
from dashboard.series_names import series_names
from dashboard.tables import Column, code, link, plain, table
from dashboard.timeline import Timeline, lay_out, main_line
from dashboard.trend import TrendRow, places_max, reference_of, trend_rows
from dashboard.trend_table import trend_cells
from dashboard.triage_store import events
from dashboard.views.drawing import draw
from store import shown
from store.errors import ConfigurationInvalid
from store.older_names import NO_RENAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dashboard.landmarks import Mark
    from store.older_names import Renames
    from store.records import Commit, RunHeader, SeriesKey, SeriesPoint, Verdict

SERIES_MAX = 8
_COMMIT_COUNTS = ("50", "150", "500", "1000")
_COMMIT_COUNT = "150"
# Several runs may stand on one commit; this many are read for each commit that is shown.
_RUNS_PER_COMMIT = 3
_MOVERS = 5
_MAIN_LINE = "main line"
_APART, _TOGETHER = "one for each", "together"
_MARKS_LISTED = 30
_ROWS_AT_FIRST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What the controls say."""

    relative: bool
    logarithmic: bool
    together: bool
    with_windows: bool
    off_line: bool
    n_commits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """What the store knows about the runs to be shown.

    Attributes:
        renames: the older names of the benchmark of each series, by the series id.
        marks: the landmarks of each series, likewise.
    """

    timeline: Timeline
    commits: Mapping[str, Commit]
    line: frozenset[str]
    verdicts: Mapping[tuple[str, str], Verdict]
    renames: Mapping[str, Renames]
    marks: Mapping[str, Sequence[Mark]]

    def own(self, series: SeriesKey, points: Iterable[SeriesPoint]) -> list[SeriesPoint]:
        """The points of a series, those under an older name among them, each as it was measured."""
        ids = {key.id for key in (series, *self.renames[series.id].earlier(series))}
        return [point for point in points if point.series.id in ids]


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    st.title("Trends")
    recent = [header.run_id for header in lately(headers, per_gpu=_MOVERS)]
    offered = queries.newest_points(recent)
    asked = url_state.in_url("series")
    missing = [series_id for series_id in asked if series_id not in {p.series.id for p in offered}]
    older = queries.points(series_ids=missing) if missing else []
    known = {point.series.id: point for point in [*older, *offered]}
    _check_known(asked, known)
    names = series_names(known.values())
    chosen = url_state.many(
        "Series", "series", sorted(names, key=names.__getitem__), show=names.__getitem__,
        placeholder="choose one or several", most=SERIES_MAX,
    )  # fmt: skip
    if not chosen:
        _offer_movers(offered, names)
        return
    view = _controls(len(chosen))
    repository = _repository({known[series_id].header.gpu_uuid for series_id in chosen}, headers)
    _show_series([known[series_id] for series_id in chosen], repository, view)


def _check_known(asked: Sequence[str], known: Mapping[str, SeriesPoint]) -> None:
    unknown = [series_id for series_id in asked if series_id not in known]
    if not unknown:
        return
    message = f"no measurement of series {', '.join(unknown)} is stored: the link may belong to another store"
    if len(unknown) == len(asked):
        raise UnknownSeries(message)
    st.warning(literal(message))


def _controls(n_series: int) -> _View:
    with st.container(horizontal=True, gap="medium"):
        shape = url_state.switch("Axis", "axis", ("absolute", "relative"), default="absolute")
        kind = url_state.switch(
            "Scale",
            "scale",
            ("linear", "log"),
            default="linear",
            help_text="A relative axis holds negative numbers and stays linear.",
        )
        line = url_state.switch(
            "Runs",
            "runs",
            (_MAIN_LINE, "all"),
            default=_MAIN_LINE,
            help_text="All: those on branches and with uncommitted changes too. Their points are hollow.",
        )
        charts = url_state.switch(
            "Charts",
            "charts",
            (_APART, _TOGETHER),
            default=_APART,
            help_text="Together: every series in one chart, in percent of its own oldest centre.",
        )
        windows = url_state.switch(
            "Windows", "windows", ("hidden", "shown"), default="hidden",
            help_text="Shown: the median of each window as a small tick.",
        )  # fmt: skip
        n_commits = url_state.one(
            "Newest commits", "commits", _COMMIT_COUNTS, default=_COMMIT_COUNT, width_px=140
        )
    return _View(
        relative=shape == "relative",
        logarithmic=kind == "log",
        off_line=line != _MAIN_LINE,
        together=charts == _TOGETHER,
        with_windows=windows == "shown",
        n_commits=min(int(n_commits), places_max(n_series, with_windows=windows == "shown")),
    )


def _repository(gpu_uuids: set[str], headers: Sequence[RunHeader]) -> str:
    """One repository at a time: commits of two have no common order."""
    of_gpus = [header.repository for header in headers if header.gpu_uuid in gpu_uuids]
    repositories = list(dict.fromkeys(of_gpus or [header.repository for header in headers]))
    if len(repositories) == 1:
        return repositories[0]
    return url_state.one("Repository", "repository", repositories, default=repositories[0])


def _show_series(chosen: Sequence[SeriesPoint], repository: str, view: _View) -> None:
    limit = _RUNS_PER_COMMIT * view.n_commits
    headers = [
        header
        for gpu_uuid in dict.fromkeys(point.series.gpu_uuid for point in chosen)
        for header in queries.recent_headers(gpu_uuid=gpu_uuid, limit=limit)
        if header.repository == repository
    ]
    commits = queries.commits(repository)
    line = main_line(headers, commits)
    placed = [header for header in headers if view.off_line or _is_shown(header, line)]
    renames = _renames(chosen, repository)
    run_ids = [header.run_id for header in placed]
    series_ids = [key.id for p in chosen for key in (p.series, *renames[p.series.id].earlier(p.series))]
    timeline = lay_out(placed, queries.positions(repository), newest=view.n_commits)
    history = _History(
        timeline=timeline,
        commits=commits,
        line=line,
        verdicts=queries.verdicts(run_ids, series_ids),
        renames=renames,
        marks=_marks(chosen, placed, timeline, repository, renames),
    )
    points = queries.points(run_ids=run_ids, series_ids=series_ids)
    if view.together and len(chosen) > 1:
        _show_together(chosen, points, history)
    else:
        for point in chosen:
            _show_one(point, history.own(point.series, points), history, view)
    _notes(history.timeline, n_hidden=len(headers) - len(placed), view=view)


def _renames(chosen: Sequence[SeriesPoint], repository: str) -> dict[str, Renames]:
    """What each series was called before, by its id, as the newest run with its name says."""
    own = [point for point in chosen if point.header.repository == repository]
    known = queries.renames(repository, sorted({point.header.run_id for point in own}))
    by_series = {point.series.id: known.get(point.header.run_id, NO_RENAMES) for point in own}
    return {point.series.id: by_series.get(point.series.id, NO_RENAMES) for point in chosen}


def _marks(
    chosen: Sequence[SeriesPoint],
    placed: Sequence[RunHeader],
    timeline: Timeline,
    repository: str,
    renames: Mapping[str, Renames],
) -> dict[str, list[Mark]]:
    """The landmarks of each series, by its id."""
    released = releases_on(timeline, _releases(repository), queries.positions(repository))
    steps = queries.change_points([point.series.id for point in chosen])
    decisions = Decisions.of(event for event in events() if event.repository == repository)
    marks = {}
    for point in chosen:
        series = point.series
        own_steps = [s for s in steps if s.series.id == series.id and s.repository == repository]
        alike = [h for h in placed if (h.gpu_uuid, h.timer) == (series.gpu_uuid, series.timer)]
        marks[series.id] = [
            *released,
            *steps_on(timeline, own_steps),
            *accepted_on(timeline, decisions.following(renames[series.id]).accepted(series)),
            *environments_on(timeline, alike),
        ]
    return marks


def _releases(repository: str) -> Mapping[str, str]:
    """The releases to mark; a configuration that cannot be read costs these marks alone."""
    try:
        return queries.releases(repository)
    except ConfigurationInvalid as error:
        st.warning(f"Releases are not marked, since the configuration holds a mistake: {literal(str(error))}")
        return {}


def _show_together(chosen: Sequence[SeriesPoint], points: Sequence[SeriesPoint], history: _History) -> None:
    """Every series in one chart, and a table for each below."""
    names = series_names(chosen)
    rows = {names[point.series.id]: _rows(history.own(point.series, points), history) for point in chosen}
    marks = {(m.slot, m.text): m for own in history.marks.values() for m in own}
    event = draw(
        overlay_chart(rows, timeline=history.timeline, marks=list(marks.values())),
        key="trend.together",
        picks=trend_charts.PICK,
        alt=f"{len(rows)} series over {count_of(len(history.timeline.places), 'commit')}, each in percent of "
        "its own oldest centre. The tables below the chart hold every number.",
    )
    _lead_to_commit(event, history.commits)
    for point, (name, own) in zip(chosen, rows.items(), strict=True):
        _name_older(point.series.case.label, own)
        with st.expander(f"All numbers of {name}"):
            _show_table(own)


def _rows(points: Sequence[SeriesPoint], history: _History) -> list[TrendRow]:
    return trend_rows(
        points,
        timeline=history.timeline,
        commits=history.commits,
        line=history.line,
        verdicts=history.verdicts,
    )


def _is_shown(header: RunHeader, line: frozenset[str]) -> bool:
    return not header.dirty and (header.commit_sha is None or header.commit_sha in line)


def _show_one(known: SeriesPoint, points: Sequence[SeriesPoint], history: _History, view: _View) -> None:
    rows = _rows(points, history)
    marks = history.marks[known.series.id]
    label = known.series.case.label
    if not rows:
        st.subheader(label)
        st.info("Not measured on the commits shown: show more commits, or all runs.")
        return
    axis = trend_charts.value_axis(
        rows,
        reference_ms=reference_of(rows) if view.relative else None,
        logarithmic=view.logarithmic,
    )
    chart = trend_charts.trend_chart(
        rows,
        series=known.series,
        gpu_name=gpu_label(known.header.gpu_name, known.header.gpu_uuid),
        timeline=history.timeline,
        axis=axis,
        behind=landmark_layers(marks, history.timeline),
        with_windows=view.with_windows,
    )
    event = draw(
        chart,
        key=f"trend.{known.series.id}",
        picks=trend_charts.PICK,
        alt=trend_charts.describe_trend(rows, series=known.series),
    )
    _lead_to_commit(event, history.commits)
    _name_older(label, rows)
    with st.expander(f"All numbers of {label}"):
        _show_table(rows)
        if marks:
            _show_marks(marks, history.timeline)


def _name_older(label: str, rows: Sequence[TrendRow]) -> None:
    """Say what the benchmark was called where it had another name."""
    older = sorted({row.point.series.case.label for row in rows} - {label})
    if older:
        st.caption(f"Points of {literal(label)} from before it was renamed: {literal(', '.join(older))}.")


def _lead_to_commit(event: object, commits: Mapping[str, Commit]) -> None:
    sha, run_id = trend_charts.picked(event)
    if run_id is None:
        return
    commit = commits.get(sha or "")
    st.page_link(
        "views/commit.py",
        label=f"Open {shown.short(sha)}" + (f": {commit.subject}" if commit else ""),
        query_params={name: value for name, value in (("sha", sha), ("run", run_id)) if value},
    )


def _show_marks(marks: Sequence[Mark], timeline: Timeline) -> None:
    """The landmarks of a chart in words, newest first."""
    newest = sorted(marks, key=lambda mark: mark.slot, reverse=True)
    cells = [[code(timeline.labels[mark.slot]), plain(mark.text)] for mark in newest[:_MARKS_LISTED]]
    st.html(
        table("Marks on the chart, newest commit first", [Column("Commit"), Column("What happened")], cells)
    )
    if len(newest) > _MARKS_LISTED:
        st.caption(f"The newest {_MARKS_LISTED} of {len(newest):,} marks are listed.")


def _show_table(rows: Sequence[TrendRow]) -> None:
    """Newest first, as a list of news is read; a browser draws long tables slowly."""
    columns = [
        Column("Commit"), Column("Authored", wide_only=True), Column("Median", numeric=True),
        Column("Interval 95 %", numeric=True), Column("Tier"), Column("Verdict"), Column("Effect"),
        Column("Windows", numeric=True, wide_only=True), Column("Samples", numeric=True, wide_only=True),
    ]  # fmt: skip
    everything = len(rows) <= _ROWS_AT_FIRST or url_state.in_url("all") == ["1"]
    newest = rows[::-1] if everything else rows[: -_ROWS_AT_FIRST - 1 : -1]
    cells = [trend_cells(row) for row in newest]
    st.html(table("The numbers of the chart, newest commit first", columns, cells))
    if not everything:
        words = f"The newest {_ROWS_AT_FIRST} of {count_of(len(rows), 'point')}: show all"
        st.html(link(words, url_state.with_parameter("all", "1")))


def _notes(timeline: Timeline, *, n_hidden: int, view: _View) -> None:
    notes = [
        "Click a point for its commit. Shift and wheel zoom, drag moves, a double click resets.",
        "A ring marks a flagged change, a triangle a confirmed one; a hollow point lies off the main line.",
    ]
    if timeline.n_older:
        notes.append(
            f"The newest {count_of(len(timeline.places), 'commit')} are shown (at most {view.n_commits:,} "
            f"with this many series); {timeline.n_older:,} older ones are not."
        )
    if n_hidden:
        notes.append(f"{count_of(n_hidden, 'run')} off the main line or with uncommitted changes left out.")
    if timeline.n_without_order:
        notes.append(
            f"{count_of(timeline.n_without_order, 'commit')} at the right end without a known place in the "
            "history, in the order of their runs."
        )
    st.caption("  \n".join(notes))


def _offer_movers(points: Sequence[SeriesPoint], names: Mapping[str, str]) -> None:
    """A way in for somebody who comes without a series in mind."""
    st.info("Choose a series above, or begin with what moved lately:")
    run_ids = sorted({point.header.run_id for point in points})
    rows = latest_rows(points, queries.verdicts(run_ids), frozenset())
    for series_id in list(dict.fromkeys(row.point.series.id for row in rows if row.point))[:_MOVERS]:
        st.page_link("views/trends.py", label=names[series_id], query_params={"series": series_id})


if __name__ == "__main__":
    show()
