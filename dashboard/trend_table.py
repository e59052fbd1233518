"""The rows of the table below a trend chart. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.formatting import NOTHING, format_amount, format_interval, format_moment
from dashboard.tables import Markup, effect_cell, link, plain, tier_badge, two_lines, verdict_badge
from dashboard.url_state import page_address
from store import shown

if TYPE_CHECKING:
    from dashboard.trend import TrendRow


def trend_cells(row: TrendRow) -> list[Markup]:
    """One cell for each column of the table."""
    point, header, commit = row.point, row.point.header, row.commit
    address = page_address("commit", {"sha": header.commit_sha or "", "run": header.run_id})
    marks = [commit.subject] if commit else []
    if header.dirty:
        marks.insert(0, "uncommitted changes")
    elif not row.on_line:
        marks.insert(0, "off the main line")
    return [
        two_lines(link(shown.short(header.commit_sha), address), " · ".join(marks)),
        plain(format_moment(commit.authored_at) if commit else NOTHING),
        link(
            format_amount(point.interval.center, point.series.quantity),
            page_address("evidence", {"run": header.run_id, "series": point.series.id}),
            more="Show every sample of this number",
        ),
        plain(format_interval(point.interval, point.series.quantity)),
        tier_badge(point.tier, point.tier_evidence),
        verdict_badge(row.verdict),
        effect_cell(row.verdict),
        plain(str(point.interval.windows)),
        plain(f"{point.n_samples:,}" + (f" (+{point.n_left_out} left out)" if point.n_left_out else "")),
    ]
