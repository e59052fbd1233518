"""The trend of one series as a picture for a mail.

Altair and vl-convert are large and are imported here alone, when a picture is drawn.
"""

from __future__ import annotations

import importlib.util
import io
from typing import TYPE_CHECKING, Any

from store import shown
from store.records import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import SeriesPoint

_WIDTH, _HEIGHT = 640, 240
_BLUE, _RED = "#0969da", "#b42318"


def can_draw() -> bool:
    """Whether the packages that draw are installed (the extra ``alerts``)."""
    return all(importlib.util.find_spec(name) is not None for name in ("altair", "vl_convert"))


def trend_png(points: Sequence[SeriesPoint], *, title: str) -> bytes:
    """Draw the intervals of one series, oldest first, the last one marked as what is judged.

    Raises:
        ImportError: Altair or vl-convert is not installed.
    """
    buffer = io.BytesIO()
    trend_chart(points, title=title).save(buffer, format="png", scale_factor=2)
    return buffer.getvalue()


def trend_chart(points: Sequence[SeriesPoint], *, title: str) -> Any:
    """The picture as an Altair chart; values are in the unit that suits the last point."""
    import altair as alt

    rows = _rows(points)
    quantity = points[-1].series.quantity
    scale, unit = shown.unit_of(rows[-1]["center"], quantity)
    what = "ratio" if quantity is Quantity.RATIO else f"time, {unit}"
    for row in rows:
        row.update({bound: row[bound] / scale for bound in ("low", "center", "high")})
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("order:O", title="runs, oldest first", axis=alt.Axis(labels=False, ticks=False))
    )
    role = alt.Scale(domain=["baseline", "candidate"], range=[_BLUE, _RED])
    shape = alt.Scale(domain=["baseline", "candidate"], range=["circle", "diamond"])
    y = alt.Y("low:Q", title=what, scale=alt.Scale(zero=False, nice=True))
    colour = alt.Color("role:N", scale=role, title=None, legend=alt.Legend(orient="top"))
    bars = base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q", color=colour)
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=alt.Y("center:Q"),
        color=colour,
        shape=alt.Shape("role:N", scale=shape, title=None),
    )
    return (bars + marks).properties(width=_WIDTH, height=_HEIGHT, title=shown.visible(title, limit=80))


def _rows(points: Sequence[SeriesPoint]) -> list[dict[str, Any]]:
    rows = []
    for index, point in enumerate(points):
        if point.interval.bounds is not None:
            low, center, high = point.interval.bounds
            role = "candidate" if index == len(points) - 1 else "baseline"
            rows.append({"order": index, "low": low, "center": center, "high": high, "role": role})
    return rows
