"""Marks across a trend chart, and several series in one chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import listed_height, listed_legend
from dashboard.charts.trend import PICK, PICK_FIELDS, x_axis_of
from dashboard.formatting import format_amount, format_effect
from dashboard.landmarks import Landmark
from dashboard.palette import CANDIDATE_COLOR, DOUBT_COLOR, FASTER_COLOR, NEUTRAL_COLOR, SLOWER_COLOR
from dashboard.trend import reference_of
from store import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dashboard.landmarks import Mark
    from dashboard.timeline import Timeline
    from dashboard.trend import TrendRow

SERIES_COLORS = (
    CANDIDATE_COLOR, DOUBT_COLOR, FASTER_COLOR, "#9b6fc4", SLOWER_COLOR, NEUTRAL_COLOR, "#4c9f38", "#b0578d",
)  # fmt: skip
SERIES_SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "stroke",
)  # fmt: skip
_MARK_LOOKS = {
    Landmark.RELEASE: (NEUTRAL_COLOR, [1, 0]),
    Landmark.STEP: (SLOWER_COLOR, [6, 3]),
    Landmark.ACCEPTED: (FASTER_COLOR, [2, 2]),
    Landmark.ENVIRONMENT: (DOUBT_COLOR, [8, 3, 2, 3]),
}
# Labels of neighbouring marks stand below one another.
_LABEL_ROWS, _LABEL_HEIGHT_PX = 4, 13
_CHART_HEIGHT_PX = 420


def landmark_layers(marks: Sequence[Mark], timeline: Timeline) -> list[alt.LayerChart | alt.Chart]:
    """A rule for each landmark with its words at the top; kind by colour, dash and words."""
    layers: list[alt.LayerChart | alt.Chart] = []
    x = x_axis_of(timeline)
    for kind in Landmark:
        values: list[dict[str, Any]] = [
            {"slot": mark.slot, "short": mark.short, "text": mark.text, "row": place % _LABEL_ROWS}
            for place, mark in enumerate(marks)
            if mark.kind is kind
        ]
        if not values:
            continue
        tooltip = [alt.Tooltip("text:N", title=str(kind))]
        base = alt.Chart(alt.InlineData(values=values)).encode(x=x, tooltip=tooltip)
        color, dash = _MARK_LOOKS[kind]
        layers.append(base.mark_rule(color=color, strokeDash=dash, opacity=0.8, strokeWidth=1.3))
        layers += [_words(base, row, color) for row in sorted({value["row"] for value in values})]
    return layers


def _words(base: alt.Chart, row: int, color: str) -> alt.Chart:
    """The words of the landmarks in one row at the top of the chart."""
    words: alt.Chart = (
        base.transform_filter(f"datum.row === {row}")
        .mark_text(
            align="left", dx=4, dy=2 + row * _LABEL_HEIGHT_PX, baseline="top", fontSize=11, color=color,
            limit=150,
        )
        .encode(text="short:N", y=alt.value(0))
    )  # fmt: skip
    return words


def overlay_chart(
    series: Mapping[str, Sequence[TrendRow]], *, timeline: Timeline, marks: Sequence[Mark] = ()
) -> alt.LayerChart | alt.FacetChart:
    """Several series in one chart, each in percent of its own oldest centre.

    A click on a point is reported as ``trend_chart`` does.
    """
    names = list(series)
    values = [value for name, rows in series.items() for value in _values(name, rows)]
    legend = listed_legend()
    pick = alt.selection_point(name=PICK, fields=list(PICK_FIELDS), on="click", empty=False)
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=x_axis_of(timeline),
        y=alt.Y(
            "change:Q",
            axis=alt.Axis(title="change since its oldest (%)", format="+.3~r", tickCount=6),
            scale=alt.Scale(zero=False, padding=10),
        ),
        color=alt.Color(
            "series:N", scale=alt.Scale(domain=names, range=list(SERIES_COLORS[: len(names)])), legend=legend
        ),
    )
    bands = (
        base.transform_filter("datum.leads && isValid(datum.low)")
        .mark_area(opacity=0.12)
        .encode(y="low:Q", y2="high:Q", detail="segment:N")
    )
    lines = (
        base.transform_filter("datum.leads")
        .mark_line(opacity=0.6, strokeWidth=1.4)
        .encode(detail="segment:N")
    )
    points = base.mark_point(filled=True, size=55, opacity=1, cursor="pointer").encode(
        shape=alt.Shape(
            "series:N", scale=alt.Scale(domain=names, range=list(SERIES_SHAPES[: len(names)])), legend=legend
        ),
        tooltip=[
            alt.Tooltip(f"{name}:N", title=title)
            for name, title in (
                ("series", "series"), ("commit", "commit"), ("subject", "subject"), ("median", "median"),
                ("text", "since its oldest"), ("tier", "tier"),
            )
        ],
    )  # fmt: skip
    layers = [bands, lines, *landmark_layers(marks, timeline), points.add_params(pick)]
    return alt.layer(*layers).properties(
        height=_CHART_HEIGHT_PX + listed_height(len(names)), width="container"
    )


def _values(name: str, rows: Sequence[TrendRow]) -> list[dict[str, Any]]:
    reference = reference_of(rows)
    values = []
    for row in rows:
        interval, header = row.point.interval, row.point.header
        if reference is None or interval.center is None:
            continue
        change = interval.center / reference - 1
        values.append(
            {
                "series": name, "slot": row.slot, "segment": row.segment, "leads": row.leads,
                "change": change * 100, "low": _percent(interval.low, reference),
                "high": _percent(interval.high, reference), "sha": header.commit_sha or "",
                "run": header.run_id, "commit": shown.short(header.commit_sha),
                "subject": row.commit.subject if row.commit else "", "text": format_effect(change),
                "median": format_amount(interval.center, row.point.series.quantity),
                "tier": str(row.point.tier),
            }
        )  # fmt: skip
    return values


def _percent(value: float | None, reference: float) -> float | None:
    return None if value is None else (value / reference - 1) * 100
