"""The tables of the overview, as markup. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from alerts.order import Kind
from dashboard.formatting import format_amount, format_interval, format_moment, gpu_label
from dashboard.latest import Side
from dashboard.tables import (
    Column,
    Markup,
    chips,
    count_badge,
    difference_cell,
    effect_cell,
    kind_badge,
    link,
    nothing,
    plain,
    spark_cell,
    table,
    tier_badge,
    two_lines,
    unbroken,
    verdict_badge,
)
from dashboard.url_state import page_address
from store import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dashboard.differences import Difference
    from dashboard.latest import LatestRow, MachineSummary
    from store.records import Commit, RunHeader

# In the table of GPUs; the rest is counted as well, below one head.
_COUNTED = (Kind.CONFIRMED, Kind.FLAGGED, Kind.FAILED, Kind.MISSING, Kind.IMPROVED, Kind.INCONCLUSIVE)


def kinds_line(
    rows: Sequence[LatestRow], *, chosen: Sequence[str], address: Callable[[str, str | None], str]
) -> Markup:
    """How many rows there are of each kind, each a link to the table of those alone."""
    counts = Counter(row.kind for row in rows)
    items = [(f"all {len(rows):,}", address("verdict", None), not chosen)]
    items += [
        (f"{kind} {counts[kind]:,}", address("verdict", str(kind)), str(kind) in chosen)
        for kind in Kind
        if counts[kind]
    ]
    return chips("Rows by verdict", items)


def machines_table(summaries: Sequence[MachineSummary], commits: Mapping[str, Commit]) -> Markup:
    """One row for each GPU, repository and side of the main line; every count leads to its rows."""
    columns = [
        Column("GPU"),
        Column("Newest run"),
        Column("Commit", wide_only=True),
        *(Column(kind.capitalize(), numeric=True) for kind in _COUNTED),
        Column("Other", numeric=True),
    ]
    return table(
        "Newest run on each GPU, with the number of benchmarks by verdict",
        columns,
        [_machine_cells(summary, commits) for summary in summaries],
    )


def _machine_cells(summary: MachineSummary, commits: Mapping[str, Commit]) -> list[Markup]:
    header = summary.header
    place = {
        "gpu": header.gpu_uuid, "side": str(summary.side), "repository": header.repository, "all": "1",
    }  # fmt: skip
    others = [kind for kind in Kind if kind not in _COUNTED]
    counted = [
        (kind, summary.counts[kind], page_address("", place | {"verdict": str(kind)})) for kind in _COUNTED
    ]
    return [
        two_lines(
            link(
                gpu_label(header.gpu_name, header.gpu_uuid),
                page_address("machine", {"gpu": header.gpu_uuid}),
                more=f"Show the machine of {header.gpu_uuid}",
            ),
            f"{header.timer} · {header.clock_regime} clocks",
        ),
        two_lines(plain(_place(summary)), format_moment(header.started_at)),
        _commit_link(header, summary.side, commits),
        *(count_badge(kind, count, address) for kind, count, address in counted),
        count_badge(
            None,
            sum(summary.counts[kind] for kind in others),
            page_address("", place | {"verdict": [str(kind) for kind in others]}),
        ),
    ]


def series_table(
    rows: Sequence[LatestRow],
    commits: Mapping[str, Commit],
    trails: Mapping[tuple[str, str], Sequence[float]],
    changes: Mapping[tuple[str, str], Difference] | None,
    excuses: Mapping[tuple[str, str], str],
) -> Markup:
    """One row for each benchmark; with changes given, those stand in place of the verdict's effect."""
    columns = [
        Column("Benchmark"),
        Column("Verdict"),
        Column("Effect" if changes is None else "Change"),
        Column("Trend", wide_only=True),
        Column("Median", numeric=True),
        Column("Interval 95 %", numeric=True, wide_only=True),
        Column("Tier"),
        Column("GPU", wide_only=True),
        Column("Commit"),
    ]
    cells = [_series_cells(row, commits, trails, changes, excuses) for row in rows]
    return table("Latest word on each benchmark, worst first", columns, cells)


def _series_cells(
    row: LatestRow,
    commits: Mapping[str, Commit],
    trails: Mapping[tuple[str, str], Sequence[float]],
    changes: Mapping[tuple[str, str], Difference] | None,
    excuses: Mapping[tuple[str, str], str],
) -> list[Markup]:
    header, point = row.header, row.point
    gpu = unbroken(plain(gpu_label(header.gpu_name, header.gpu_uuid), more=header.gpu_uuid))
    badge = kind_badge(row.kind, _why(row)) if row.kind in (Kind.FAILED, Kind.MISSING) else None
    if point is None:
        return [
            two_lines(plain(row.label), row.source),
            badge or nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), gpu,
            _commit_link(header, row.side, commits),
        ]  # fmt: skip
    series = point.series
    change = None if changes is None else changes.get((point.header.run_id, series.id))
    return [
        two_lines(
            link(
                series.case.label,
                page_address("trends", {"series": series.id}),
                more="Show the trend of this series",
            ),
            f"{series.timer} · {series.cache_state} cache",
        ),
        badge or verdict_badge(row.verdict, excuses.get((point.header.run_id, series.id), "")),
        effect_cell(row.verdict) if changes is None else difference_cell(change),
        spark_cell(trails.get((series.id, header.repository), ())),
        link(
            format_amount(point.interval.center, series.quantity),
            page_address("evidence", {"run": point.header.run_id, "series": series.id}),
            more="Show every sample of this number",
        ),
        plain(format_interval(point.interval, series.quantity)),
        tier_badge(point.tier, point.tier_evidence),
        gpu,
        _commit_link(header, row.side, commits),
    ]


def _why(row: LatestRow) -> str:
    if row.failure is not None:
        return row.failure.message
    newer = row.absent_from
    return f"The run of {format_moment(newer.started_at)} has no word on it." if newer else ""


def _commit_link(header: RunHeader, side: Side, commits: Mapping[str, Commit]) -> Markup:
    commit = commits.get(header.commit_sha or "")
    marks = [commit.subject] if commit else []
    if header.dirty:
        marks.insert(0, "uncommitted changes")
    elif side is Side.OFF:
        marks.insert(0, "off the main line")
    sha = link(
        shown.short(header.commit_sha),
        page_address("commit", {"sha": header.commit_sha or "", "run": header.run_id}),
        more="Show this commit",
    )
    return two_lines(unbroken(sha), " · ".join(marks), wide_only=True)


def _place(summary: MachineSummary) -> str:
    base = summary.header.base_ref or "main line"
    if summary.header.dirty:
        return "uncommitted changes"
    return base if summary.side is Side.MAIN else f"branch off {base}"
