"""Legends above a chart, where no point can hide behind them. Pure.

Symbols are as strong as points are: left alone, a legend is as faint as the faintest layer.
"""

from __future__ import annotations

import altair as alt

_ROW_PX = 30  # what one row of a legend takes with the font of the pages


def legend(*, columns: int = 0) -> alt.Legend:
    """Short words beside one another.

    Args:
        columns: how many stand in a row; 0 for all. A row that is wider than the chart is cut off, so
            charts with little width beside their labels need few.
    """
    return alt.Legend(title=None, orient="top", direction="horizontal", columns=columns, symbolOpacity=1)


def listed_height(n_words: int) -> int:
    """What a list of words takes from the height of a chart beyond a legend of one row, in pixels."""
    return _ROW_PX * max(0, n_words - 1)


def listed_legend() -> alt.Legend:
    """Long words, such as the names of series, below one another; the chart has to be higher for them."""
    return alt.Legend(title=None, orient="top", direction="vertical", labelLimit=600, symbolOpacity=1)
