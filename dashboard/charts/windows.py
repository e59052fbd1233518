"""The samples of one measurement, window by window, with the interval they were folded into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import legend
from dashboard.formatting import format_amount
from dashboard.palette import CANDIDATE_COLOR, DOUBT_COLOR
from store import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Measurement, Quantity, Window

SAMPLES_MAX = 2_500
_KEPT, _LEFT_OUT = "counts", "left out"
# A window takes this share of its place, so that neighbours do not touch.
WINDOW_WIDTH = 0.8


def samples_step(measurement: Measurement) -> int:
    """Every how many samples one is drawn, so that the chart stays light."""
    total = sum(len(window.samples_ms) for window in measurement.windows)
    return max(1, -(-total // SAMPLES_MAX))


def windows_chart(measurement: Measurement) -> alt.LayerChart | alt.FacetChart:
    """Draw the samples in the order they were taken, with median of each window and the interval."""
    medians = [window.median_ms for window in measurement.windows if window.median_ms is not None]
    length_ms, unit = shown.unit_of(
        measurement.interval.center or (medians[0] if medians else 1.0), measurement.quantity
    )
    step = samples_step(measurement)
    samples = [
        datum
        for window in measurement.windows
        for datum in _sample_values(window, measurement.quantity, length_ms, step)
    ]
    x = pass_axis(measurement)
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(title=f"sample ({unit})", format=".4~r", tickCount=6),
    )
    kinds = [_KEPT, _LEFT_OUT]
    shown_by = legend()
    dots = (
        alt.Chart(alt.InlineData(values=samples))
        .mark_point(size=22, opacity=0.7)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "kind:N", scale=alt.Scale(domain=kinds, range=[CANDIDATE_COLOR, DOUBT_COLOR]), legend=shown_by
            ),
            shape=alt.Shape(
                "kind:N", scale=alt.Scale(domain=kinds, range=["circle", "cross"]), legend=shown_by
            ),
            tooltip=[
                alt.Tooltip(f"{name}:N", title=title)
                for name, title in (
                    ("text", "sample"), ("number", "sample of window"), ("pass", "pass"),
                    ("clock", "SM clock"), ("why", "in the fold"),
                )
            ],
        )
    )  # fmt: skip
    return alt.layer(
        *_interval_layers(measurement, length_ms), dots, _median_rules(measurement, length_ms)
    ).properties(height=280, width="container")


def pass_axis(measurement: Measurement) -> alt.X:
    """The axis on which every pass has a place of the same width."""
    passes = [window.pass_index for window in measurement.windows]
    return alt.X(
        "place:Q",
        axis=alt.Axis(title="pass (a fresh process each)", grid=False, tickMinStep=1, format="d"),
        scale=alt.Scale(
            domain=[min(passes, default=0) - 0.5, max(passes, default=0) + 0.5], nice=False, zero=False
        ),
    )


def _sample_values(
    window: Window, quantity: Quantity, length_ms: float, step: int
) -> Sequence[Mapping[str, Any]]:
    n = len(window.samples_ms)
    values = []
    for index in range(0, n, step):
        why = window.invalid or window.exclusions[index]
        clock = window.sm_clock_mhz[index] if window.sm_clock_mhz else None
        values.append(
            {
                "place": window.pass_index + ((index + 0.5) / n - 0.5) * WINDOW_WIDTH,
                "value": window.samples_ms[index] / length_ms,
                "kind": _KEPT if why is None else _LEFT_OUT,
                "text": format_amount(window.samples_ms[index], quantity),
                "number": f"{index + 1} of {n}",
                "pass": window.pass_index,
                "clock": "not read" if clock is None else f"{clock} MHz",
                "why": "yes" if why is None else f"no: {why}",
            }
        )
    return values


def _interval_layers(measurement: Measurement, length_ms: float) -> list[alt.Chart]:
    """The folded interval as a band across all windows; nothing where the fold was refused."""
    bounds = measurement.interval.bounds
    if bounds is None:
        return []
    low, center, high = (edge / length_ms for edge in bounds)
    data = alt.InlineData(values=[{"low": low, "center": center, "high": high}])
    band = alt.Chart(data).mark_rect(color=CANDIDATE_COLOR, opacity=0.16).encode(y="low:Q", y2="high:Q")
    line = (
        alt.Chart(data).mark_rule(color=CANDIDATE_COLOR, opacity=0.7, strokeDash=[4, 3]).encode(y="center:Q")
    )
    return [band, line]


def _median_rules(measurement: Measurement, length_ms: float) -> alt.Chart:
    values = [
        {
            "start": window.pass_index - WINDOW_WIDTH / 2,
            "end": window.pass_index + WINDOW_WIDTH / 2,
            "value": window.median_ms / length_ms,
            "text": format_amount(window.median_ms, measurement.quantity),
        }
        for window in measurement.windows
        if window.median_ms is not None
    ]
    rules: alt.Chart = (
        alt.Chart(alt.InlineData(values=values))
        .mark_rule(strokeWidth=2.5, color=CANDIDATE_COLOR)
        .encode(
            x="start:Q", x2="end:Q", y="value:Q", tooltip=alt.Tooltip("text:N", title="median of the window")
        )
    )
    return rules
