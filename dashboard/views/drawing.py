"""Charts on a page: what Altair built, handed to the browser without checking it against its schema again.

Altair validates every part of a chart against the whole schema of Vega-Lite, which takes longer
than everything else a page does. The tests validate every chart; pages do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st
from altair.utils import schemapi

if TYPE_CHECKING:
    from altair import TopLevelMixin

schemapi.disable_debug_mode()


def draw(chart: TopLevelMixin, *, alt: str, key: str | None = None, picks: str | None = None) -> object:
    """Show a chart.

    Args:
        chart: what the functions in ``dashboard.charts`` give.
        alt: what it shows, in words, for people who cannot see it.
        key: names the chart, where its clicks are asked for.
        picks: the selection whose clicks draw the page again; None for a chart without clicks.

    Returns:
        What was picked, see ``dashboard.charts.trend.picked``; nothing of use without ``picks``.
    """
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)  # the sizes of Altair's theme; the page has its own
    if picks is None:
        return st.vega_lite_chart(spec=spec, alt=alt, key=key)
    return st.vega_lite_chart(spec=spec, alt=alt, key=key, on_select="rerun", selection_mode=[picks])
