"""Names of series that tell them apart, as short as that allows. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dashboard.formatting import gpu_label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from store.records import SeriesPoint


def series_names(points: Iterable[SeriesPoint]) -> dict[str, str]:
    """A name for each series id: benchmark and GPU, with all conditions where those are not enough."""
    newest = {point.series.id: point for point in points}
    brief = {series_id: _brief(point) for series_id, point in newest.items()}
    uses = Counter(brief.values())
    return {
        series_id: name if uses[name] == 1 else f"{name} · {_conditions(newest[series_id])}"
        for series_id, name in brief.items()
    }


def _brief(point: SeriesPoint) -> str:
    gpu = gpu_label(point.header.gpu_name, point.header.gpu_uuid)
    return f"{point.series.case.label} · {gpu}"


def _conditions(point: SeriesPoint) -> str:
    series = point.series
    return " · ".join(
        (
            series.timer, series.quantity, f"{series.cache_state} cache",
            f"{series.clock_regime} clocks", series.environment,
        )
    )  # fmt: skip
