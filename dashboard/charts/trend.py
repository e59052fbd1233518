"""The trend of one series: interval band and centre per commit, tiers, flags, hover, click."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.formatting import (
    NOTHING,
    format_amount,
    format_effect,
    format_interval,
    format_moment,
    gpu_label,
)
from dashboard.palette import (
    CANDIDATE_COLOR,
    FASTER_COLOR,
    NEUTRAL_COLOR,
    SLOWER_COLOR,
    STANDING_WORDS,
    TIER_COLORS,
    TIER_SHAPES,
)
from store import shown
from store.records import Quantity, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.timeline import Timeline
    from dashboard.trend import TrendRow
    from store.records import SeriesKey

# The name under which a click is reported, and what it carries.
PICK = "pick"
PICK_FIELDS = ("sha", "run")
# Noise alone must not fill the height of the chart and look like news.
_HEIGHT_MIN_RELATIVE = 0.03
_CHART_HEIGHT = 380
_QUANTITY_WORDS = {
    Quantity.DEVICE_BUSY: "device busy time",
    Quantity.DEVICE_BUSY_AND_COPIES: "device busy time with copies",
    Quantity.ELAPSED: "elapsed time",
    Quantity.RATIO: "time of the first over time of the other",
}


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """How milliseconds become heights: a division, then perhaps a percentage.

    Attributes:
        title: with its unit.
        divisor_ms: the length of 1 on the axis, or the reference of a relative axis.
        relative: percent of change since the reference.
        logarithmic: a relative axis is always linear, since it holds negative numbers.
    """

    title: str
    divisor_ms: float
    relative: bool = False
    logarithmic: bool = False

    def value(self, milliseconds: float | None) -> float | None:
        """The height of a duration on this axis."""
        if milliseconds is None:
            return None
        ratio = milliseconds / self.divisor_ms
        return (ratio - 1) * 100 if self.relative else ratio


def value_axis(
    rows: Sequence[TrendRow], *, reference_ms: float | None = None, logarithmic: bool = False
) -> ValueAxis:
    """Choose unit and kind of the value axis; a reference makes it relative."""
    if reference_ms is not None:
        return ValueAxis("change since the oldest (%)", reference_ms, relative=True)
    centers = [row.point.interval.center for row in rows if row.point.interval.center]
    quantity = rows[0].point.series.quantity if rows else Quantity.ELAPSED
    length_ms, unit = shown.unit_of(statistics.median(centers), quantity) if centers else (1.0, "ms")
    words = _QUANTITY_WORDS[quantity] if rows else "time"
    return ValueAxis(f"{words} ({unit})", length_ms, logarithmic=logarithmic)


def trend_chart(
    rows: Sequence[TrendRow],
    *,
    series: SeriesKey,
    gpu_name: str,
    timeline: Timeline,
    axis: ValueAxis,
    behind: Sequence[alt.LayerChart | alt.Chart] = (),
    with_windows: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    """Draw one series over its commits.

    A click on a point is reported under ``PICK`` with the fields ``PICK_FIELDS``.

    Args:
        rows: the points.
        series: what is drawn.
        gpu_name: for the line below the title.
        timeline: the commit axis.
        axis: how durations become heights.
        behind: layers behind the points, such as ``overlay.landmark_layers``.
        with_windows: also the median of each window, as a small tick.
    """
    values = [_values(row, axis) for row in rows if row.point.interval.center is not None]
    x = x_axis_of(timeline)
    y_scale = _y_scale(values, axis)
    pick = alt.selection_point(name=PICK, fields=list(PICK_FIELDS), on="click", empty=False)
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    data = alt.InlineData(values=values)
    layers = [
        *_line_layers(data, x, y_scale, axis),
        *behind,
        *([_windows(rows, x, axis)] if with_windows else []),
        _rules(data, x),
        *_mark_layers(data, x),
        _points(data, x).add_params(pick, zoom),
    ]
    title = alt.TitleParams(
        series.case.label,
        subtitle=f"{gpu_name} · {series.timer} · {series.cache_state} cache · {series.clock_regime} clocks",
        subtitleColor=NEUTRAL_COLOR,
        subtitlePadding=4,
        anchor="start",
        offset=8,
    )
    return alt.layer(*layers).properties(height=_CHART_HEIGHT, width="container", title=title)


def describe_trend(rows: Sequence[TrendRow], *, series: SeriesKey) -> str:
    """One sentence that says what the chart shows, for people who cannot see it."""
    centers = [row.point.interval.center for row in rows if row.point.interval.center is not None]
    if not centers:
        return f"{series.case.label}: no measurement gave a number."
    marked = sum(row.is_marked for row in rows)
    oldest, newest, least, most = (
        format_amount(center, series.quantity)
        for center in (centers[0], centers[-1], min(centers), max(centers))
    )
    return (
        f"Trend of {series.case.label} over {len({row.slot for row in rows})} commits: from "
        f"{oldest} at the oldest to {newest} at the newest, between {least} and {most}; "
        f"{marked} flagged or confirmed. The table below the chart holds every number."
    )


def picked(event: Any) -> tuple[str | None, str | None]:
    """The commit and the run of the point that was clicked, from what the chart reported.

    Streamlit hands over plain dictionaries whose content comes from the browser, so that
    anything but the expected shape reads as no click.
    """
    selection = event.get("selection") if isinstance(event, Mapping) else None
    chosen = selection.get(PICK) if isinstance(selection, Mapping) else None
    first = chosen[0] if isinstance(chosen, list) and chosen else None
    if not isinstance(first, Mapping):
        return None, None
    sha, run = (first.get(name) for name in PICK_FIELDS)
    return (sha if isinstance(sha, str) and sha else None), (run if isinstance(run, str) and run else None)


def _values(row: TrendRow, axis: ValueAxis) -> Mapping[str, Any]:
    """One datum: heights for the marks, ready text for the tooltip."""
    point, header, verdict = row.point, row.point.header, row.verdict
    center = axis.value(point.interval.center)
    low, high = axis.value(point.interval.low), axis.value(point.interval.high)
    standing = Standing.NONE if verdict is None else verdict.standing
    effect = None if verdict is None else verdict.effect
    return {
        "slot": row.slot,
        "segment": row.segment,
        "leads": row.leads,
        "bounded": low is not None,
        "on_line": row.on_line,
        "center": center,
        "low": center if low is None else low,
        "high": center if high is None else high,
        "tier": str(point.tier),
        "standing": str(standing) if row.is_marked else "",
        "slower": effect is None or effect > 0,
        "mark_text": f"{STANDING_WORDS[standing]} {format_effect(effect)}" if row.begins_mark else "",
        "sha": header.commit_sha or "",
        "run": header.run_id,
        "commit": shown.short(header.commit_sha) + (" + uncommitted changes" if header.dirty else ""),
        "subject": row.commit.subject if row.commit else NOTHING,
        "authored": format_moment(row.commit.authored_at) if row.commit else NOTHING,
        "median": format_amount(point.interval.center, point.series.quantity),
        "interval": format_interval(point.interval, point.series.quantity),
        "verdict": _verdict_text(row),
        "evidence": f"{point.tier}: {point.tier_evidence[0]}" if point.tier_evidence else str(point.tier),
        "windows": f"{point.interval.windows} windows, {point.n_samples} samples",
        "gpu": gpu_label(header.gpu_name, header.gpu_uuid),
    }


def _verdict_text(row: TrendRow) -> str:
    if row.verdict is None:
        return "not judged"
    word = STANDING_WORDS[row.verdict.standing]
    effect = "" if row.verdict.effect is None else f" {format_effect(row.verdict.effect)}"
    return f"{row.verdict.outcome}{effect}" + (f", {word}" if word else "")


def x_axis_of(timeline: Timeline) -> alt.X:
    """The commit axis of a timeline."""
    return alt.X("slot:Q", scale=_x_scale(timeline), axis=_x_axis(timeline))


def _x_scale(timeline: Timeline) -> alt.Scale:
    return alt.Scale(domain=[-0.5, max(len(timeline.places), 1) - 0.5], nice=False, zero=False)


def _x_axis(timeline: Timeline) -> alt.Axis:
    """Commit ids below whole places; between two places stands nothing."""
    return alt.Axis(
        title="commits in first-parent order, newest at the right",
        labelExpr=f"{json.dumps(list(timeline.labels))}[datum.value] || ''",
        tickMinStep=1,
        tickCount=10,
        grid=False,
        labelOverlap="greedy",
        labelFlush=False,
        labelFont="monospace",
    )


def _y_scale(values: Sequence[Mapping[str, Any]], axis: ValueAxis) -> alt.Scale:
    """Room for every interval, and never less than a few percent of the value."""
    if not values:
        return alt.Scale()
    low, high = min(v["low"] for v in values), max(v["high"] for v in values)
    middle = (low + high) / 2
    least = _HEIGHT_MIN_RELATIVE * (100 if axis.relative else middle)
    half = max(high - low, least) / 2 * 1.4
    if axis.logarithmic:
        return alt.Scale(type="log", domain=[low / 1.03, high * 1.03], nice=False)
    return alt.Scale(domain=[middle - half, middle + half], nice=False, zero=False)


def _line_layers(data: alt.InlineData, x: alt.X, y_scale: alt.Scale, axis: ValueAxis) -> list[alt.Chart]:
    """The band of the intervals and the line of the centres, through one run per commit."""
    leading = alt.Chart(data).transform_filter("datum.leads && datum.bounded")
    y_axis = alt.Axis(title=axis.title, format="+.3~r" if axis.relative else ".4~r", tickCount=6)
    band = leading.mark_area(color=CANDIDATE_COLOR, opacity=0.16, aria=False).encode(
        x=x, y=alt.Y("low:Q", scale=y_scale, axis=y_axis), y2="high:Q", detail="segment:N"
    )
    line = leading.mark_line(color=CANDIDATE_COLOR, opacity=0.55, strokeWidth=1.4, aria=False).encode(
        x=x, y="center:Q", detail="segment:N"
    )
    return [band, line]


def _rules(data: alt.InlineData, x: alt.X) -> alt.Chart:
    """The interval of each point, in the colour of its tier: a lone point has no band."""
    rules: alt.Chart = (
        alt.Chart(data)
        .transform_filter("datum.bounded")
        .mark_rule(strokeWidth=1.5, opacity=0.7, aria=False)
        .encode(x=x, y="low:Q", y2="high:Q", color=_tier_color())
    )
    return rules


def _windows(rows: Sequence[TrendRow], x: alt.X, axis: ValueAxis) -> alt.Chart:
    """The median of each window that counts."""
    values = [
        {
            "slot": row.slot,
            "median": axis.value(median),
            "text": format_amount(median, row.point.series.quantity),
        }
        for row in rows
        for median in row.point.window_medians_ms
    ]
    ticks: alt.Chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_tick(size=9, thickness=1.2, opacity=0.55, color=NEUTRAL_COLOR, orient="horizontal")
        .encode(x=x, y="median:Q", tooltip=alt.Tooltip("text:N", title="median of a window"))
    )
    return ticks


def _mark_layers(data: alt.InlineData, x: alt.X) -> list[alt.Chart]:
    """A ring round a flagged point, a larger triangle round a confirmed one, and the word."""
    color = alt.condition("datum.slower", alt.value(SLOWER_COLOR), alt.value(FASTER_COLOR))
    base = alt.Chart(data).encode(x=x, y="center:Q", color=color)
    flagged = base.transform_filter(f"datum.standing == '{Standing.FLAGGED}'")
    confirmed = base.transform_filter(f"datum.standing == '{Standing.CONFIRMED}'")
    slower = confirmed.transform_filter("datum.slower")
    faster = confirmed.transform_filter("!datum.slower")
    text = base.transform_filter("datum.mark_text != ''").mark_text(
        dy=-24, fontSize=12, fontWeight=600, clip=False, aria=False
    )
    return [
        flagged.mark_point(shape="circle", size=300, filled=False, aria=False, strokeWidth=2.2, opacity=1),
        slower.mark_point(
            shape="triangle-up", size=620, filled=False, aria=False, strokeWidth=2.2, opacity=1
        ),
        faster.mark_point(
            shape="triangle-down", size=620, filled=False, aria=False, strokeWidth=2.2, opacity=1
        ),
        text.encode(text="mark_text:N"),
    ]


def _points(data: alt.InlineData, x: alt.X) -> alt.Chart:
    """The centres: shape and colour say the tier, hollow says off the main line."""
    points: alt.Chart = (
        alt.Chart(data)
        .mark_point(filled=True, size=70, strokeWidth=1.5, opacity=1, cursor="pointer")
        .encode(
            x=x,
            y="center:Q",
            color=_tier_color(),
            shape=alt.Shape(
                "tier:N",
                scale=alt.Scale(domain=list(TIER_SHAPES), range=list(TIER_SHAPES.values())),
                legend=_tier_legend(),
            ),
            stroke=alt.Stroke("tier:N", scale=_tier_scale(), legend=None),
            fillOpacity=alt.condition("datum.on_line", alt.value(1), alt.value(0)),
            tooltip=[
                alt.Tooltip(f"{name}:N", title=title)
                for name, title in (
                    ("commit", "commit"), ("subject", "subject"), ("authored", "authored"),
                    ("median", "median"), ("interval", "interval 95 %"), ("verdict", "verdict"),
                    ("evidence", "tier"), ("windows", "data"), ("gpu", "GPU"),
                )
            ],
        )
    )  # fmt: skip
    return points


def _tier_color() -> alt.Color:
    return alt.Color(
        "tier:N",
        scale=_tier_scale(),
        legend=_tier_legend(),
    )


def _tier_scale() -> alt.Scale:
    return alt.Scale(domain=list(TIER_COLORS), range=list(TIER_COLORS.values()))


def _tier_legend() -> alt.Legend:
    """Above the chart at the right, where no point can hide behind it."""
    return alt.Legend(
        title=None,
        labelExpr="'tier ' + datum.label",
        orient="top",
        direction="horizontal",
        symbolOpacity=1,
        symbolSize=80,
    )
