"""A trend as small as a word: an SVG picture inside a page, without a request for it. Pure."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from dashboard.palette import CANDIDATE_COLOR

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH_PX, HEIGHT_PX = 92, 22
_MARGIN_PX = 3
# Noise alone must not fill the height and look like news.
_RANGE_MIN = 0.03


def spark_address(values: Sequence[float]) -> str:
    """The picture of some positive numbers, oldest first, as a data address; the last one has a dot."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _places(values))
    x, y = _places(values)[-1]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX}" height="{HEIGHT_PX}">'
        f'<polyline points="{points}" fill="none" stroke="{CANDIDATE_COLOR}" stroke-width="1.4"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{CANDIDATE_COLOR}"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _places(values: Sequence[float]) -> list[tuple[float, float]]:
    low, high = min(values), max(values)
    middle = (low + high) / 2
    span = max(high - low, _RANGE_MIN * middle)
    step = (WIDTH_PX - 2 * _MARGIN_PX) / max(len(values) - 1, 1)
    height = HEIGHT_PX - 2 * _MARGIN_PX
    return [
        (_MARGIN_PX + index * step, _MARGIN_PX + height * (0.5 - (value - middle) / span))
        for index, value in enumerate(values)
    ]
