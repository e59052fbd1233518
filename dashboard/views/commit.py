"""Commit: what one run found on one commit, down to windows, kernels and logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from alerts.order import worst_first
from dashboard import queries, states, triage_store, url_state
from dashboard.charts import effects as effects_charts
from dashboard.charts import sweep as sweep_charts
from dashboard.differences import SENTINEL
from dashboard.errors import UnknownCommit
from dashboard.formatting import (
    count_of,
    format_amount,
    format_effect,
    format_interval,
    format_moment,
    gpu_label,
    literal,
)
from dashboard.measured import show_measurement
from dashboard.missing import missing_from
from dashboard.reproduce import reproduce_command
from dashboard.sweeps import sweeps
from dashboard.tables import (
    Column,
    Markup,
    code,
    effect_cell,
    link,
    plain,
    table,
    tier_badge,
    two_lines,
    verdict_badge,
)
from dashboard.url_state import page_address
from dashboard.views.drawing import draw
from store import shown
from store.records import Outcome, Reason
from store.sessions import both_sessions, short_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Case, Commit, Failure, RunHeader, SeriesPoint, Verdict

_COMMITS_OFFERED = 20


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    sha = next(iter(url_state.in_url("sha")), None)
    run_id = next(iter(url_state.in_url("run")), None)
    if sha is None and run_id is None:
        _offer_commits(headers)
        return
    on_commit = _runs_on(sha) if sha is not None else [queries.header(run_id or "")]
    _check_run(on_commit, run_id)
    commits = queries.commits(on_commit[0].repository)
    _show_title(on_commit[0], commits)
    chosen = _choose_run(on_commit)
    header = next(header for header in on_commit if header.run_id == chosen)
    points = queries.points(run_ids=[chosen])
    verdicts = {series_id: verdict for (_, series_id), verdict in queries.verdicts([chosen]).items()}
    _show_head(header, commits)
    measured = sorted(points, key=lambda p: (worst_first(verdicts.get(p.series.id)), p.series.case.label))
    _show_sentinels(measured, verdicts)
    _show_measurements(measured, verdicts)
    _show_effects([verdicts[p.series.id] for p in measured if p.series.id in verdicts])
    _show_one(measured)
    _show_sweep(measured)
    failures = queries.failures([chosen]).get(chosen, ())
    _show_failures(failures)
    _show_missing(missing_from(header, points, failures, commits))
    _show_machine(header)


def _offer_commits(headers: Sequence[RunHeader]) -> None:
    st.title("Commit")
    st.info("Choose one of the commits measured last, or open one from the overview or a trend.")
    newest: dict[str, RunHeader] = {}
    for header in headers:
        newest.setdefault(header.commit_sha or header.run_id, header)
    for header in list(newest.values())[:_COMMITS_OFFERED]:
        commit = queries.commits(header.repository).get(header.commit_sha or "")
        st.page_link(
            "views/commit.py",
            label=f"{shown.short(header.commit_sha)} {commit.subject if commit else header.repository}",
            query_params=_address_of(header),
        )


def _address_of(header: RunHeader) -> dict[str, str]:
    return {"sha": header.commit_sha} if header.commit_sha else {"run": header.run_id}


def _runs_on(sha: str) -> list[RunHeader]:
    headers = queries.headers_of_commit(sha)
    found = sorted({header.commit_sha or "" for header in headers})
    if not found:
        raise UnknownCommit(
            f"no run on commit {sha} is stored: measure it with 'collect --commit {sha}', "
            "or look whether the link belongs to another store"
        )
    if len(found) > 1:
        raise UnknownCommit(f"{sha} is the beginning of several commits: {', '.join(found)}; use more digits")
    return headers


def _check_run(headers: Sequence[RunHeader], run_id: str | None) -> None:
    if run_id is not None and run_id not in {header.run_id for header in headers}:
        raise UnknownCommit(
            f"run {run_id} is not among the {count_of(len(headers), 'run')} on this commit: "
            "leave 'run' out of the address to see the newest"
        )


def _choose_run(headers: Sequence[RunHeader]) -> str:
    """The run that the URL names, else the newest of exactly this commit; others can be chosen.

    One that confirms another holds only what the other flagged, and comes after it.
    """
    names = {
        header.run_id: f"{format_moment(header.started_at)} · "
        f"{gpu_label(header.gpu_name, header.gpu_uuid)} · {header.timer}, {header.clock_regime} clocks"
        + (" · uncommitted changes" if header.dirty else "")
        + (f" · confirms {short_run(header.confirms_run_id)}" if header.confirms_run_id else "")
        for header in headers
    }
    whole = (header.run_id for header in headers if not header.dirty and header.confirms_run_id is None)
    default = next(whole, headers[0].run_id)
    if len(names) == 1:
        return default
    return url_state.one("Run", "run", list(names), default=default, show=names.__getitem__)


def _show_title(header: RunHeader, commits: Mapping[str, Commit]) -> None:
    commit = commits.get(header.commit_sha or "")
    st.title(literal(commit.subject if commit else f"Run {header.run_id[:8]}"))


def _show_head(header: RunHeader, commits: Mapping[str, Commit]) -> None:
    commit = commits.get(header.commit_sha or "")
    facts = [
        f"`{header.commit_sha or 'no commit'}`" + (" with uncommitted changes" if header.dirty else ""),
    ]
    if commit:
        facts.append(f"by {literal(commit.author)}, {format_moment(commit.authored_at)}")
    facts.append(
        f"in {literal(header.repository)}, measured {format_moment(header.started_at)} on "
        f"{literal(gpu_label(header.gpu_name, header.gpu_uuid))}, timer {header.timer}, "
        f"{header.clock_regime} clocks, {count_of(header.passes, 'pass', 'passes')}"
    )
    if header.merge_base and header.merge_base != header.commit_sha:
        facts.append(f"left {literal(header.base_ref or 'its base')} at `{shown.short(header.merge_base)}`")
    st.markdown("  \n".join(facts))
    if header.interrupted:
        st.warning("This run was ended early. What it holds was measured in full; the rest is missing.")
    if header.history_note:
        st.warning(f"The history of this commit is not known in full: {header.history_note}")
    st.caption(
        "To measure it again" + ("; the uncommitted changes are in no command" if header.dirty else "")
    )
    st.code(reproduce_command(header), language=None, wrap_lines=True)


def _show_sentinels(measured: Sequence[SeriesPoint], verdicts: Mapping[str, Verdict]) -> None:
    """Whether the machine stood still, as far as the fixed calls of every run tell."""
    voided = next((v for v in verdicts.values() if v.reason is Reason.MACHINE_MOVED), None)
    if voided is not None:
        st.warning(f"No verdict on this run: {literal(voided.message)}.")
        return
    sentinels = [point for point in measured if SENTINEL in point.tags]
    judged = [verdict for point in sentinels if (verdict := verdicts.get(point.series.id)) is not None]
    moved = [v for v in judged if v.outcome in (Outcome.REGRESSED, Outcome.IMPROVED)]
    if not sentinels:
        st.caption("No sentinel was measured in this run: nothing says whether the machine stood still.")
    elif moved:
        words = "; ".join(f"{v.series.case.label} {format_effect(v.effect)}" for v in moved)
        st.warning(
            f"The machine moved, not only the code: {literal(words)}. Measure again before you trust it."
        )
    elif judged:
        st.caption(f"Machine: {count_of(len(judged), 'sentinel')} judged, none of them moved.")
    else:
        st.caption(f"Machine: {count_of(len(sentinels), 'sentinel')} measured, none judged yet.")


def _show_measurements(measured: Sequence[SeriesPoint], verdicts: Mapping[str, Verdict]) -> None:
    st.subheader("Measurements")
    if not measured:
        st.info("This run measured nothing; the failures below say why.")
        return
    if not verdicts:
        st.info("Nothing of this run was judged yet: `alerts compare` does that.")
    columns = [
        Column("Benchmark"), Column("Verdict"), Column("Effect"), Column("Median", numeric=True),
        Column("Interval 95 %", numeric=True, wide_only=True), Column("Tier"),
        Column("Windows", numeric=True, wide_only=True), Column("Why", wide_only=True),
    ]  # fmt: skip
    excuses = triage_store.excuses((point, verdicts.get(point.series.id)) for point in measured)
    rows = [
        _measurement_cells(
            point, verdicts.get(point.series.id), excuses.get((point.header.run_id, point.series.id), "")
        )
        for point in measured
    ]
    st.html(table("Measurements of this run, worst first", columns, rows))
    st.caption("A name leads to its trend, a median to every sample behind it.")


def _measurement_cells(point: SeriesPoint, verdict: Verdict | None, excuse: str) -> list[Markup]:
    series = point.series
    evidence = page_address("evidence", {"run": point.header.run_id, "series": series.id})
    sessions = None if verdict is None else both_sessions(verdict)
    said = [text for text in (sessions, excuse) if text]
    return [
        two_lines(
            link(series.case.label, page_address("trends", {"series": series.id}), more="Show the trend"),
            point.source,
        ),
        verdict_badge(verdict, excuse),
        effect_cell(verdict),
        link(
            format_amount(point.interval.center, series.quantity),
            evidence,
            more="Show every sample of this number",
        ),
        plain(format_interval(point.interval, series.quantity)),
        tier_badge(point.tier, point.tier_evidence),
        plain(str(point.interval.windows)),
        two_lines(plain(verdict.message if verdict else ""), "; ".join([*point.tier_evidence[:1], *said])),
    ]


def _show_effects(verdicts: Sequence[Verdict]) -> None:
    drawn = [verdict for verdict in verdicts if effects_charts.can_be_drawn(verdict)]
    if not drawn:
        return
    st.subheader("Candidate against baseline")
    shown = drawn[: effects_charts.ROWS_MAX]
    draw(
        effects_charts.effects_chart(shown),
        alt=f"Intervals of candidate and baseline of {count_of(len(shown), 'benchmark')}, worst first; "
        "the table above holds the numbers.",
    )
    left_out = len(verdicts) - len(shown)
    st.caption(
        "Grey: the baseline, with its own interval. Coloured: this run."
        + (
            f" {count_of(left_out, 'row')} of the table without a baseline or further down."
            if left_out
            else ""
        )
    )


def _show_one(measured: Sequence[SeriesPoint]) -> None:
    if not measured:
        return
    st.subheader("One benchmark in detail")
    by_id = {point.series.id: point for point in measured}
    chosen = url_state.one(
        "Benchmark",
        "benchmark",
        list(by_id),
        default=next(iter(by_id)),
        show=lambda series_id: by_id[series_id].series.case.label,
    )
    run_id = by_id[chosen].header.run_id
    show_measurement(queries.measurement(run_id, chosen))
    st.page_link(
        "views/evidence.py",
        label="Everything behind this number: samples, clocks, what was left out",
        query_params={"run": run_id, "series": chosen},
    )


def _show_sweep(measured: Sequence[SeriesPoint]) -> None:
    """One benchmark over the values of one of its parameters."""
    by_name = {sweep.name: sweep for sweep in sweeps(measured)}
    if not by_name:
        return
    st.subheader("Over a parameter")
    sweep = by_name[url_state.one("Sweep", "sweep", list(by_name), default=next(iter(by_name)))]
    draw(
        sweep_charts.sweep_chart(sweep),
        alt=f"Time of {sweep.name}, in {count_of(len(sweep.lines), 'line')}. "
        "The table of measurements above holds every number.",
    )
    if len(sweep.lines) > sweep_charts.LINES_MAX:
        st.caption(f"The first {sweep_charts.LINES_MAX} of {len(sweep.lines):,} lines are drawn.")


def _show_failures(failures: Sequence[Failure]) -> None:
    if not failures:
        return
    st.subheader("Failures")
    for failure in failures:
        name = failure.case.label if failure.case else failure.source
        with st.expander(f"{literal(name)}: {failure.kind} ({failure.stage})"):
            st.markdown(f"{literal(failure.message)}  \n`{failure.source}`")
            if failure.log:
                st.code(failure.log, language=None, wrap_lines=True)


def _show_missing(missing: Mapping[Case, str] | None) -> None:
    """What earlier runs measured and this one did not: without a number nothing is known about it."""
    if missing is None:
        st.caption(
            "What is missing is not looked up for a run that is not among the newest "
            f"{queries.RECENT_RUNS:,} of its GPU."
        )
    elif missing:
        st.subheader("Missing")
        rows = [[plain(case.label), plain(last)] for case, last in missing.items()]
        st.html(table("Not part of this run", [Column("Benchmark"), Column("Last measured on commit")], rows))


def _show_machine(header: RunHeader) -> None:
    with st.expander("Machine and software of this run"):
        columns = [Column("Reading"), Column("Value")]
        readings = [("run", header.run_id), ("GPU", header.gpu_uuid), ("environment", header.environment)]
        rows = [[plain(name), code(value)] for name, value in readings]
        for name, reading in sorted(header.context.items()):
            value = f"not readable: {reading.error}" if reading.error else str(reading.value)
            rows.append([plain(name), code(value)])
        st.html(table("Readings of machine and software", columns, rows))


if __name__ == "__main__":
    show()
