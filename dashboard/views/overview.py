"""Overview: what moved lately, worst first, and where each machine stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import queries, states, url_state
from dashboard.formatting import (
    count_of,
    format_amount,
    format_interval,
    format_moment,
    gpu_label,
)
from dashboard.latest import (
    OUTCOMES,
    LatestRow,
    RunSummary,
    keep,
    lately,
    latest_rows,
    newest_runs,
    summarize,
)
from dashboard.tables import (
    Column,
    Markup,
    count_badge,
    effect_cell,
    link,
    plain,
    table,
    tier_badge,
    two_lines,
    verdict_badge,
)
from dashboard.timeline import main_line
from dashboard.url_state import page_address
from store import shown
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Commit, RunHeader

# A series that none of these runs measured is no longer news.
RUNS_PER_GPU = 20
_ROWS_AT_FIRST = 50


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    st.title("Overview")
    commits = {
        sha: commit
        for repository in dict.fromkeys(header.repository for header in headers)
        for sha, commit in queries.commits(repository).items()
    }
    line = main_line(headers, commits)
    recent = lately(headers, per_gpu=RUNS_PER_GPU)
    run_ids = [header.run_id for header in recent]
    points, verdicts = queries.points(run_ids=run_ids), queries.verdicts(run_ids)
    st.subheader("Latest run on each GPU")
    summaries = [
        summarize(
            header,
            line=line,
            points=points,
            verdicts=verdicts,
            n_failed=len(queries.run(header.run_id).failures),
        )
        for header in newest_runs(recent, line)
    ]
    st.html(_runs_table(summaries, commits))
    st.subheader("Latest verdict on each series")
    rows = latest_rows(points, verdicts, line)
    _show_series(_filtered(rows, recent), len(rows), commits)
    st.caption(
        f"From the newest {count_of(len(recent), 'run')}, at most {RUNS_PER_GPU} of each GPU. "
        "An effect is (candidate \u2212 baseline) / baseline: positive is slower. Its bar spans \u00b15 %."
    )


def _filtered(rows: Sequence[LatestRow], headers: Sequence[RunHeader]) -> list[LatestRow]:
    names = {header.gpu_uuid: gpu_label(header.gpu_name, header.gpu_uuid) for header in headers}
    search, outcome, gpu, tier = st.columns([3, 3, 3, 2])
    with search:
        text = url_state.text("Benchmark", "q", placeholder="softmax bfloat16")
    with outcome:
        outcomes = url_state.many("Outcome", "outcome", OUTCOMES, show=str.lower)
    with gpu:
        gpus = url_state.many("GPU", "gpu", sorted(names), show=names.__getitem__)
    with tier:
        tiers = url_state.many("Tier", "tier", [str(tier) for tier in Tier])
    return keep(rows, text=text, gpu_uuids=gpus, tiers=tiers, outcomes=outcomes)


def _show_series(rows: Sequence[LatestRow], n_all: int, commits: Mapping[str, Commit]) -> None:
    if not rows:
        st.info(f"None of {count_of(n_all, 'series', 'series')} passes these filters: widen or clear them.")
        return
    everything = len(rows) <= _ROWS_AT_FIRST or url_state.flag(f"Show all {len(rows):,} rows", "all")
    shown = rows if everything else rows[:_ROWS_AT_FIRST]
    st.html(_series_table(shown, commits))
    if len(shown) < len(rows):
        st.caption(f"The worst {len(shown):,} of {len(rows):,} rows are shown.")


def _runs_table(summaries: Sequence[RunSummary], commits: Mapping[str, Commit]) -> Markup:
    columns = [
        Column("GPU"),
        Column("Measured"),
        Column("Commit"),
        *(Column(outcome.capitalize(), numeric=True) for outcome in OUTCOMES),
        Column("Failed", numeric=True),
    ]
    rows = [
        [
            two_lines(
                plain(
                    gpu_label(summary.header.gpu_name, summary.header.gpu_uuid), more=summary.header.gpu_uuid
                ),
                f"{summary.header.timer} · {summary.header.clock_regime} clocks",
            ),
            two_lines(
                plain(_place(summary.header, on_line=summary.on_line)),
                format_moment(summary.header.started_at),
            ),
            _commit_link(summary.header, commits),
            *(count_badge(outcome, summary.counts[outcome]) for outcome in OUTCOMES),
            count_badge("failed", summary.n_failed),
        ]
        for summary in summaries
    ]
    return table("Latest run on each GPU, with the number of measurements by outcome", columns, rows)


def _series_table(rows: Sequence[LatestRow], commits: Mapping[str, Commit]) -> Markup:
    columns = [
        Column("Benchmark"),
        Column("Verdict"),
        Column("Effect"),
        Column("Median", numeric=True),
        Column("Interval 95 %", numeric=True, wide_only=True),
        Column("Tier"),
        Column("GPU", wide_only=True),
        Column("Commit"),
    ]
    return table(
        "Latest verdict on each series, worst first", columns, [_series_cells(row, commits) for row in rows]
    )


def _series_cells(row: LatestRow, commits: Mapping[str, Commit]) -> list[Markup]:
    point, header = row.point, row.point.header
    return [
        two_lines(
            link(
                point.series.case.label,
                page_address("trends", {"series": point.series.id}),
                more="Show the trend of this series",
            ),
            f"{point.series.timer} · {point.series.cache_state} cache",
        ),
        verdict_badge(row.verdict),
        effect_cell(row.verdict),
        plain(format_amount(point.interval.center, point.series.quantity)),
        plain(format_interval(point.interval, point.series.quantity)),
        tier_badge(point.tier, point.tier_evidence),
        plain(gpu_label(header.gpu_name, header.gpu_uuid), more=header.gpu_uuid),
        _commit_link(header, commits, on_line=row.on_line),
    ]


def _commit_link(header: RunHeader, commits: Mapping[str, Commit], *, on_line: bool = True) -> Markup:
    commit = commits.get(header.commit_sha or "")
    marks = [commit.subject] if commit else []
    if header.dirty:
        marks.insert(0, "uncommitted changes")
    elif not on_line:
        marks.insert(0, "off the main line")
    return two_lines(
        link(
            shown.short(header.commit_sha),
            page_address("commit", {"sha": header.commit_sha or "", "run": header.run_id}),
            more="Show this commit",
        ),
        " · ".join(marks),
    )


def _place(header: RunHeader, *, on_line: bool) -> str:
    base = header.base_ref or "main line"
    if header.dirty:
        return "uncommitted changes"
    return base if on_line else f"branch off {base}"


if __name__ == "__main__":
    show()
