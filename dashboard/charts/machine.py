"""A GPU over its runs: one small chart for each reading, and one for the sentinels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import legend, listed_height, listed_legend
from dashboard.formatting import format_effect, format_moment
from dashboard.palette import CANDIDATE_COLOR, DOUBT_COLOR, NEUTRAL_COLOR, SLOWER_COLOR
from store import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.machines import SentinelPoint
    from store.machines import MachineState
    from store.records import RunHeader

_HEIGHT_PX = 210
_Y_AXIS_PX = 44  # the same in each chart, so that one run stands at one place in all of them
_SENTINEL_COLORS = (CANDIDATE_COLOR, DOUBT_COLOR, "#9b6fc4", "#1a9a8a", SLOWER_COLOR)
_SENTINEL_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
# Noise alone must not fill the height and look like news.
_SENTINEL_RANGE_MIN = 1.0
RUNS_MAX = 300


def reading_chart(
    runs: Sequence[tuple[RunHeader, MachineState]], *, low: str | None, middle: str, high: str, title: str
) -> alt.LayerChart | alt.FacetChart:
    """One reading over the runs: the middle as a line, from the least to the highest as a band.

    Args:
        runs: oldest first.
        low: field of the state where the band begins; None for the middle.
        middle: field that the line joins.
        high: field where the band ends.
        title: of the axis, with its unit.
    """
    values = [
        {
            "place": place,
            "low": getattr(state, low or middle),
            "middle": getattr(state, middle),
            "high": getattr(state, high),
            **_words(header),
        }
        for place, (header, state) in enumerate(runs)
        if getattr(state, middle) is not None
    ]
    base = alt.Chart(alt.InlineData(values=values)).encode(x=_run_axis(len(runs)))
    y = alt.Y(
        "low:Q",
        axis=alt.Axis(title=title, tickCount=4, format="d", minExtent=_Y_AXIS_PX),
        scale=alt.Scale(zero=False, padding=6),
    )
    tooltip = [*_tooltip(), *(alt.Tooltip(f"{name}:Q", title=name) for name in ("low", "middle", "high"))]
    band = base.mark_rule(color=CANDIDATE_COLOR, opacity=0.35, strokeWidth=5).encode(
        y=y, y2="high:Q", tooltip=tooltip
    )
    line = base.mark_line(color=CANDIDATE_COLOR, opacity=0.5).encode(y="middle:Q")
    dots = base.mark_point(color=CANDIDATE_COLOR, filled=True, size=36, opacity=1).encode(
        y="middle:Q", tooltip=tooltip
    )
    return alt.layer(band, line, dots).properties(height=_HEIGHT_PX, width="container")


def throttle_chart(runs: Sequence[tuple[RunHeader, MachineState]]) -> alt.Chart:
    """How many windows of each run saw a throttle counter move, by counter."""
    values = [
        {
            "place": place,
            "counter": name.replace("_", " "),
            "windows": count,
            "share": f"{count} of {state.windows_counted} windows",
            **_words(header),
        }
        for place, (header, state) in enumerate(runs)
        for name, count in state.throttled.items()
        if count
    ]
    names = sorted({str(value["counter"]) for value in values})
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(size=max(2, min(14, 700 // max(1, len(runs)))))
        .encode(
            x=_run_axis(len(runs)),
            y=alt.Y(
                "windows:Q",
                axis=alt.Axis(title="windows throttled", tickMinStep=1, format="d", minExtent=_Y_AXIS_PX),
            ),
            color=alt.Color(
                "counter:N",
                scale=alt.Scale(domain=names, range=list(_SENTINEL_COLORS[: len(names)])),
                legend=legend(columns=3),
            ),
            tooltip=[*_tooltip(), alt.Tooltip("counter:N"), alt.Tooltip("share:N", title="moved in")],
        )
        .properties(height=_HEIGHT_PX, width="container")
    )
    return chart


def sentinels_chart(points: Sequence[SentinelPoint], n_runs: int) -> alt.LayerChart | alt.FacetChart:
    """Each sentinel over the runs, in percent of its own median."""
    labels = sorted({point.label for point in points})
    values = [
        {
            "place": point.place,
            "sentinel": point.label,
            "change": point.change * 100,
            "text": format_effect(point.change),
            **_words(point.header),
        }
        for point in points
    ]
    reach = max([_SENTINEL_RANGE_MIN, *(abs(point.change) * 110 for point in points)])
    named = listed_legend()
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=_run_axis(n_runs),
        y=alt.Y(
            "change:Q",
            axis=alt.Axis(
                title="from its median (%), up is slower", format="+.2~f", tickCount=5, minExtent=_Y_AXIS_PX
            ),
            scale=alt.Scale(domain=[-reach, reach], nice=False),
        ),
        color=alt.Color(
            "sentinel:N",
            scale=alt.Scale(domain=labels, range=list(_SENTINEL_COLORS[: len(labels)])),
            legend=named,
        ),
    )
    dots = base.mark_point(filled=True, size=46, opacity=1).encode(
        shape=alt.Shape(
            "sentinel:N",
            scale=alt.Scale(domain=labels, range=list(_SENTINEL_SHAPES[: len(labels)])),
            legend=named,
        ),
        tooltip=[*_tooltip(), alt.Tooltip("sentinel:N"), alt.Tooltip("text:N", title="from its median")],
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(opacity=0.6, color=NEUTRAL_COLOR)
        .encode(y="zero:Q")
    )
    return alt.layer(zero, base.mark_line(opacity=0.45), dots).properties(
        height=_HEIGHT_PX * 1.5 + listed_height(len(labels)), width="container"
    )


def _run_axis(n_runs: int) -> alt.X:
    return alt.X(
        "place:Q",
        axis=alt.Axis(
            title="runs, newest at the right", tickMinStep=1, tickCount=min(n_runs, 10), labels=False,
            ticks=False, grid=False,
        ),
        scale=alt.Scale(domain=[-0.5, max(n_runs, 1) - 0.5], nice=False, zero=False),
    )  # fmt: skip


def _words(header: RunHeader) -> dict[str, Any]:
    return {"moment": format_moment(header.started_at), "commit": shown.short(header.commit_sha)}


def _tooltip() -> list[alt.Tooltip]:
    return [alt.Tooltip("moment:N", title="run"), alt.Tooltip("commit:N")]
