"""What moved in one run: candidate and baseline interval of every measurement on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard.charts.legends import legend
from dashboard.formatting import format_effect, format_effect_interval, format_interval
from dashboard.palette import NEUTRAL_COLOR, OUTCOME_COLORS, STANDING_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Verdict

ROWS_MAX = 40
_ROW_HEIGHT = 26
_LABEL_WIDTH_PX = 300
_LEGEND_COLUMNS = 2  # labels leave little width on a narrow window


def effects_chart(verdicts: Sequence[Verdict]) -> alt.LayerChart | alt.FacetChart:
    """Draw each candidate against its baseline, both relative to the baseline's centre.

    Args:
        verdicts: in the order of the rows, each with both intervals (see ``can_be_drawn``).
    """
    data = alt.InlineData(values=[_values(verdict) for verdict in verdicts])
    order = [verdict.series.case.label for verdict in verdicts]
    y = alt.Y(
        "label:N",
        sort=list(dict.fromkeys(order)),
        axis=alt.Axis(title=None, labelLimit=_LABEL_WIDTH_PX, grid=False, ticks=False, domain=False),
    )
    x_axis = alt.Axis(
        title="change against the centre of the baseline (%), right is slower", format="+.3~r", tickCount=8
    )
    color = alt.Color(
        "outcome:N",
        scale=alt.Scale(domain=list(OUTCOME_COLORS), range=list(OUTCOME_COLORS.values())),
        legend=legend(columns=_LEGEND_COLUMNS),
    )
    base = alt.Chart(data).encode(y=y)
    baseline = base.mark_bar(color=NEUTRAL_COLOR, opacity=0.35, height=14).encode(
        x=alt.X("baseline_low:Q", axis=x_axis, scale=alt.Scale(padding=24)),
        x2="baseline_high:Q",
        tooltip=_tooltip(),
    )
    candidate = base.mark_bar(height=5, cornerRadius=2).encode(
        x="candidate_low:Q", x2="candidate_high:Q", color=color, tooltip=_tooltip()
    )
    center = base.mark_point(filled=True, size=90, opacity=1).encode(
        x="candidate_center:Q",
        color=color,
        shape=alt.Shape(
            "outcome:N",
            scale=alt.Scale(
                domain=list(OUTCOME_COLORS), range=["triangle-right", "triangle-left", "circle", "cross"]
            ),
            legend=legend(columns=_LEGEND_COLUMNS),
        ),
        tooltip=_tooltip(),
    )
    zero = (
        alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        .mark_rule(opacity=0.6)
        .encode(x="zero:Q", color=alt.value(NEUTRAL_COLOR))
    )
    return alt.layer(baseline, zero, candidate, center).properties(
        height=alt.Step(_ROW_HEIGHT), width="container"
    )


def can_be_drawn(verdict: Verdict) -> bool:
    """Whether candidate and baseline both have bounds."""
    return verdict.candidate.bounds is not None and (
        verdict.baseline is not None and verdict.baseline.bounds is not None
    )


def _values(verdict: Verdict) -> Mapping[str, Any]:
    if verdict.candidate.bounds is None or verdict.baseline is None or verdict.baseline.bounds is None:
        raise ValueError(f"{verdict.series.case.label} lacks an interval: leave it out of the chart")
    reference = verdict.baseline.bounds[1]
    candidate = [(edge / reference - 1) * 100 for edge in verdict.candidate.bounds]
    baseline = [(edge / reference - 1) * 100 for edge in verdict.baseline.bounds]
    word = STANDING_WORDS[verdict.standing]
    return {
        "label": verdict.series.case.label,
        "outcome": str(verdict.outcome),
        "candidate_low": candidate[0],
        "candidate_center": candidate[1],
        "candidate_high": candidate[2],
        "baseline_low": baseline[0],
        "baseline_high": baseline[2],
        "verdict": str(verdict.outcome) + (f", {word}" if word else ""),
        "effect": format_effect(verdict.effect),
        "bounds": format_effect_interval(verdict.effect_low, verdict.effect_high),
        "candidate": format_interval(verdict.candidate, verdict.series.quantity),
        "baseline": f"{format_interval(verdict.baseline, verdict.series.quantity)} ({verdict.baseline_kind})",
        "message": verdict.message,
    }


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"{name}:N", title=title)
        for name, title in (
            ("label", "benchmark"), ("verdict", "verdict"), ("effect", "effect"), ("bounds", "effect 95 %"),
            ("candidate", "candidate"), ("baseline", "baseline"), ("message", "why"),
        )
    ]  # fmt: skip
