"""One benchmark over the values of a parameter, on one commit."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import listed_height, listed_legend
from dashboard.charts.overlay import SERIES_COLORS, SERIES_SHAPES
from dashboard.formatting import format_amount, format_interval
from store import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.sweeps import Sweep
    from store.records import Quantity, SeriesPoint

LINES_MAX = len(SERIES_COLORS)
_HEIGHT_PX = 340
# Values that span more than this are drawn on a logarithmic axis.
_LOG_RATIO = 8


def sweep_chart(sweep: Sweep) -> alt.LayerChart | alt.FacetChart:
    """Draw time over the parameter, one line for each set of the other parameters.

    The first ``LINES_MAX`` lines are drawn.
    """
    lines = dict(list(sweep.lines.items())[:LINES_MAX])
    points = [(words, value, point) for words, line in lines.items() for value, point in line]
    centers = [point.interval.center for _, _, point in points if point.interval.center]
    scale, unit = shown.unit_of(statistics.median(centers), sweep.quantity)
    values = _values(points, scale, sweep.quantity)
    names = list(lines)
    legend = listed_legend()
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X(
            "value:Q",
            axis=alt.Axis(title=sweep.parameter, format="~s", tickCount=8),
            scale=_scale([value for _, value, _ in points]),
        ),
        color=alt.Color(
            "line:N", scale=alt.Scale(domain=names, range=list(SERIES_COLORS[: len(names)])), legend=legend
        ),
    )
    y = alt.Y("center:Q", axis=alt.Axis(title=f"time ({unit})", format=".4~r"), scale=_scale(centers))
    marks = base.mark_point(filled=True, size=80, opacity=1).encode(
        y=y,
        shape=alt.Shape(
            "line:N", scale=alt.Scale(domain=names, range=list(SERIES_SHAPES[: len(names)])), legend=legend
        ),
        tooltip=[
            alt.Tooltip("label:N", title="case"),
            alt.Tooltip("text:N", title="median"),
            alt.Tooltip("interval:N", title="interval 95 %"),
            alt.Tooltip("tier:N"),
        ],
    )
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False)
    return alt.layer(
        base.mark_line(opacity=0.5, aria=False).encode(y=y), rules.encode(y="low:Q", y2="high:Q"), marks
    ).properties(height=_HEIGHT_PX + listed_height(len(names)), width="container")


def _values(
    points: Sequence[tuple[str, float, SeriesPoint]], scale: float, quantity: Quantity
) -> list[dict[str, Any]]:
    return [
        {
            "value": value,
            "line": words,
            "center": (point.interval.center or 0) / scale,
            "low": None if point.interval.low is None else point.interval.low / scale,
            "high": None if point.interval.high is None else point.interval.high / scale,
            "label": point.series.case.label,
            "text": format_amount(point.interval.center, quantity),
            "interval": format_interval(point.interval, quantity),
            "tier": str(point.tier),
        }
        for words, value, point in points
    ]


def _scale(values: list[float]) -> alt.Scale:
    """Logarithmic where the values span orders of magnitude; numbers below 0 stay linear."""
    if min(values) > 0 and max(values) / min(values) >= _LOG_RATIO:
        return alt.Scale(type="log", nice=False, padding=16)
    return alt.Scale(zero=False, padding=16)
