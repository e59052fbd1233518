"""The table of a comparison, as markup. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.formatting import format_amount, format_interval, gpu_label
from dashboard.tables import (
    Column,
    Markup,
    difference_cell,
    direction_badge,
    link,
    plain,
    table,
    tier_badge,
    two_lines,
)
from dashboard.url_state import page_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.differences import Difference
    from store.records import SeriesPoint


def differences_table(differences: Sequence[Difference]) -> Markup:
    """One row for each difference, in the order given."""
    columns = [
        Column("Benchmark"), Column("Change"), Column("Effect"), Column("Base", numeric=True),
        Column("Candidate", numeric=True), Column("Tiers"), Column("GPU", wide_only=True),
    ]  # fmt: skip
    return table("Every difference, slower first", columns, [_cells(item) for item in differences])


def _cells(item: Difference) -> list[Markup]:
    series = item.candidate.series
    trend = page_address("trends", {"series": list(dict.fromkeys((series.id, item.base.series.id)))})
    gpus = dict.fromkeys(gpu_label(p.header.gpu_name, p.header.gpu_uuid) for p in (item.base, item.candidate))
    return [
        two_lines(link(series.case.label, trend, more="Show the trend"), item.candidate.source),
        direction_badge(item.direction),
        difference_cell(item),
        _number(item.base),
        _number(item.candidate),
        Markup(
            tier_badge(item.base.tier, item.base.tier_evidence)
            + " "
            + tier_badge(item.candidate.tier, item.candidate.tier_evidence)
        ),
        plain(", then ".join(gpus)),
    ]


def _number(point: SeriesPoint) -> Markup:
    address = page_address("evidence", {"run": point.header.run_id, "series": point.series.id})
    return two_lines(
        link(
            format_amount(point.interval.center, point.series.quantity),
            address,
            more="Show every sample of this number",
        ),
        format_interval(point.interval, point.series.quantity),
    )
