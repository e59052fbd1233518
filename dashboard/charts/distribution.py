"""How the effects of a comparison are spread, and the largest of them with their intervals."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import legend
from dashboard.differences import Direction
from dashboard.formatting import format_effect, format_effect_interval
from dashboard.palette import DIRECTION_LOOKS, NEUTRAL_COLOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alerts.effects import Effect
from dashboard.differences import Difference

ROWS_MAX = 30
_BINS = 40
_WIDTHS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100)
# Heights hold title, legend and axis as well.
_HEIGHT_PX, _ROW_HEIGHT_PX, _AROUND_PX, _LABEL_WIDTH_PX = 300, 22, 150, 300
_SHAPES = ("triangle-right", "triangle-left", "circle", "cross")


def both_charts(differences: Sequence[Difference], mean: Effect | None, *, width_px: int) -> alt.VConcatChart:
    """Both charts below one another, of a fixed width, as a picture has it."""
    charts = (distribution_chart(differences, mean), largest_chart(differences))
    both: alt.VConcatChart = alt.vconcat(
        *(chart.properties(width=width_px) for chart in charts), spacing=24
    ).resolve_scale(color="independent", shape="independent")
    return both


def largest(differences: Sequence[Difference]) -> list[Difference]:
    """The differences that the lower chart shows, largest first."""
    sized = [item for item in differences if item.effect is not None]
    return sorted(sized, key=lambda item: -abs(item.effect or 0.0))[:ROWS_MAX]


def distribution_chart(
    differences: Sequence[Difference], mean: Effect | None
) -> alt.LayerChart | alt.FacetChart:
    """How many changes lie in which range, with their geometric mean."""
    effects = [(item.effect * 100, item.direction) for item in differences if item.effect is not None]
    width = _bin_width([effect for effect, _ in effects])
    counts = Counter((math.floor(effect / width + 0.5), direction) for effect, direction in effects)
    values: list[dict[str, Any]] = [
        {
            "low": (place - 0.5) * width,
            "high": (place + 0.5) * width,
            "direction": str(direction),
            "count": count,
            "text": f"{(place - 0.5) * width:+.3g} to {(place + 0.5) * width:+.3g} %",
        }
        for (place, direction), count in sorted(counts.items())
    ]
    x = alt.X(
        "low:Q",
        axis=alt.Axis(title="change (%), right is slower", format="+.3~r", tickCount=9),
        scale=alt.Scale(nice=False, padding=12),
    )
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(opacity=0.85)
        .encode(
            x=x,
            x2="high:Q",
            y=alt.Y("count:Q", axis=alt.Axis(title="benchmarks", tickMinStep=1, format="d")),
            y2=alt.Y2Datum(0),
            color=_color(),
            tooltip=[
                alt.Tooltip("text:N", title="change"),
                alt.Tooltip("direction:N"),
                alt.Tooltip("count:Q"),
            ],
        )
    )
    layers: list[alt.Chart] = [bars, _zero()]
    if mean is not None:
        layers += _mean_layers(mean)
    return alt.layer(*layers).properties(
        height=_HEIGHT_PX,
        width="container",
        title=alt.TitleParams("Distribution of the changes", anchor="start", fontSize=14),
    )


def _mean_layers(mean: Effect) -> list[alt.Chart]:
    """The mean as a dashed rule in its interval."""
    data = alt.InlineData(
        values=[
            {
                "low": mean.low * 100, "mean": mean.relative * 100, "high": mean.high * 100,
                "text": f"{format_effect(mean.relative)} ({format_effect_interval(mean.low, mean.high)})",
            }
        ]
    )  # fmt: skip
    tooltip = [alt.Tooltip("text:N", title="geometric mean")]
    band = (
        alt.Chart(data)
        .mark_rect(opacity=0.18, color=NEUTRAL_COLOR)
        .encode(x="low:Q", x2="high:Q", tooltip=tooltip)
    )
    rule = (
        alt.Chart(data)
        .mark_rule(strokeDash=[5, 3], strokeWidth=2, color=NEUTRAL_COLOR)
        .encode(x="mean:Q", tooltip=tooltip)
    )
    return [band, rule]


def largest_chart(differences: Sequence[Difference]) -> alt.LayerChart | alt.FacetChart:
    """The largest changes, each with its interval."""
    shown = largest(differences)
    values = _largest_values(shown)
    base = alt.Chart(alt.InlineData(values=values)).encode(
        y=alt.Y(
            "label:N",
            sort=[str(value["label"]) for value in values],
            axis=alt.Axis(
                title=None, labelLimit=_LABEL_WIDTH_PX, labelOverlap=False, labelFlush=False, grid=False,
                ticks=False, domain=False,
            ),
        ),
        color=_color(),
        tooltip=[
            alt.Tooltip("label:N", title="benchmark"), alt.Tooltip("direction:N"),
            alt.Tooltip("text:N", title="change"), alt.Tooltip("bounds:N", title="95 %"),
        ],
    )  # fmt: skip
    x_axis = alt.Axis(title="change with its 95 % interval (%), right is slower", format="+.3~r", tickCount=9)
    rules = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=3, opacity=0.7)
        .encode(x=alt.X("low:Q", axis=x_axis, scale=alt.Scale(padding=16)), x2="high:Q")
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x="effect:Q",
        shape=alt.Shape(
            "direction:N",
            scale=alt.Scale(domain=[str(d) for d in Direction], range=list(_SHAPES)),
            legend=None,
        ),
    )
    return alt.layer(_zero(), rules, points).properties(
        height=max(3, len(values)) * _ROW_HEIGHT_PX + _AROUND_PX,
        width="container",
        title=alt.TitleParams(
            "All changes" if len(shown) == len(differences) else f"The {len(shown)} largest changes",
            anchor="start",
            fontSize=14,
        ),
    )


def _largest_values(shown: Sequence[Difference]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "direction": str(item.direction),
            "effect": (item.effect or 0.0) * 100,
            "low": None if item.low is None else item.low * 100,
            "high": None if item.high is None else item.high * 100,
            "text": format_effect(item.effect),
            "bounds": format_effect_interval(item.low, item.high),
        }
        for label, item in zip(_labels(shown), shown, strict=True)
    ]


def _labels(differences: Sequence[Difference]) -> list[str]:
    """The cases; one that stands there twice, on two GPUs say, is told apart by its conditions."""
    uses = Counter(item.candidate.series.case for item in differences)
    return [
        series.case.label
        if uses[series.case] == 1
        else f"{series.case.label} · {series.gpu_uuid[-4:]} {series.cache_state} {series.environment}"
        for series in (item.candidate.series for item in differences)
    ]


def _zero() -> alt.Chart:
    zero: alt.Chart = (
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(opacity=0.6, color=NEUTRAL_COLOR)
        .encode(x="zero:Q")
    )
    return zero


def _color() -> alt.Color:
    return alt.Color(
        "direction:N",
        scale=alt.Scale(
            domain=[str(direction) for direction in DIRECTION_LOOKS],
            range=[color for color, _ in DIRECTION_LOOKS.values()],
        ),
        legend=legend(),
    )


def _bin_width(effects: Sequence[float]) -> float:
    """A round width that needs at most so many bins, in percent."""
    span = max(effects, default=1) - min(effects, default=0)
    return next((width for width in _WIDTHS if span / width <= _BINS), max(_WIDTHS[-1], span / _BINS))
