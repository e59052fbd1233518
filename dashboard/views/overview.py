"""Overview: what moved lately, worst first, and where each machine stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from alerts.order import Kind
from dashboard import queries, states, triage_store, url_state
from dashboard.formatting import count_of, gpu_label
from dashboard.latest import (
    Filters,
    LatestRow,
    Side,
    lately,
    latest_rows,
    newest_runs,
    own_news,
    side_of,
    summarize,
)
from dashboard.overview_tables import kinds_line, machines_table, series_table
from dashboard.since import SINCE_VERDICT, Since, changes_since, moved_first, references
from dashboard.timeline import main_line
from store.older_names import NO_RENAMES
from store.records import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dashboard.differences import Difference
    from store.older_names import Renames
    from store.records import Commit, RunHeader

# A series that none of these runs measured is no longer news.
RUNS_PER_GPU = 20
_ROWS_AT_FIRST = 50
_SINCE_WORDS = {
    SINCE_VERDICT: "its baseline",
    Since.DAY: "a day earlier",
    Since.WEEK: "a week earlier",
    Since.RELEASE: "the last release",
}


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    st.title("Overview")
    recent = lately(own_news(headers), per_gpu=RUNS_PER_GPU)
    commits = {
        sha: commit
        for repository in {header.repository for header in recent}
        for sha, commit in queries.commits(repository).items()
    }
    line = main_line(recent, commits)
    newest = newest_runs(recent, line)
    renames = _renames(newest)
    rows = _rows(recent, newest, line, renames)
    st.subheader("Where each GPU stands")
    st.html(machines_table(summarize(recent, rows, line), commits))
    st.subheader("Latest word on each benchmark")
    _show_rows(rows, recent, line, commits, renames)
    st.caption(
        f"From the newest {count_of(len(recent), 'run')}, at most {RUNS_PER_GPU} of each GPU. "
        "An effect is (candidate \u2212 baseline) / baseline: positive is slower. Its bar spans \u00b15 %."
    )


def _renames(newest: Sequence[RunHeader]) -> dict[str, Renames]:
    """The older names of what the newest runs measured, by run id."""
    runs: dict[str, list[str]] = {}
    for header in newest:
        runs.setdefault(header.repository, []).append(header.run_id)
    return {
        run_id: names
        for repository, run_ids in runs.items()
        for run_id, names in queries.renames(repository, sorted(run_ids)).items()
    }


def _rows(
    recent: Sequence[RunHeader],
    newest: Sequence[RunHeader],
    line: frozenset[str],
    renames: Mapping[str, Renames],
) -> list[LatestRow]:
    points = [
        point
        for side in Side
        for point in queries.newest_points([h.run_id for h in recent if side_of(h, line) is side])
    ]
    return latest_rows(
        points,
        queries.verdicts(sorted({point.header.run_id for point in points})),
        line,
        newest=newest,
        failures=queries.failures([header.run_id for header in newest]),
        renames=renames,
    )


def _show_rows(
    rows: Sequence[LatestRow],
    recent: Sequence[RunHeader],
    line: frozenset[str],
    commits: Mapping[str, Commit],
    renames: Mapping[str, Renames],
) -> None:
    since = url_state.switch(
        "Change since", "since", list(_SINCE_WORDS), default=SINCE_VERDICT, show=_SINCE_WORDS.__getitem__,
        help_text="Its baseline: as the verdict says. The others compare two single runs of the main line.",
    )  # fmt: skip
    filters, kinds = _filters(rows)
    others = [row for row in rows if filters.keep(row)]
    st.html(kinds_line(others, chosen=kinds, address=url_state.with_parameter))
    kept = [row for row in others if not kinds or row.kind in kinds]
    if not kept:
        st.info(f"None of {count_of(len(rows), 'benchmark')} passes these filters: widen or clear them.")
        return
    changes = _changes(since, kept, recent, line)
    if changes is not None:
        kept = moved_first(kept, changes)
    everything = len(kept) <= _ROWS_AT_FIRST or url_state.flag(f"Show all {len(kept):,} rows", "all")
    shown = kept if everything else kept[:_ROWS_AT_FIRST]
    excuses = triage_store.excuses((row.point, row.verdict) for row in shown if row.point is not None)
    st.html(series_table(shown, commits, _trails(shown, recent, line, renames), changes, excuses))
    if len(shown) < len(kept):
        st.caption(f"The worst {len(shown):,} of {len(kept):,} rows are shown.")


def _filters(rows: Sequence[LatestRow]) -> tuple[Filters, list[str]]:
    """What the controls keep; the kinds apart, since they are counted after all other filters."""
    names = {row.header.gpu_uuid: gpu_label(row.header.gpu_name, row.header.gpu_uuid) for row in rows}
    search, kind, gpu, tier = st.columns([3, 3, 3, 2])
    with search:
        text = url_state.text("Benchmark", "q", placeholder="softmax bfloat16")
    with kind:
        kinds = url_state.many("Verdict", "verdict", [str(kind) for kind in Kind])
    with gpu:
        gpus = url_state.many("GPU", "gpu", sorted(names), show=names.__getitem__)
    with tier:
        tiers = url_state.many("Tier", "tier", [str(tier) for tier in Tier])
    suite, tag, side, repository = st.columns([3, 3, 3, 2])
    with suite:
        suites = url_state.many("Suite", "suite", sorted({row.suite for row in rows}))
    with tag:
        tags = url_state.many("Tag", "tag", sorted({tag for row in rows for tag in row.tags}))
    with side:
        sides = url_state.many("Runs", "side", [str(side) for side in Side])
    with repository:
        repositories = url_state.many(
            "Repository", "repository", sorted({row.header.repository for row in rows})
        )
    filters = Filters(
        text=text, gpu_uuids=gpus, tiers=tiers, suites=suites, tags=tags, sides=sides,
        repositories=repositories,
    )  # fmt: skip
    return filters, kinds


def _changes(
    since: str, rows: Sequence[LatestRow], recent: Sequence[RunHeader], line: frozenset[str]
) -> dict[tuple[str, str], Difference] | None:
    """The change of each row since a reference; None where the verdict's own baseline is asked for."""
    if since == SINCE_VERDICT:
        return None
    newest = [header for header in newest_runs(recent, line) if side_of(header, line) is Side.MAIN]
    history = [
        header
        for gpu_uuid in dict.fromkeys(header.gpu_uuid for header in newest)
        for header in queries.recent_headers(gpu_uuid=gpu_uuid)
    ]
    found, notes = references(Since(since), newest, history, queries.releases)
    for note in notes:
        st.info(note)
    return changes_since(rows, queries.points(run_ids=[header.run_id for header in found]))


def _trails(
    rows: Sequence[LatestRow],
    recent: Sequence[RunHeader],
    line: frozenset[str],
    renames: Mapping[str, Renames],
) -> dict[tuple[str, str], list[float]]:
    """The newest centres of each series on the main line, oldest first, those under older names too."""
    known = queries.centers([header.run_id for header in recent if side_of(header, line) is Side.MAIN])
    trails = {}
    for row in rows:
        if row.point is None:
            continue
        series, repository = row.point.series, row.header.repository
        older = renames.get(row.point.header.run_id, NO_RENAMES).earlier(series)
        trails[series.id, repository] = [
            center for key in (*older, series) for _, center in known.get((key.id, repository), ())
        ]
    return trails


if __name__ == "__main__":
    show()
