"""The clock trace of one measurement: SM clock and pause of every iteration, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import legend
from dashboard.charts.windows import SAMPLES_MAX, WINDOW_WIDTH, pass_axis
from dashboard.palette import CANDIDATE_COLOR, DOUBT_COLOR, NEUTRAL_COLOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Measurement, Window

# Bits of NVML's mask that limit nothing: an idle GPU, and a clock that somebody set (nvml.h).
_BENIGN = 0x1 | 0x2
_PANELS = 2
_HEIGHT_PX = 150
# Two clocks of a GPU lie 15 MHz apart: a trace that stands still shall look so.
_CLOCK_MARGIN_MHZ = 30


def clocks_step(measurement: Measurement) -> int:
    """Every how many samples one is drawn, so that both panels together stay light."""
    total = sum(len(window.samples_ms) for window in measurement.windows)
    return max(1, -(-total * _PANELS // SAMPLES_MAX))


def has_clocks(measurement: Measurement) -> bool:
    """Whether any clock was read."""
    return any(clock is not None for window in measurement.windows for clock in window.sm_clock_mhz)


def clocks_chart(measurement: Measurement) -> alt.VConcatChart:
    """Draw the clock after each iteration, and below it the pause before; throttled ones are marked."""
    step = clocks_step(measurement)
    values = [datum for window in measurement.windows for datum in _values(window, step)]
    base = alt.Chart(alt.InlineData(values=values)).encode(x=pass_axis(measurement), tooltip=_tooltip())
    return alt.vconcat(_clock_panel(base, values), _pause_panel(base, values), spacing=8)


def _clock_panel(base: alt.Chart, values: Sequence[Mapping[str, Any]]) -> alt.Chart:
    clocks = [datum["clock"] for datum in values if datum["clock"] is not None]
    domain = [min(clocks, default=0) - _CLOCK_MARGIN_MHZ, max(clocks, default=1) + _CLOCK_MARGIN_MHZ]
    kinds, shown_by = ["free", "limited"], legend()
    panel: alt.Chart = (
        base.transform_filter("datum.clock !== null")
        .mark_point(size=20, opacity=0.8)
        .encode(
            y=alt.Y(
                "clock:Q",
                axis=alt.Axis(title="SM clock (MHz)", tickCount=4, format="d"),
                scale=alt.Scale(domain=domain, nice=False, zero=False),
            ),
            color=alt.Color(
                "limit:N",
                scale=alt.Scale(domain=kinds, range=[CANDIDATE_COLOR, DOUBT_COLOR]),
                legend=shown_by,
            ),
            shape=alt.Shape(
                "limit:N", scale=alt.Scale(domain=kinds, range=["circle", "cross"]), legend=shown_by
            ),
        )
        .properties(height=_HEIGHT_PX, width="container")
    )
    return panel


def _pause_panel(base: alt.Chart, values: Sequence[Mapping[str, Any]]) -> alt.Chart:
    longest = max((datum["pause"] for datum in values if datum["pause"] is not None), default=0)
    panel: alt.Chart = (
        base.transform_filter("datum.pause !== null")
        .mark_tick(thickness=2, size=6, color=NEUTRAL_COLOR)
        .encode(
            y=alt.Y(
                "pause:Q",
                axis=alt.Axis(title="pause (ms)", tickCount=3, format="~g"),
                scale=alt.Scale(domain=[0, longest or 1], zero=True),
            )
        )
        .properties(height=_HEIGHT_PX // 2, width="container")
    )
    return panel


def _values(window: Window, step: int) -> list[dict[str, Any]]:
    n = len(window.samples_ms)
    values = []
    for index in range(0, n, step):
        reasons = window.throttle_reasons[index] if window.throttle_reasons else None
        clock = window.sm_clock_mhz[index] if window.sm_clock_mhz else None
        pause = window.pause_ms[index] if window.pause_ms else None
        values.append(
            {
                "place": window.pass_index + ((index + 0.5) / n - 0.5) * WINDOW_WIDTH,
                "clock": clock,
                "pause": pause,
                "limit": "limited" if (reasons or 0) & ~_BENIGN else "free",
                "text": "not read" if clock is None else f"{clock} MHz",
                "pause_text": "not recorded" if pause is None else f"{pause:.3g} ms",
                "reasons": "not read" if reasons is None else f"{reasons:#x}",
                "number": f"{index + 1} of {n} in pass {window.pass_index}",
            }
        )
    return values


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"{name}:N", title=title)
        for name, title in (
            ("text", "SM clock"), ("pause_text", "pause before"), ("reasons", "limits (NVML mask)"),
            ("number", "sample"),
        )
    ]  # fmt: skip
